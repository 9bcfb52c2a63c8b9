"""Whole runs over poison: nothing of a quarantined batch is in the state, all else is, and a replay adds exactly it."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar

import pytest

from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.transactional import SpoutEmitter
from state.errors import StateRefusedError, TopologyError
from tests.support.runs.durable_runs import HeardSpout, Hearing
from tests.support.runs.quarantine_world import POISON, SPOUTS, ParseAndDrop, QuarantineWorld, fold, topology
from tests.support.stores.admin import admin_of

BATCHES = [
    ["a", "b", "c", "d"],
    ["a", POISON, "c", "e"],
    ["b", "b", "b", "f"],
    ["a", "c", "c", POISON],
    ["g", "a", "b", "c"],
]
MORE = [*BATCHES, ["h", "a", "b", "c"], ["i", "a", "b", "c"]]
POISONED = [2, 4]

kinds = pytest.mark.parametrize("kind", SPOUTS)
applications = pytest.mark.parametrize(
    ("applied", "reads"), [(False, True), (True, False)], ids=["not applied", "applied"]
)
readers = pytest.mark.parametrize("reads", [False, True], ids=["blind", "reading"])


def poisoned(kind, batches=BATCHES, **more):
    return topology(SPOUTS[kind](batches), **more)


def world_after(kind, batches=BATCHES, **more):
    """A world in which poisoned batches have been run over."""
    world = QuarantineWorld()
    world.run(poisoned(kind, batches, **more))
    return world


@kinds
@readers
def test_everything_but_the_quarantined_batches_is_in_the_state(kind, reads):
    world = QuarantineWorld()
    statistics = world.run(poisoned(kind, reads=reads))
    assert world.counts() == fold(BATCHES, without=POISONED)
    assert (statistics.quarantined, statistics.committed, statistics.last_txid) == (POISONED, 3, 5)
    assert world.quarantined() == POISONED


@kinds
@readers
def test_a_replay_with_fixed_code_adds_exactly_what_was_left_out(kind, reads):
    world = world_after(kind, reads=reads)
    statistics = world.run(poisoned(kind, reads=reads, is_fixed=True), republish="all")
    assert statistics.republished == {2: 6, 4: 7}
    assert world.counts() == fold(BATCHES)
    assert world.quarantined() == []


@kinds
def test_the_spout_continues_after_a_replay_as_if_there_had_been_none(kind):
    world = world_after(kind)
    world.run(poisoned(kind, is_fixed=True), republish=[4])
    world.run(poisoned(kind, MORE, is_fixed=True), adopt=True)
    assert world.counts() == fold(MORE, without=[2])
    world.run(poisoned(kind, MORE, is_fixed=True), republish="all", adopt=True)
    statistics = world.run(poisoned(kind, MORE, is_fixed=True))
    assert world.counts() == fold(MORE)
    assert (statistics.committed, statistics.last_txid) == (0, 9)


def has_only_what_is_committed(world):
    """The state is the fold of what is committed, without what is quarantined."""
    committed = world.committed()
    return world.counts() == fold(BATCHES[:committed], without=world.quarantined())


@kinds
@applications
def test_no_death_of_a_run_loses_or_doubles_anything(kind, reads, applied):
    for dies_at in count(1):
        world = QuarantineWorld(dies_at)
        has_died = world.dies(poisoned(kind, reads=reads), dies_at, applied=applied, commit_group_max=1)
        assert has_only_what_is_committed(world)
        world.run(poisoned(kind, reads=reads))
        assert world.counts() == fold(BATCHES, without=POISONED)
        assert world.quarantined() == POISONED
        if not has_died:
            break
    assert dies_at > 5


@kinds
@applications
def test_no_death_of_a_replay_loses_or_doubles_anything(kind, reads, applied):
    """After a death the next run is an ordinary one half of the time: it finds nothing that it has to finish."""
    for dies_at in count(1):
        world = QuarantineWorld(dies_at)
        world.run(poisoned(kind, reads=reads))
        fixed = poisoned(kind, reads=reads, is_fixed=True)
        has_died = world.dies(fixed, dies_at, applied=applied, republish="all")
        assert world.counts() == fold(BATCHES, without=world.quarantined())
        if dies_at % 2:
            world.run(poisoned(kind, MORE, reads=reads, is_fixed=True), adopt=True)
            assert world.counts() == fold(MORE, without=world.quarantined())
        if world.quarantined():
            world.run(poisoned(kind, MORE, reads=reads, is_fixed=True), republish="all", adopt=True)
        world.run(poisoned(kind, MORE, reads=reads, is_fixed=True), adopt=True)
        assert world.counts() == fold(MORE)
        if not has_died:
            break
    assert dies_at > 3


@kinds
def test_a_replay_first_commits_what_a_killed_run_has_begun(kind):
    world = QuarantineWorld()
    for dies_at in count(2):
        world = QuarantineWorld()
        assert world.dies(poisoned(kind), dies_at, max_spout_pending=5, commit_group_max=1, max_attempts=1)
        if world.quarantined():
            break
    committed = world.committed()
    assert committed < len(BATCHES)
    statistics = world.run(poisoned(kind, is_fixed=True), republish=[2])
    begun = 0 if kind == "opaque" else statistics.committed - 1
    assert statistics.republished == {2: committed + begun + 1}
    world.run(poisoned(kind, is_fixed=True))
    assert world.counts() == fold(BATCHES)


@kinds
def test_the_record_says_what_failed_and_what_re_creates_the_batch(kind):
    world = world_after(kind)
    record = world.store().quarantined()[0]
    assert (record.txid, record.batch.number, record.set_aside_at_s) == (2, 2, 1_000.0)
    assert (record.cause.component_id, record.cause.reason) == ("parse", "ValueError: this is poison")
    assert record.cause.attempt_count == 2
    assert "raise ValueError" in record.cause.traceback_text
    assert POISON in record.cause.tuple_text
    assert len(record.topology_fingerprint) == 16
    assert record.source_fingerprint == SPOUTS[kind](BATCHES).fingerprint()


@kinds
def test_a_dropped_batch_is_gone_for_good(kind):
    world = world_after(kind)
    store = world.store()
    assert admin_of(store).discard(store.quarantined()[0])
    with pytest.raises(TopologyError, match="has no quarantined txid 2"):
        world.run(poisoned(kind, is_fixed=True), republish=[2])
    world.run(poisoned(kind, is_fixed=True), republish="all")
    assert world.counts() == fold(BATCHES, without=[2])


def test_a_batch_that_is_dropped_under_a_replay_is_not_published():
    world = world_after("whole")
    store = world.store()
    record = store.quarantined()[0]

    ParseAndDrop.drop = lambda: admin_of(store).discard(record)
    with pytest.raises(StateRefusedError, match="quarantined txid 2 of topology 'poisoned' was dropped while"):
        world.run(topology(SPOUTS["whole"](BATCHES), parse=ParseAndDrop(is_fixed=True)), republish=[2])
    assert world.counts() == fold(BATCHES, without=POISONED)


def test_an_emitter_that_raises_on_a_batch_that_its_coordinator_has_cut_is_quarantined():
    world = QuarantineWorld()
    world.run(topology(Numbers(bad=2), is_fixed=True))
    assert world.quarantined() == [2]
    assert world.counts() == fold([["n1"], ["n2"], ["n3"]], without=[2])
    world.run(topology(Numbers(), is_fixed=True), republish="all")
    assert world.counts() == fold([["n1"], ["n2"], ["n3"]])


class Numbers(HeardSpout):
    """Transaction k is the word nk, on which emitters may raise."""

    def __init__(self, bad=0):
        super().__init__([[["n1"]], [["n2"]], [["n3"]]], ["word"])
        self.bad = bad

    def get_emitter(self, conf, context):
        return NumbersEmitter(self.bad, super().get_emitter(conf, context))


class NumbersEmitter(SpoutEmitter):
    def __init__(self, bad, emitter):
        self.bad, self.emitter = bad, emitter

    def emit_batch(self, attempt, metadata, collector):
        if attempt.txid == self.bad:
            raise ValueError("no number")
        self.emitter.emit_batch(attempt, metadata, collector)


def test_a_spout_is_told_of_a_quarantined_batch_when_it_is_replayed_and_not_before():
    Hearing.heard.clear()
    world = QuarantineWorld()
    world.run(topology(Numbers(bad=3), is_fixed=True))
    assert sorted(set(Hearing.heard)) == [1, 2]
    world.run(topology(Numbers(bad=3), is_fixed=True))
    assert 3 not in Hearing.heard, "a new run tells the last group again, but not this one"
    world.run(topology(Numbers(), is_fixed=True), republish="all")
    assert Hearing.heard[-1] == 3
    world.run(topology(Numbers(), is_fixed=True))
    assert Hearing.heard[-2:] == [3, 3], "told again, under the number by which the spout knows it"


class Sparing(SpoutCommitter):
    spared: ClassVar[list[list[Any]]] = []

    def keep(self, batches):
        Sparing.spared.append([*batches])

    def commit(self, attempt):
        """Is told nothing that counts here."""


class Spares(ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        return Sparing()


class SparedWhole(Spares, FixedBatchesSpout):
    """A whole batch is known by the metadata of the coordinator."""


class SparedPartitions(Spares, MemoryTransactionalSpout):
    """The part of a partition is known by its own metadata."""


class SparedOpaque(Spares, OpaqueMemoryTransactionalSpout):
    """The part of a partition is what lies between two positions."""


@pytest.mark.parametrize(
    ("kind", "spared", "bounds"),
    [
        ("whole", SparedWhole, lambda first: first[:1] == [1]),
        ("partitioned", SparedPartitions, lambda first: {p: part[0] for p, part in first.items()} == {0: 2, 1: 2}),
        (
            "opaque",
            SparedOpaque,
            lambda first: {p: (before[0], after[0]) for p, (before, after) in first.items()} == {0: (0, 2), 1: (0, 2)},
        ),
    ],
)
def test_a_committer_is_told_what_to_spare_by_the_numbers_of_partitions_and_from_where_to_where(kind, spared, bounds):
    Sparing.spared.clear()
    spout = SPOUTS[kind](BATCHES)
    spout.__class__ = spared
    QuarantineWorld().run(topology(spout))
    assert bounds(Sparing.spared[-1][0]), Sparing.spared


def test_a_batch_of_another_input_is_replayed_only_if_that_is_accepted():
    world = world_after("whole")
    world.run(poisoned("whole", MORE, is_fixed=True), adopt=True)
    fixed = poisoned("whole", MORE, is_fixed=True)
    with pytest.raises(StateRefusedError, match=r"quarantined txid 2 .* was read from another input"):
        world.run(fixed, republish=[2])
    world.run(fixed, republish=[2], adopt=True)
    assert world.counts() == fold(MORE, without=[4])
