"""Streams that others add to, withdraw from, trim, delete and make again, against a model that knows every entry."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from coordinator import LocalCluster, RunOptions, TransactionalTopologyBuilder
from coordinator.sources.redis_streams.redis_streams import RedisStreams
from state.codec import unpack
from state.errors import SourceError, StateRefusedError, UserCodeError
from tests.coordinator.sources.contract import Keep

pytestmark = pytest.mark.redis

SEEDS = 150
STEPS = ("add", "add", "run", "run", "run", "withdraw", "trim", "trim", "delete")


class World:
    """One stream of numbers, each the id of its entry, and what became of them.

    Attributes:
        there: entries in the stream.
        read: entries that were committed.
        excused: entries that need not be read: withdrawn, or removed before anything was read.
        lost: entries that were trimmed or deleted unread: they have to be named, or skipped if the user wants that.
        is_another: whether the stream was made again, which may be refused though nothing is lost.
    """

    def __init__(self, client: Any, random: Random) -> None:
        self.client, self.random = client, random
        self.last = 0
        self.there: list[int] = []
        self.read: set[int] = set()
        self.excused: set[int] = set()
        self.lost: set[int] = set()
        self.is_another = False

    def add(self) -> None:
        for _ in range(self.random.randint(1, 8)):
            self.last += 1
            self.client.xadd("s", {"n": self.last}, id=f"{self.last}-0")
            self.there.append(self.last)

    def withdraw(self) -> None:
        count = min(len(self.there), self.random.randint(1, 3))
        gone = self.there[-count:] if self.random.random() < 0.4 else self.random.sample(self.there, count)
        if count:
            self.client.xdel("s", *(f"{number}-0" for number in gone))
        self._remove(gone, self.excused)

    def trim(self) -> None:
        left = self.random.randint(0, len(self.there))
        self.client.xtrim("s", maxlen=left, approximate=False)
        self._remove(self.there[: len(self.there) - left], self.lost)

    def delete(self) -> None:
        self.client.delete("s")
        self._remove(self.there, self.lost)
        self.is_another = bool(self.read)
        self.add()
        self.add()

    def _remove(self, gone: list[int], reason: set[int]) -> None:
        (reason if self.read else self.excused).update({*gone} - self.read)
        self.there = [number for number in self.there if number not in gone]

    def synchronise(self) -> None:
        """Notes what the topology has trimmed itself."""
        self.there = [int(entry_id.partition(b"-")[0]) for entry_id, _ in self.client.xrange("s")]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_entry_is_read_once_or_its_loss_is_named_whatever_becomes_of_the_stream(redis_backend, seed):
    random = Random(seed)
    world, take = World(redis_backend.client(), random), random.choice([1, 2, 3, 5])
    is_skipped, follow, trim = random.random() < 0.4, random.random() < 0.5, random.random() < 0.2
    options: dict[str, Any] = {"follow": follow, "trim": trim, "on_trimmed": "skip" if is_skipped else "fail"}
    spout = RedisStreams("s", fields={"n": int}, take=take, url=redis_backend.url, **options)
    builder = TransactionalTopologyBuilder("t", "source", spout)
    builder.set_committer_bolt("keep", Keep()).global_grouping("source")
    with LocalCluster(seed=seed) as cluster:
        for step in random.choices(STEPS, k=12):
            if step != "run":
                getattr(world, step)()
                continue
            try:
                run = cluster.submit(builder.build(), options=RunOptions(max_spout_pending=random.choice([1, 3])))
                for _ in range(20_000):  # bounded: far more than so few entries take
                    if not run.tick():
                        break
                    if follow and random.random() < 0.02 and world.last < 60:
                        world.add()
            except (SourceError, StateRefusedError, UserCodeError):
                assert world.lost - world.read or world.excused or world.is_another, "nothing is wrong with the stream"
                return
            assert not run.tick(), "the run goes on for ever"
            kept = [unpack(packed)[0] for packed in run.state("kept")]
            run.close()
            world.read = {*kept}
            world.synchronise()
            assert len(world.read) == len(kept), "an entry was read twice"
            assert world.read >= {*world.there}, "an entry is there and was not read"
            missing = {*range(1, world.last + 1)} - world.read - world.excused
            assert missing <= (world.lost if is_skipped else set()), "an entry is lost without a word"
