"""What the simulation makes of a torn append-only file is what Redis 7 makes of one, start after start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.simulation.append_only_file import AppendOnlyFile
from tests.simulation.memory_redis import MemoryRedis, Unit, dump_of
from tests.support.chaos.nemesis.servers import ALWAYS, Server
from tests.support.stores.builders import dump

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]
STARTS, WRITES = 12, 4
CONTROL = b"h0"


@pytest.fixture
def server(tmp_path_factory) -> Iterator[Server]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is missing")
    made = Server(program, tmp_path_factory.mktemp("s"))
    made.fsync = ALWAYS
    made.start()
    yield made
    made.kill()


def drawn_write(random: Random) -> Unit:
    """One command, or a few that are written as one."""
    return tuple(
        random.choice(
            [
                (b"HINCRBY", b"h0", b"n", b"1"),
                (b"HSET", b"h%d" % random.randrange(3), b"f%d" % random.randrange(3), b"%d" % random.randrange(99)),
                (b"RPUSH", b"l", b"%d" % random.randrange(99)),
                (b"UNLINK", b"l", b"h1"),
            ]
        )
        for _ in range(random.choice([1, 2, 4]))
    )


def written(server: Server, unit: Unit) -> None:
    with server.client() as client, client.pipeline(transaction=len(unit) > 1) as pipeline:
        for command in unit:
            pipeline.execute_command(*command)
        pipeline.execute()


def log_of(server: Server) -> Path:
    (log,) = server.folder.glob("appendonlydir/*.incr.aof")
    return log


def ends_of_commands(data: bytes) -> list[int]:
    """Where each command of some bytes of a log ends, and with it the next one begins."""
    ends, at = [], 0
    while at < len(data):
        line_end = data.index(b"\r\n", at)
        count, at = int(data[at + 1 : line_end]), line_end + 2
        for _ in range(count):
            line_end = data.index(b"\r\n", at)
            at = line_end + 2 + int(data[at + 1 : line_end]) + 2
        ends.append(at)
    return ends


class Both:
    """A server, and the model of its file."""

    def __init__(self, server: Server) -> None:
        self.server, self.inner = server, MemoryRedis()
        self.file = AppendOnlyFile(self.inner.applied, CONTROL)
        self.sizes = [log_of(server).stat().st_size]

    def write(self, unit: Unit) -> None:
        """Both write; what changes nothing is in neither file."""
        written(self.server, unit)
        for command in unit:
            self.inner.execute_command(*command)
        commands = tuple(command for each in self.inner.written() for command in each)
        size = log_of(self.server).stat().st_size
        if commands:
            self.file.add(self.inner.content(), [commands])
            self.sizes.append(size)
        assert bool(commands) == (size != self.sizes[-1 - bool(commands)])

    def tear_last(self) -> None:
        """Both lose the last write but for its first commands."""
        unit = self.file.last.units[0]
        drawn = Drawn()
        self.file.tear(1, drawn)
        self.server.kill()
        data = log_of(self.server).read_bytes()
        start = self.sizes[-2]
        ends = ends_of_commands(data[start:])
        commands = len(ends) - (1 + len(unit) + 1)  # a SELECT, after a start
        kept = start + ends[commands + drawn.drawn]
        self._start(data[: kept + 4])

    def _start(self, data: bytes) -> None:
        log_of(self.server).write_bytes(data)
        self.server.start()
        self.show()

    def restart(self) -> None:
        """Both are started again."""
        self.file.cut(0)
        self.server.kill()
        self.server.start()
        self.show()

    def show(self) -> None:
        """Both hold what their file has, and it is the same."""
        self.inner.become(self.file.last.content)
        self.sizes.append(log_of(self.server).stat().st_size)
        with self.server.client() as client:
            assert dump_of(self.inner) == dump(client)


class Drawn(Random):
    """Draws, and remembers it."""

    drawn = 0

    def randint(self, a: int, b: int) -> int:
        self.drawn = super().randint(a, b)
        return self.drawn


def test_a_server_whose_file_is_torn_again_and_again_holds_what_the_simulation_says(server):
    random = Random("torn")
    both = Both(server)
    halves = 0
    for _ in range(STARTS):
        for _ in range(random.randint(1, WRITES)):
            both.write(drawn_write(random))
        if both.file.last.may_be_torn and random.random() < 0.7:
            both.tear_last()
        else:
            both.restart()
            halves += both.file.last.is_damaged
    assert halves
