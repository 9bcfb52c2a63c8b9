"""A home and its shards in memory, of which each may go back on its own, and runs that may die at any call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import redis

from state.attempt import TransactionAttempt
from state.codec import unpack
from state.commits.commit import Commit, CommitStatus
from state.commits.write_set import WriteSet
from state.errors import FencedError, TransactionError
from state.keys import Keys
from state.redis_shards.decisions import Decision
from state.redis_shards.sharded_store import ShardedStore
from state.values.state_kind import StateKind, ValueType
from tests.simulation.memory_redis import Content, MemoryRedis
from tests.support.stores.builders import acquire, writes

TOPOLOGY_ID = "wc"
HOME = Keys(TOPOLOGY_ID)
FIELDS = "abcdefgh"


class Died(BaseException):
    """The run is killed."""


@dataclass
class Server:
    """One server; `befores` is what it held before each of its last writes."""

    memory: MemoryRedis = field(default_factory=MemoryRedis)
    befores: list[Content] = field(default_factory=list)

    def go_back(self, lost: int) -> None:
        """Loses its last writes."""
        self.memory.become(self.befores[-lost])
        del self.befores[-lost:]


@dataclass
class RunClient:
    """One run's client of one server; `visit` is told of each call twice, and may raise `Died`."""

    server: Server
    visit: Callable[[], None]

    def execute_command(self, *arguments: Any, **_options: Any) -> Any:
        self.visit()
        before = self.server.memory.content()
        reply = self.server.memory.execute_command(*arguments)
        if arguments[0] == "FCALL" and reply[0] == b"OK":
            self.server.befores.append(before)
        self.visit()
        return reply

    def pipeline(self, transaction: bool) -> Packet:
        assert not transaction
        return Packet(self)

    def close(self) -> None:
        """A client may be closed; the server stays."""


class Packet:
    """Commands that travel together, as redis-py's pipeline."""

    def __init__(self, client: RunClient) -> None:
        self._client = client
        self._commands: list[tuple[Any, ...]] = []

    def __enter__(self) -> Packet:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute_command(self, *arguments: Any) -> None:
        self._commands.append(arguments)

    def execute(self, raise_on_error: bool) -> list[Any]:
        assert not raise_on_error
        replies: list[Any] = []
        for arguments in self._commands:
            try:
                replies.append(self._client.execute_command(*arguments))
            except redis.ResponseError as error:
                replies.append(error)
        return replies


def content_of(txid: int, flavour: int) -> Counter[str]:
    """What a transaction adds; runs of another flavour cut batches of other contents."""
    random = Random(f"{txid} {flavour}")
    return Counter({name: random.randint(1, 9) for name in random.sample(FIELDS, 3)})


class ShardedWorld:
    """The servers, and what was decided.

    Args:
        shard_count: how many shards there are.
        server_count: how many servers they lie on; by default each has its own.

    Attributes:
        servers: of home, and of the shards.
        decided: chain -> the chain below, and what its group has added; of every decision that home ever made.
    """

    def __init__(self, shard_count: int, server_count: int | None = None) -> None:
        self.servers = [Server() for _ in range((server_count or shard_count) + 1)]
        self._numbers = range(shard_count)
        self.decided: dict[str, tuple[str, Counter[str]]] = {}

    def store(
        self, visit: Callable[[], None] = lambda: None, sleep: Callable[[float], None] = lambda _seconds: None
    ) -> ShardedStore:
        """A run's store, checked, not acquired."""
        home, *clients = (RunClient(server, visit) for server in self.servers)
        shards = [clients[number % len(clients)] for number in self._numbers]
        clock = _clock()
        store = ShardedStore(
            "redis://memory",
            TOPOLOGY_ID,
            shard_count=len(shards),
            client=home,
            shard_clients=shards,
            clock=lambda: next(clock),
            sleep=sleep,
        )
        store.check_server()
        return store

    def run(self, random: Random, total: int, visit: Callable[[], None] = lambda: None, flavour: int = 0) -> None:
        """Commits what is not committed of so many transactions, in groups of any size, and confirms."""
        store = self.store(visit)
        adds = self.note_decisions(store)
        found = acquire(store, f"{random.getrandbits(128):032x}")
        committed = found.committed_txid
        assert not committed or found.metadata[f"coordinator:{committed}"] == committed
        while committed < total:
            last = min(total, committed + random.choice([1, 1, 2, 3]))
            store.store_metadata({f"coordinator:{txid}": txid for txid in range(committed + 1, last + 1)})
            attempts = tuple(
                TransactionAttempt(txid, random.getrandbits(60)) for txid in range(committed + 1, last + 1)
            )
            added = sum((content_of(txid, flavour) for txid in range(committed + 1, last + 1)), Counter[str]())
            commit = Commit(attempts, self.write_set(attempts, added), forget=self.forgotten(committed, last))
            adds.append(added)
            reply = store.commit(commit)
            if reply.status is CommitStatus.FENCED:
                raise FencedError(TOPOLOGY_ID)
            if reply.status is not CommitStatus.OK:
                raise TransactionError(f"{reply.status}: {reply.detail}")
            committed = last
        store.confirm()

    def note_decisions(self, store: ShardedStore) -> list[Counter[str]]:
        """Has every decision noted that home is asked to make; returns a list whose last item is what the next adds."""
        decision, added = store._decision, [Counter[str]()]

        def noted(decided: Commit, chain: str, last_txid: int) -> Decision:
            self.decided[chain] = (store._chain, added[-1])
            return decision(decided, chain, last_txid)

        store._decision = noted  # type: ignore[method-assign]
        return added

    @staticmethod
    def write_set(attempts: tuple[TransactionAttempt, ...], added: Mapping[str, int]) -> WriteSet:
        """What a group changes: a hash that is spread, and a list that lies on one shard."""
        log = writes(StateKind.LIST, ValueType.INT, appends=[attempt.txid for attempt in attempts])
        counts = writes(StateKind.HASH, ValueType.INT, increments=dict(added))
        return WriteSet({"counts": counts, "log": log})

    @staticmethod
    def forgotten(committed: int, last: int) -> tuple[str, ...]:
        """The metadata that a commit forgets: of all txids below its last one."""
        return tuple(f"coordinator:{txid}" for txid in range(committed, last) if txid)

    def home_chain(self) -> str:
        """The chain that home has decided."""
        metadata = self.servers[0].memory.hash(HOME.metadata)
        found = [unpack(value) for name, value in metadata.items() if name.startswith(b"shards:")]
        return str(found[0]) if found else ""

    def chain(self, number: int) -> str:
        """The chain that a shard has applied."""
        control = self._memory(number).hash(HOME.shard(number).control)
        return control.get(b"chain", b"").decode()

    def _memory(self, number: int) -> MemoryRedis:
        servers = self.servers[1:]
        return servers[number % len(servers)].memory

    def shown(self, number: int) -> Counter[str]:
        """What a shard shows of the hash."""
        found = self._memory(number).hash(HOME.shard(number).state("counts"))
        return Counter({name.decode(): int(value) for name, value in found.items()})

    def history(self, chain: str) -> Iterator[Counter[str]]:
        """What the groups up to a chain have added, the last one first."""
        while chain:
            chain, added = self.decided[chain]
            yield added

    def check_shards(self) -> None:
        """No shard shows anything but its share of what was decided up to the chain that it names."""
        for number in self._numbers:
            expected = sum(self.history(self.chain(number)), Counter[str]())
            shown = self.shown(number)
            assert shown == Counter({name: count for name, count in expected.items() if name in shown})

    def check_done(self) -> None:
        """Every server has the history that home has, and together they show all of it."""
        chain = self.home_chain()
        assert {self.chain(number) for number in self._numbers} == {chain}
        shown = sum((self.shown(number) for number in self._numbers), Counter[str]())
        assert shown == sum(self.history(chain), Counter[str]())


def _clock() -> Iterator[float]:
    now_s = 0.0
    while True:
        now_s += 0.001
        yield now_s
