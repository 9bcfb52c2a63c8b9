"""Servers that move: a primary with replicas and sentinels, and a cluster; real processes on loopback.

Each is ended by its pid, and keeps its files in a temporary folder. Waiting is for what the servers say of themselves.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.chaos.nemesis.servers import free_port

WAIT_S = 20.0
POLL_S = 0.02
SERVICE = "orders"
SLOTS = 16_384


class Node:
    """One process that is killed and started again at the same port."""

    def __init__(self, program: str, folder: Path, *options: str, port: int) -> None:
        self.port, self._folder = port, folder
        folder.mkdir()
        self._command = [program, *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(
            host="127.0.0.1", port=port, retry=Retry(NoBackoff(), 0), socket_timeout=5.0, protocol=2
        )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(self, *command: Any) -> Any:
        return self.client.execute_command(*command)

    def info(self, section: str = "replication") -> dict[str, Any]:
        found: dict[str, Any] = self.client.info(section)
        return found

    def log_end(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-1500:]


def await_(what: str, is_true: Callable[[], Any]) -> None:
    """Returns once servers say so; there is no event to wait for."""
    deadline = time.monotonic() + WAIT_S
    while True:
        with suppress(redis.RedisError):
            if is_true():
                return
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(POLL_S)


class MovingServers:
    """Nodes in a folder; a context manager that ends every one of them."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._folder = tempfile.TemporaryDirectory(prefix="txbatch-")
        self.nodes: list[Node] = []
        self.others: list[Node] = []
        self._ports: set[int] = set()

    def _port(self) -> int:
        """Returns a port that was not given to another: what has not started yet listens on none."""
        while (port := free_port()) in self._ports:
            pass
        self._ports.add(port)
        return port

    def node(self, *options: str) -> Node:
        port = self._port()
        folder = Path(self._folder.name, str(port))
        common = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--appendonly", "no"]
        common += ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]
        found = Node(self._program, folder, *common, *options, port=port)
        self.nodes.append(found)
        return found

    def at(self, port: int) -> Node:
        return next(each for each in self.nodes if each.port == port)

    def restart_dead(self) -> None:
        for each in self.nodes:
            if not each.is_running:
                each.start()
                await_("the node answers", each.client.ping)

    def close(self) -> None:
        for each in [*self.others, *self.nodes]:
            each.kill()
            each.client.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WatchedServers(MovingServers):
    """A primary, two replicas, and three sentinels."""

    def __init__(self, program: str, *, down_after_ms: int = 700) -> None:
        super().__init__(program)
        first, *replicas = (self.node() for _ in range(3))
        first.start()
        await_("the primary answers", first.client.ping)
        for each in replicas:
            each.start()
            await_("the replica answers", each.client.ping)
            each.ask("REPLICAOF", "127.0.0.1", str(first.port))
        await_("replicas follow", lambda: self._in_step(first, 2))
        for _ in range(3):
            self.others.append(self._sentinel(first.port, down_after_ms))
        await_("sentinels know each other", self.is_settled)

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in self.others)}/{SERVICE}"

    def primary(self) -> Node:
        """The one that every sentinel names."""
        named = {int(each.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1]) for each in self.others}
        assert len(named) == 1, named
        return self.at(named.pop())

    def fail_over(self, *, by_kill: bool) -> None:
        """Returns once another node is the primary, every sentinel says so, and the former one takes no writes."""
        before = self.primary()
        if by_kill:
            before.kill()
        else:
            self.others[0].ask("SENTINEL", "FAILOVER", SERVICE)
        await_("sentinels agree on another", lambda: len(self._named()) == 1 and before.port not in self._named())
        await_("the former one follows", lambda: by_kill or before.info()["role"] == "slave")

    def is_settled(self) -> bool:
        """Whether primary, replicas and sentinels all see each other."""
        if len(self._named()) != 1 or not self._in_step(self.primary(), 2):
            return False
        facts: list[Any] = [each.client.sentinel_master(SERVICE) for each in self.others]
        return all(
            found["num-other-sentinels"] == 2 and found["num-slaves"] == 2 and found["flags"] == "master"
            for found in facts
        )

    def _named(self) -> set[int]:
        return {int(each.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1]) for each in self.others}

    @staticmethod
    def _in_step(primary: Node, replicas: int) -> bool:
        found = primary.info()
        lines = [value for name, value in found.items() if name.startswith("slave") and isinstance(value, dict)]
        return bool(found["role"] == "master") and sum(each["state"] == "online" for each in lines) >= replicas

    def _sentinel(self, primary_port: int, down_after_ms: int) -> Node:
        port = self._port()
        folder = Path(self._folder.name, f"sentinel-{port}")
        file = Path(self._folder.name, f"{port}.conf")
        file.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {SERVICE} 127.0.0.1 {primary_port} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} {down_after_ms}\n"
            f"sentinel failover-timeout {SERVICE} 3000\nsentinel parallel-syncs {SERVICE} 2\n"
        )
        found = Node(self._program, folder, str(file), "--sentinel", port=port)
        found.start()
        await_("the sentinel answers", found.client.ping)
        found.ask("SENTINEL", "DEBUG", "info-period", 500)  # else it takes ten seconds to see who follows whom
        return found


class ClusteredServers(MovingServers):
    """Three primaries with a replica each; on request each keeps every write on its disk before it answers."""

    def __init__(self, program: str, *, node_timeout_ms: int = 1000, fsync: bool = False) -> None:
        super().__init__(program)
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout_ms)]
        options += ["--appendonly", "yes", "--appendfsync", "always"] if fsync else []
        options += ["--cluster-replica-validity-factor", "0"]
        buses = [str(self._port()) for _ in range(6)]
        nodes = [self.node(*options, "--cluster-port", bus) for bus in buses]
        primaries, replicas = nodes[:3], nodes[3:]
        for each in self.nodes:
            each.start()
            await_("the node answers", each.client.ping)
        for index, each in enumerate(primaries):
            each.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * index // 3, SLOTS * (index + 1) // 3 - 1)
            each.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
        for each in self.nodes[1:]:
            each.ask("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, buses[0])
        await_("all nodes know each other", lambda: all(self._known(each) == 6 for each in self.nodes))
        for primary, each in zip(primaries, replicas, strict=True):
            await_("it may follow", partial(each.ask, "CLUSTER", "REPLICATE", self.id_of(primary)))
        await_("the cluster is settled", self.is_settled)

    @property
    def url(self) -> str:
        """Names two of the six."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{each.port}' for each in self.nodes[1:3])}"

    @staticmethod
    def id_of(node: Node) -> str:
        return str(node.ask("CLUSTER", "MYID").decode())

    def slot_of(self, key: str) -> int:
        return int(self._live().ask("CLUSTER", "KEYSLOT", key))

    def owner(self, key: str) -> Node:
        """The node that says itself that it owns the slot."""
        slot = self.slot_of(key)
        return next(each for each in self._running() if self._owns(each, slot))

    def primaries(self) -> list[Node]:
        return [each for each in self._running() if each.info()["role"] == "master" and self._has_slots(each)]

    def fail_over(self, key: str, *, by_kill: bool) -> None:
        """Returns once another node owns the key's slot, and all that run agree."""
        before, slot = self.owner(key), self.slot_of(key)
        if by_kill:
            before.kill()
        else:
            port = next(each["port"] for name, each in before.info().items() if name == "slave0")
            self.at(int(port)).ask("CLUSTER", "FAILOVER")
        await_("another owns the slot", lambda: any(self._owns(e, slot) for e in self._running() if e is not before))
        await_(
            "all agree", lambda: len(says := {self._owner_port(e, slot) for e in self._running()}) == 1 and any(says)
        )

    def restart(self, key: str) -> None:
        """Kills the owner of a key's slot, and starts it again before any node has noticed."""
        before = self.owner(key)
        before.kill()
        before.start()
        await_("it has read its files", before.client.ping)

    def move_slot(self, key: str, *, pause_s: float = 0.0) -> None:
        """Moves the key's slot with its keys to another primary, a key at a time, and tells every primary."""
        slot, source = self.slot_of(key), self.owner(key)
        target = next(each for each in self.primaries() if each is not source)
        ids = {each: self.id_of(each) for each in (source, target)}
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1):
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            time.sleep(pause_s)  # so that calls meet a slot of which some keys are here and some there
        for each in [target, source, *(node for node in self.primaries() if node not in (source, target))]:
            each.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[target])

    def is_settled(self) -> bool:
        if not all(b"cluster_state:ok" in each.ask("CLUSTER", "INFO") for each in self.nodes):
            return False
        if len(self.primaries()) != 3:
            return False
        return all(
            sum(isinstance(v, dict) and v.get("state") == "online" for v in each.info().values()) == 1
            for each in self.primaries()
        )

    def _running(self) -> list[Node]:
        return [each for each in self.nodes if each.is_running]

    def _live(self) -> Node:
        return self._running()[0]

    @staticmethod
    def _known(node: Node) -> int:
        return len(node.ask("CLUSTER", "NODES").splitlines())

    @staticmethod
    def _owner_port(node: Node, slot: int) -> int | None:
        """The port that a node says; None while it knows no owner, as between a failover and its news."""
        return next((int(each[2][1]) for each in node.ask("CLUSTER", "SLOTS") if each[0] <= slot <= each[1]), None)

    def _owns(self, node: Node, slot: int) -> bool:
        with suppress(redis.RedisError):
            return self._owner_port(node, slot) == node.port
        return False

    def _has_slots(self, node: Node) -> bool:
        return any(each[2][1] == node.port for each in node.ask("CLUSTER", "SLOTS"))
