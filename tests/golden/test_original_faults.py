"""Faults of the originals that show only in a whole run: none of them is repeated.

The numbers are those of the catalogue of known faults. Those that one object alone can show are tested
beside that object, under the same names.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import HashState
from state.errors import FailedException, FencedError, ReplayLimitError
from tests.support.tasks.one_task import OneTask
from tests.support.tasks.wirings import RecordingBolt, attempt
from tests.support.topologies.components import Lines, Pass

TRANSACTIONS, TUPLES = 4, 5
SEEDS = range(6)


class Life:
    """What became of every bolt that was made, and which of them fail; the engine runs in this process."""

    prepared: ClassVar[Counter[str]] = Counter()
    cleaned_up: ClassVar[Counter[str]] = Counter()
    failing: ClassVar[Counter[int]] = Counter()


@pytest.fixture(autouse=True)
def fresh():
    for counts in (Life.prepared, Life.cleaned_up, Life.failing):
        counts.clear()


class Living(Pass):
    """Passes on, and fails its first attempts at some txids."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        Life.prepared[f"{context.component_id} {attempt}"] += 1

    def execute(self, tup):
        if Life.failing[self.attempt.txid]:
            Life.failing[self.attempt.txid] -= 1
            raise FailedException("not yet")
        super().execute(tup)

    def cleanup(self):
        Life.cleaned_up[f"{self.context.component_id} {self.attempt}"] += 1


class Totals(Living, ICommitter):
    """Counts its tuples by line, and passes them on when it finishes."""

    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.rows: list[Any] = []

    def execute(self, tup):
        self.rows.append(list(tup))

    def finish_batch(self):
        for line, _ in self.rows:
            self.counts.increment(line)
        self.collector.emit_all(self.rows)


class Last(Totals):
    counts = HashState("last", value=int)


def exact(copies=1):
    return {f"lines of {txid}": copies * TUPLES for txid in range(1, TRANSACTIONS + 1)}


def straight():
    """The spout, a bolt and a committer, two tasks each."""
    builder = TransactionalTopologyBuilder("test", "lines", Lines(TRANSACTIONS, TUPLES), parallelism=2)
    builder.set_bolt("pass", Living(), parallelism=2).shuffle_grouping("lines")
    builder.set_committer_bolt("totals", Totals(), parallelism=2).fields_grouping("pass", ["line"])
    builder.set_message_timeout_s(10)
    return builder.build()


OPTIONS = RunOptions(max_spout_pending=2)


@pytest.mark.case(id="P-04")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_bolt_fed_by_a_bolt_and_by_a_committer_ends_and_hears_both(seed):
    builder = TransactionalTopologyBuilder("test", "lines", Lines(TRANSACTIONS, TUPLES), parallelism=2)
    builder.set_bolt("pass", Pass(), parallelism=2).shuffle_grouping("lines")
    builder.set_committer_bolt("totals", Totals(), parallelism=2).shuffle_grouping("pass")
    builder.set_bolt("both", Pass(), parallelism=2).shuffle_grouping("pass").shuffle_grouping("totals")
    builder.set_committer_bolt("last", Last(), parallelism=2).shuffle_grouping("both").shuffle_grouping("lines")
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(builder.build(), options=OPTIONS)
        assert run.run_until_idle().failed_attempts == 0
        assert run.is_done
        assert run.state("counts") == exact()
        assert run.state("last") == exact(copies=3)


@pytest.mark.case(id="P-07")
@pytest.mark.parametrize("kind", [FrameKind.REGULAR, FrameKind.COORD])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_that_lost_a_frame_never_succeeds_and_its_replay_counts_once(seed, kind):
    lost: list[Frame] = []

    def lose_one(frame):
        if frame.kind is kind and frame.attempt.txid == 2 and not lost:
            lost.append(frame)
            return ()
        return (frame,)

    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(straight(), options=OPTIONS, frame_fault=lose_one)
        statistics = run.run_until_idle()
        assert len(lost) == 1
        assert statistics.failed_attempts >= 1
        assert run.state("counts") == exact()


@pytest.mark.case(id="P-09")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_is_kept_as_long_as_the_coordinator_waits_for_it(seed):
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(straight(), options=RunOptions(max_spout_pending=1))
        for _ in range(15):
            run.tick()
        run.advance_time(9.9)  # of 10
        assert run.run_until_idle().attempts == TRANSACTIONS
        assert run.state("counts") == exact()


@pytest.mark.case(id="P-09")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_the_coordinator_has_given_up_is_replayed_and_counts_once(seed):
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(straight(), options=RunOptions(max_spout_pending=1))
        for _ in range(15):
            run.tick()
        run.advance_time(10.1)
        assert run.run_until_idle().attempts == TRANSACTIONS + 1
        assert run.state("counts") == exact()


@pytest.mark.case(id="P-09")
def test_a_task_forgets_no_batch_however_many_come_and_go_meanwhile():
    task, slow = OneTask(RecordingBolt(), targets=(21,)), attempt(1)
    task.regular(1, "a", of=slow)
    for txid in range(2, 500):
        assert task.finish(0, of=attempt(txid)).failure is None
    task.coord(1, 1, of=slow)
    assert task.bolt.is_finished(slow)
    assert task.end(slow).failure is None


@pytest.mark.case(id="P-10")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_bolt_that_was_made_is_cleaned_up_once_those_of_failed_attempts_too(seed):
    Life.failing.update({1: 2, 3: 1})
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(straight(), options=OPTIONS)
        statistics = run.run_until_idle()
        assert run.state("counts") == exact()
    assert statistics.failed_attempts >= 2
    assert sum(Life.prepared.values()) > 2 * 2 * TRANSACTIONS
    assert Life.cleaned_up == Life.prepared


@pytest.mark.case(id="P-13")
@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_runs_of_one_topology_the_older_stops_and_nothing_counts_twice(seed):
    with LocalCluster(seed=seed) as cluster:
        older = cluster.submit(straight(), options=OPTIONS)
        for _ in range(40):
            older.tick()
        newer = cluster.submit(straight(), options=OPTIONS)
        with pytest.raises(FencedError, match="topology 'test' was taken over by a newer coordinator"):
            older.run_until_idle()
        newer.run_until_idle()
        assert newer.is_done
        assert newer.state("counts") == exact()


@pytest.mark.case(id="P-15")
def test_two_attempts_at_one_txid_in_flight_together_share_nothing():
    """The first attempt at txid 1 is void while its tuples are still on the way to the tasks of the second."""
    Life.failing[1] = 1
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(straight(), options=RunOptions(max_spout_pending=4))
        run.run_until_idle()
        assert run.state("counts") == exact()
    attempts_at_1 = {name for name in Life.prepared if name.startswith("pass 1:")}
    assert len(attempts_at_1) == 2


@pytest.mark.case(id="P-16")
def test_a_poison_batch_stops_the_run_with_its_reason_and_blocks_nothing_below_it():
    Life.failing[3] = 1_000
    with LocalCluster() as cluster:
        run = cluster.submit(straight(), options=RunOptions(max_spout_pending=4, max_attempts=3))
        with pytest.raises(ReplayLimitError, match=r"txid 3 failed 3 times .* FailedException: not yet"):
            run.run_until_idle()
        assert run.state("counts") == {"lines of 1": TUPLES, "lines of 2": TUPLES}


class Silent(BaseBatchBolt):
    """Emits nothing."""

    output_fields = ("line", "number")

    def execute(self, tup):
        """Ignores it."""


@pytest.mark.case(id="P-11")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_without_a_tuple_is_finished_whichever_report_comes_last(seed):
    builder = TransactionalTopologyBuilder("test", "lines", Lines(TRANSACTIONS, TUPLES), parallelism=3)
    builder.set_bolt("silent", Silent(), parallelism=3).shuffle_grouping("lines")
    builder.set_committer_bolt("totals", Totals(), parallelism=2).shuffle_grouping("silent").all_grouping("lines")
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(builder.build(), options=OPTIONS)
        assert run.run_until_idle().failed_attempts == 0
        assert run.state("counts") == exact(copies=2)


@pytest.mark.case(id="P-11")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_is_finished_on_its_last_tuple_if_all_reports_have_overtaken_the_tuples(seed):
    held: dict[Any, list[Frame]] = {}

    def reports_first(frame):
        channel = (frame.attempt, frame.sender, frame.target)
        if frame.kind is FrameKind.REGULAR:
            held.setdefault(channel, []).append(frame)
            return ()
        return (frame, *held.pop(channel, ())) if frame.kind is FrameKind.COORD else (frame,)

    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(straight(), options=OPTIONS, frame_fault=reports_first)
        assert run.run_until_idle().failed_attempts == 0
        assert run.is_done
        assert run.state("counts") == exact()
    assert held == {}
