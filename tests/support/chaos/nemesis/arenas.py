"""Where battles take place: servers, an engine, and the strikes that fit them, each with its weight."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import redis

from tests.support.chaos.jobs import await_true
from tests.support.chaos.nemesis.battle import Battle, Starter
from tests.support.chaos.nemesis.driver_spec import DriverSpec, Fate
from tests.support.chaos.nemesis.drivers import MARK, Nursery, Programs
from tests.support.chaos.nemesis.failover import ReplicatedServers
from tests.support.chaos.nemesis.fates import draw_fate, end_points, running_points
from tests.support.chaos.nemesis.processes import marked
from tests.support.chaos.nemesis.servers import ALWAYS, EVERYSEC, Server
from tests.support.chaos.nemesis.spark_strikes import (
    STOPS_BETWEEN_JOBS,
    ClusterStrikes,
    freeze_java,
    freeze_worker,
    kill_java,
    kill_worker,
)
from tests.support.chaos.nemesis.standalone_cluster import SETTINGS, StandaloneCluster
from tests.support.chaos.nemesis.strikes import (
    DiskStrikes,
    ServerStrikes,
    Strike,
    freeze_driver,
    kill_driver,
    raise_zombie,
)

DISK_BYTES = 6 << 20
SHORT_SOCKET_TIMEOUT_S = 0.25
LEFTOVER_TIMEOUT_S = 40.0


class MissingError(Exception):
    """This machine lacks what an arena needs; the message says what."""


class Arena(ABC):
    """Servers and an engine, for one battle after another.

    Args:
        folder: for everything; the caller deletes it.
        program: path of the server's program.

    Attributes:
        name: as on the command line.
        strikes: strike -> weight.
        starter: starts drivers.
        patience_s: the longest wait for a new commit.
        strikes_a_battle: after so many the battle comes to its end.
        socket_timeouts_s: how long a driver's call waits for its answer, one of these in each battle.
        left: processes that outlived the arena, known once it is closed.
    """

    name = ""
    patience_s = 60.0
    fate_timeout_s = 0.7
    strikes_a_battle = 12
    socket_timeouts_s: tuple[float, ...] = (SHORT_SOCKET_TIMEOUT_S, 30.0)
    on_spark = False
    strikes: Mapping[Strike, float]
    starter: Starter
    left: Sequence[int] = ()

    def __init__(self, folder: Path, program: str) -> None:
        self.folder, self.program = folder, program

    @property
    @abstractmethod
    def url(self) -> str:
        """The server's address, for drivers."""

    @abstractmethod
    def connect(self) -> Any:
        """Makes a client of it."""

    @abstractmethod
    def close(self) -> list[int]:
        """Ends everything and returns processes that stay."""

    def refresh(self, draw: Random) -> None:  # noqa: B027 - not every arena has anything to do
        """Makes ready for the next battle; the one before has left only its data."""

    def spec(self, topology_id: str, kind: str, *, reads: bool, bug: str, draw: Random) -> DriverSpec:
        """Returns what the drivers of a battle have in common."""
        return DriverSpec(
            url=self.url,
            topology_id=topology_id,
            kind=kind,
            reads=reads,
            end_path=str(self.folder / f"{topology_id}.end"),
            notes_path="",
            seed=0,
            socket_timeout_s=draw.choice(self.socket_timeouts_s),
            bug=bug,
        )

    def next_fate(self, battle: Battle) -> Fate | None:
        """Draws where a driver is killed, None for nowhere."""
        if battle.draw.random() < 0.3:
            return None
        points = end_points() if battle.is_closed else running_points(on_spark=self.on_spark)
        if battle.spec.kind != "told":
            points = [point for point in points if not point.startswith("spout.")]
        fate = draw_fate(battle.draw, points, battle.record.points)
        if fate.point == "library.loading":
            with contextlib.suppress(redis.RedisError), self.connect() as client:
                client.function_flush()
        return fate


class _OnOneServer(Arena):
    fsyncs: tuple[str, ...] = (EVERYSEC, ALWAYS)

    def __init__(self, folder: Path, program: str) -> None:
        super().__init__(folder, program)
        self.server = Server(program, folder)
        self.server.start()

    @property
    def url(self) -> str:
        return self.server.url

    def connect(self) -> Any:
        return self.server.client()

    def refresh(self, draw: Random) -> None:
        """The server begins empty, so that it restarts as fast as ever, and with one or the other promise."""
        self.server.kill()
        self.server.fsync = draw.choice(self.fsyncs)
        self.server.wipe()
        self.server.start()


class ProcessArena(_OnOneServer):
    """Drivers without Spark on one server with an append-only file."""

    name = "process"

    def __init__(self, folder: Path, program: str) -> None:
        super().__init__(folder, program)
        self.starter = self._nursery = Nursery()
        server = ServerStrikes(self.server)
        self.strikes = {
            kill_driver: 6.0,
            freeze_driver: 0.5,
            raise_zombie: 1.5,
            server.kill: 1.0,
            server.freeze: 0.5,
            server.cut: 4.0,
            server.restore: 2.0,
            server.flush_functions: 0.5,
            server.kill_clients: 0.7,
            server.squeeze_memory: 0.3,
        }

    def close(self) -> list[int]:
        self._nursery.close()
        self.server.kill()
        return []


class DiskArena(_OnOneServer):
    """Drivers without Spark on a server whose disk is a few megabytes: a tmpfs, which only root may mount."""

    name = "disk"
    fsyncs = (EVERYSEC,)  # one that has to write before it answers ends itself when it cannot
    strikes_a_battle = 6

    def __init__(self, folder: Path, program: str) -> None:
        disk = folder / "disk"
        disk.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
        mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
        if mounted.returncode:
            raise MissingError(f"a small disk cannot be mounted: {mounted.stderr.strip()}; run as root")
        self._disk = disk
        try:
            super().__init__(disk, program)
            self.folder = folder
            self.starter = self._nursery = Nursery()
        except BaseException:
            self._unmount()
            raise
        self.strikes = {DiskStrikes(self.server).fill: 2.0, kill_driver: 1.0}

    def close(self) -> list[int]:
        self._nursery.close()
        self.server.kill()
        self._unmount()
        return []

    def _unmount(self) -> None:
        subprocess.run(["umount", str(self._disk)], check=True)


class FailoverArena(Arena):
    """Drivers without Spark that talk, through a proxy, to a primary with a replica."""

    name = "failover"
    strikes_a_battle = 8

    def __init__(self, folder: Path, program: str) -> None:
        super().__init__(folder, program)
        self._servers = ReplicatedServers(program, folder)
        self.starter = self._nursery = Nursery()
        self.strikes = {
            self._servers.promote: 5.0,
            self._servers.fall_silent: 0.7,
            kill_driver: 2.0,
            raise_zombie: 1.0,
        }

    @property
    def url(self) -> str:
        return self._servers.url

    def connect(self) -> Any:
        return self._servers.client()

    def close(self) -> list[int]:
        self._nursery.close()
        self._servers.close()
        return []


class SparkArena(_OnOneServer):
    """`txbatch run` on Spark's local master, on one server with an append-only file."""

    name = "spark"
    patience_s = 300.0
    fate_timeout_s = 15.0
    strikes_a_battle = 10
    on_spark = True

    def __init__(self, folder: Path, program: str) -> None:
        super().__init__(folder, program)
        self._mark = uuid.uuid4().hex
        self.starter = self._programs = Programs(self._mark)
        server = ServerStrikes(self.server)
        self.strikes = {
            kill_driver: 2.0,
            freeze_driver: 0.3,
            raise_zombie: 0.7,
            kill_java: 1.0,
            freeze_java: 0.5,
            kill_worker: 4.0,
            freeze_worker: 0.5,
            server.kill: 1.0,
            server.freeze: 0.3,
            server.cut: 0.7,
            server.restore: 0.3,
            server.flush_functions: 0.3,
            server.kill_clients: 0.5,
        }

    def spec(self, topology_id: str, kind: str, *, reads: bool, bug: str, draw: Random) -> DriverSpec:
        made = super().spec(topology_id, kind, reads=reads, bug=bug, draw=draw)
        return replace(made, master=self.master, conf=self.conf, max_pending=draw.choice((8, 32)))

    @property
    def master(self) -> str:
        """Spark's."""
        return "local[2]"

    conf: tuple[str, ...] = ()

    def close(self) -> list[int]:
        self._programs.close()
        self.server.kill()
        await_true(lambda: not marked(MARK, self._mark), LEFTOVER_TIMEOUT_S)
        return marked(MARK, self._mark)


class ClusterArena(SparkArena):
    """The same on a standalone cluster with speculation, whose executors are killed too."""

    name = "cluster"
    patience_s = 400.0
    conf = SETTINGS

    def __init__(self, folder: Path, program: str) -> None:
        self._cluster = StandaloneCluster(folder)
        try:
            super().__init__(folder, program)
        except BaseException:
            self._cluster.close()
            raise
        cluster = ClusterStrikes(self._cluster)
        self.strikes = {
            cluster.kill_mid_wave: 4.0,
            cluster.kill_between_jobs: 2.0,
            cluster.freeze_executor: 1.0,
            cluster.kill_worker: 2.0,
            cluster.freeze_worker: 1.0,
            kill_driver: 0.3,
        }

    def next_fate(self, battle: Battle) -> Fate:
        return STOPS_BETWEEN_JOBS

    @property
    def master(self) -> str:
        return self._cluster.master

    def close(self) -> list[int]:
        left = super().close()
        self._cluster.close()
        return left


ARENAS: dict[str, type[Arena]] = {
    arena.name: arena for arena in (ProcessArena, DiskArena, FailoverArena, SparkArena, ClusterArena)
}


@contextlib.contextmanager
def opened(name: str, program: str) -> Any:
    """An arena in a temporary folder of its own, closed at the end of the block.

    Raises:
        MissingError: this machine lacks what it needs.
    """
    with tempfile.TemporaryDirectory(prefix="txbatch-nemesis-", ignore_cleanup_errors=True) as folder:
        arena = ARENAS[name](Path(folder), program)
        try:
            yield arena
        finally:
            arena.left = arena.close()
