"""Restarts a real server from older files, under runs and between them, and checks what is left.

    python -m tests.support.chaos.gone_back --restarts 500 --cuts 500

A restart kills the server with -9 and starts it from a snapshot that was saved some time before; a cut kills it
and cuts the end off its append-only file, as a power failure does. The runs are the real coordinator, stages and
commits in this process; only Spark is left out, so that a round takes a fraction of a second. After every round
the state has to be the fold of the input up to the committed txid, and in the end the whole of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import redis

from coordinator.engines.spark import stage
from state.redis_client.connection import connect
from state.redis_server.program import find_server_program
from tests.support.chaos.jobs import print_summary
from tests.support.runs.forgetful_world import KINDS, TRANSACTIONS, Told, World, folded, spouts, topology_on

START_TIMEOUT_S = 10.0
TURNS = 60
"""A run of the whole input takes some 20 to 80 turns."""


class MortalServer:
    """A real server in a folder, restarted at will from what it had on disk earlier; a client of it."""

    def __init__(self, folder: Path, program: str, *, append_only: bool) -> None:
        self.folder, self._program, self._append_only = folder, program, append_only
        self._url = f"unix://{folder}/redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.inner: Any = connect(self._url)
        self.saved: list[Path] = []

    def start(self) -> None:
        is_aof = "yes" if self._append_only else "no"
        options = ["--port", "0", "--unixsocket", f"{self.folder}/redis.sock", "--dir", str(self.folder), "--save", ""]
        options += ["--appendonly", is_aof, "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen([self._program, *options], stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                self.inner.ping()
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                time.sleep(0.005)  # there is no event to wait for
            else:
                return
        raise RuntimeError(f"the server does not start: {(self.folder / 'server.log').read_text()[-2000:]}")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def save(self) -> None:
        """Keeps a snapshot of this moment."""
        self.inner.save()
        kept = self.folder / f"snapshot-{len(self.saved)}"
        shutil.copy(self.folder / "dump.rdb", kept)
        self.saved.append(kept)

    def restart_from(self, snapshot: Path) -> None:
        self.kill()
        shutil.copy(snapshot, self.folder / "dump.rdb")
        self.start()

    def cut(self, random: Random) -> int:
        """Kills it and cuts its append-only file anywhere in its second half; returns how many bytes are lost."""
        self.kill()
        (log,) = self.folder.glob("appendonlydir/*.incr.aof")
        size = log.stat().st_size
        keep = random.randint(size // 2, size)
        os.truncate(log, keep)
        self.start()
        return size - keep

    def execute_command(self, *arguments: Any) -> Any:
        return self.inner.execute_command(*arguments)

    def holds(self, key: str, name: str) -> bytes | None:
        value: bytes | None = self.inner.hget(key, name)
        return value

    def close(self) -> None:
        """Called by stores; the server stays."""


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        rounds: restarts or cuts done.
        lost: rounds in which the server lost writes of the run that was going.
        wrong: what was found wrong.
        ended: how runs ended -> how many.
    """

    rounds: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)


@contextmanager
def world_on(server: MortalServer, kind: str, random: Random, folder: Path) -> Iterator[World]:
    Told.server = server
    reads = random.random() < 0.5
    world = World(topology_on(spouts(folder)[kind], reads=reads), server, random, reads)
    with mock.patch.object(stage, "_LazyReader", side_effect=world.reader):
        yield world
        for stack, _ in world.runs:
            stack.close()


def play_round(world: World, server: MortalServer, random: Random, *, by_cut: bool) -> bool:
    """One topology from its start to its end, with the server set back once on the way; whether it lost writes."""
    at = random.randrange(1, TURNS)
    save_at = random.randrange(at)
    world.start()
    server.saved.clear()
    for turn in range(at):
        if turn == save_at and not by_cut:
            server.save()
        if world.runs:
            world.step(0)
    before = server.holds("{forgetful}:txbatch:control", "revision")
    if by_cut:
        server.cut(random)
    else:
        server.restart_from(server.saved[-1])
    is_lost = server.holds("{forgetful}:txbatch:control", "revision") != before
    expected = folded()
    world.check(expected)
    for _ in range(20):  # the run that was going ends or finishes, then others finish the rest
        if not world.runs:
            if world.committed() == TRANSACTIONS:
                break
            world.start()
        while world.runs:
            world.step(0)
            world.check(expected)
    assert world.committed() == TRANSACTIONS
    return is_lost


def set_back(program: str, rounds: int, *, by_cut: bool, seed: int) -> Outcome:
    """Plays `rounds` rounds, in turn over all kinds of spout."""
    outcome = Outcome()
    random = Random(seed)
    with tempfile.TemporaryDirectory(prefix="txbatch-") as name:
        server = MortalServer(Path(name), program, append_only=by_cut)
        server.start()
        try:
            while outcome.rounds < rounds:
                kind = KINDS[outcome.rounds % len(KINDS)]
                with world_on(server, kind, random, Path(name)) as world:
                    try:
                        outcome.lost += play_round(world, server, random, by_cut=by_cut)
                    except AssertionError as error:
                        outcome.wrong.append(f"round {outcome.rounds}, {kind}: {error}")
                    outcome.ended += world.ended
                outcome.rounds += 1
                server.inner.flushall()
                if by_cut:
                    server.inner.bgrewriteaof()
                    while server.inner.info("persistence")["aof_rewrite_in_progress"]:
                        time.sleep(0.005)
        finally:
            server.inner.close()
            server.kill()
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description="Restarts a real server from older files and checks what is left.")
    parser.add_argument("--restarts", type=int, default=20, help="restarts from an older snapshot")
    parser.add_argument("--cuts", type=int, default=20, help="cuts of the append-only file")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program = find_server_program()
    failed = False
    for what, rounds, by_cut in (("restarts", arguments.restarts, False), ("cuts", arguments.cuts, True)):
        outcome = set_back(program, rounds, by_cut=by_cut, seed=arguments.seed)
        print_summary(
            what,
            {
                "rounds": outcome.rounds,
                "lost writes under a run": outcome.lost,
                "runs ended": dict(outcome.ended),
                "wrong": outcome.wrong or "none",
            },
        )
        failed = failed or bool(outcome.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
