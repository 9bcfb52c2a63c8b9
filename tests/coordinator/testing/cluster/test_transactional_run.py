"""A run on the local cluster: how it ends, waits, continues, is fenced, and what its commit phases do."""

from __future__ import annotations

import logging
from datetime import date
from typing import Any, ClassVar

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.frames import Frame
from coordinator import LocalCluster, RunOptions, TransactionalTopologyBuilder
from state import HashState
from state.errors import (
    FailedException,
    FencedError,
    ReplayLimitError,
    StateRefusedError,
    TopologyError,
    TransactionTooLargeError,
    UserCodeError,
)
from tests.support.scenarios.playing import leftovers, play
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Input, Part, Scenario, Trip
from tests.support.scenarios.reference_fold import fold
from tests.support.scenarios.small import small
from tests.support.topologies.components import Count, Lines, LinesCoordinator, build
from tests.support.topologies.typed_states import typed_topology

WIDE = RunOptions(max_spout_pending=8)


class Open(Lines):
    """How many transactions there are is told while it runs; it has no end."""

    ready: ClassVar[int] = 0

    def get_coordinator(self, conf, context):
        return OpenCoordinator()


class OpenCoordinator(LinesCoordinator):
    def __init__(self):
        super().__init__(0)

    def is_ready(self):
        if Open.ready < 0:
            raise FailedException("not now")
        return self.last < Open.ready

    def is_exhausted(self):
        return False


@pytest.fixture
def open_ended():
    Open.ready = 2
    return build(("count", Count(), ["lines"], 2), spout=Open())


def counted(transactions: int) -> dict[str, int]:
    return {f"lines of {txid}": 4 for txid in range(1, transactions + 1)}


def test_a_run_does_nothing_before_it_is_moved(cluster):
    run = cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(2)))
    assert (run.statistics.attempts, run.is_done, run.state("counts")) == (0, False, {})


def test_a_run_is_done_when_the_input_has_ended(cluster):
    run = cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(2)))
    statistics = run.run_until_idle()
    assert run.is_done
    assert not run.tick()
    assert (statistics.committed, statistics.tuples, statistics.failed_attempts) == (2, 8, 0)
    assert run.state("counts") == counted(2)
    assert run.snapshot().txid == 2


@pytest.mark.parametrize("options", [None, RunOptions(), RunOptions(commit_group_max=2), RunOptions(adopt=True)])
def test_one_transaction_is_in_flight_unless_the_options_say_how_many(cluster, options):
    run = cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(6)), options=options)
    while run.tick():
        assert run.statistics.attempts <= run.statistics.committed + 1
    assert run.statistics.waves == 6


def test_a_second_run_goes_on_where_the_first_has_ended(cluster):
    cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(2))).run_until_idle()
    run = cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(5)))
    assert run.run_until_idle().committed == 3
    assert run.state("counts") == counted(5)


def test_a_run_whose_spout_has_nothing_is_idle_and_goes_on_when_it_has(cluster, open_ended):
    run = cluster.submit(open_ended, options=WIDE)
    assert run.run_until_idle().committed == 2
    assert (run.is_done, run.tick(), run.state("counts")) == (False, False, counted(2))
    Open.ready = -1
    assert run.run_until_idle().committed == 2
    Open.ready = 5
    assert run.run_until_idle().committed == 5
    assert run.state("counts") == counted(5)


def test_a_drained_run_commits_what_is_under_way_and_is_done(cluster, open_ended):
    run = cluster.submit(open_ended, options=RunOptions(max_spout_pending=1))
    while not run.statistics.attempts:
        run.tick()
    run.drain()
    assert run.run_until_idle().committed == 1
    assert run.is_done
    assert run.state("counts") == counted(1)


def test_closing_gives_up_what_is_under_way_and_says_that_it_is_not_done(cluster):
    run = cluster.submit(build(("count", Count(), ["lines"], 2), spout=Lines(4)), options=WIDE)
    for _ in range(30):
        assert run.tick()
    assert leftovers(run) != []
    run.close()
    assert leftovers(run) == []
    assert not run.is_done
    with pytest.raises(RuntimeError, match="the run is closed"):
        run.tick()
    run.close()


@pytest.fixture
def typed(cluster):
    run = cluster.submit(typed_topology())
    run.run_until_idle()
    return run


def test_a_part_of_a_state_is_named_as_for_the_command(typed):
    assert typed.state("views:2026-11-21") == typed.state("views")[date(2026, 11, 21)] != {}
    assert typed.state("visitors:wörd/0") == typed.state("visitors:w%C3%B6rd%2F0") == 6


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("views:monday", "part 'monday' of state 'views' is not a date"),
        ("views:2026-11-30", r"state 'views' has no part '2026-11-30'; state\('views'\) has all its parts"),
        ("counts:a", "state 'counts' of topology 'typed' has no parts; name it without 'a'"),
        ("sums", "topology 'typed' declares no state 'sums'; declared: best, blob, counts, days, fewest, last, money"),
    ],
)
def test_a_state_or_a_part_that_is_not_there_is_refused(typed, name, said):
    with pytest.raises(TopologyError, match=said):
        typed.state(name)


BUILDER = TransactionalTopologyBuilder("test", "lines", Lines(1))
COUNTING = build(("count", Count(), ["lines"]))
NO_EFFECT = "submit got message_fault, which has no effect on a transactional topology"
NO_BUILDER = r"submit got .* of type TransactionalTopologyBuilder; give the result of a builder's build"


@pytest.mark.parametrize(
    ("topology", "given", "said"),
    [
        (BUILDER, {}, NO_BUILDER),
        (COUNTING, {"by_hand": ["count"]}, "submit got by_hand, which is for plain topologies"),
        (COUNTING, {"message_fault": lambda message: [message]}, NO_EFFECT),
    ],
    ids=["builder", "by_hand", "message_fault"],
)
def test_what_means_nothing_for_transactions_is_refused(cluster, topology, given, said):
    with pytest.raises(TopologyError, match=said):
        cluster.submit(topology, **given)


class Raising(Count):
    """Raises something of its own in txid 3."""

    def __init__(self, where: str) -> None:
        self.where = where

    def execute(self, tup):
        super().execute(tup)
        self.may_raise("execute")

    def finish_batch(self):
        super().finish_batch()
        self.may_raise("finish_batch")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.attempt = attempt
        self.may_raise("prepare")

    def may_raise(self, where):
        if (where, self.attempt.txid) == (self.where, 3):
            raise ZeroDivisionError(f"in {where}")


@pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch"])
@pytest.mark.parametrize("group", [1, 8])
def test_what_user_code_raises_ends_the_run_with_everything_below_committed(cluster, where, group):
    topology = build(("count", Raising(where), ["lines"], 2), spout=Lines(6))
    run = cluster.submit(topology, options=RunOptions(max_spout_pending=8, commit_group_max=group))
    with pytest.raises(UserCodeError, match=f"ZeroDivisionError: in {where}") as raised:
        run.run_until_idle()
    assert raised.value.component_id == "count"
    assert raised.value.attempt.startswith("3:")
    assert run.state("counts") == counted(2)
    assert (run.is_done, leftovers(run)) == (False, [])
    with pytest.raises(UserCodeError) as again:  # as it cannot go on
        run.tick()
    assert again.value is raised.value


class RaisingWork(BaseBatchBolt):
    output_fields = ("line", "number")

    def execute(self, tup):
        if self.attempt.txid == 3:
            raise LookupError("no such line")
        self.collector.emit(list(tup))


def test_what_a_processing_bolt_raises_ends_the_run_the_same_way(cluster):
    run = cluster.submit(
        build(("work", RaisingWork(), ["lines"], 2), ("count", Count(), ["work"]), spout=Lines(6)), options=WIDE
    )
    with pytest.raises(UserCodeError, match="no such line"):
        run.run_until_idle()
    assert run.state("counts") == counted(2)


def test_a_txid_that_fails_on_every_attempt_ends_the_run(cluster):
    trips = (Trip("b1", 0, 2, "finish", 99),)
    scenario = small(trips=trips)
    run = cluster.submit(topology_of(scenario, LocalTally("limit")), options=RunOptions(max_attempts=3))
    with pytest.raises(ReplayLimitError, match=r"txid 2 failed 3 times.*b1-0-2-finish trips"):
        run.run_until_idle()
    assert run.snapshot().states == fold(scenario).states[1]
    assert leftovers(run) == []


def test_a_transaction_that_is_too_large_for_one_commit_ends_the_run_after_the_lower_ones(cluster):
    run = cluster.submit(build(("large", Large(), ["lines"]), spout=Lines(3)))
    with pytest.raises(TransactionTooLargeError, match="txid 2 makes 500,001 changes"):
        run.run_until_idle()
    assert run.state("many") == {"small": 1}


class Large(BaseBatchBolt, ICommitter):
    many = HashState("many")

    def execute(self, tup):
        """Ignores it."""

    def finish_batch(self):
        if self.attempt.txid == 2:
            self.many.increment_many(dict.fromkeys(map(str, range(500_001)), 1))
        else:
            self.many.increment("small")


def test_the_older_of_two_runs_of_a_topology_is_fenced_and_the_newer_is_exact(cluster):
    topology = build(("count", Count(), ["lines"], 2), spout=Lines(6))
    older = cluster.submit(topology)
    while older.statistics.committed < 2:
        older.tick()
    newer = cluster.submit(topology)
    newer.tick()
    with pytest.raises(FencedError, match="'test' was taken over by a newer coordinator"):
        older.run_until_idle()
    assert leftovers(older) == []
    assert newer.run_until_idle().committed == 4
    assert newer.state("counts") == counted(6)


def test_another_input_under_a_known_id_is_refused(cluster):
    cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(2))).run_until_idle()
    other = build(("count", Count(), ["lines"]), spout=Other(2))
    with pytest.raises(StateRefusedError, match=r"stored fingerprint .*Lines', given 'another input'"):
        cluster.submit(other)
    cluster.submit(other, options=RunOptions(adopt="unchecked")).run_until_idle()


class Other(Lines):
    def fingerprint(self):
        return "another input"


FOUR = tuple((("a", txid), ("b", txid), ("c", txid), ("d", txid)) for txid in range(1, 5))


def trace(seed: int, **changes: Any) -> list[Any]:
    """Every frame that is sent, in order."""
    sent: list[Any] = []

    def noted(frame: Frame) -> list[Frame]:
        sent.append(frame)
        return [frame]

    with LocalCluster(seed=seed, receive_capacity=2) as cluster:
        scenario = small(**changes)
        options = RunOptions(max_spout_pending=scenario.window, commit_group_max=scenario.group)
        topology = topology_of(scenario, LocalTally("trace"))
        cluster.submit(topology, options=options, frame_fault=noted).run_until_idle()
    return sent


def test_one_seed_is_one_schedule_and_other_seeds_are_others():
    assert trace(1) == trace(1)
    without_ids = {tuple((f.attempt.txid, f.sender, f.target, f.sequence) for f in trace(seed)) for seed in range(8)}
    assert len(without_ids) == 8


def test_the_next_commit_phase_begins_beside_a_wave_that_is_being_processed():
    """What follows from an event is begun at once, not when everything else has come to rest."""
    committing, processing = (5, 6), (1, 2, 3, 4)
    overlaps = 0
    for seed in range(10):
        sent = [(frame.attempt.txid, frame.sender) for frame in trace(seed, batches=FOUR, group=1)]
        second = [place for place, (txid, source) in enumerate(sent) if txid == 2 and source in committing]
        third = [place for place, (txid, source) in enumerate(sent) if txid == 3 and source in processing]
        overlaps += min(second) < max(third)
    assert overlaps > 5


# What commit phases do


def reading(tasks: int = 2) -> Part:
    heard = (Input("spout", "default", "fields"),)
    return Part("b0", tasks, heard, mode="keyed", committer=0, operations=("echo", "sums"))


def writing(operations: tuple[str, ...], tasks: int = 2, mode: str = "any") -> Part:
    return Part("b0", tasks, (Input("spout", "default", "shuffle"),), mode=mode, committer=0, operations=operations)


SPOUT = Part("spout", 1, outputs=("default",))


@pytest.mark.parametrize(
    ("part", "changes", "reason"),
    [
        (reading(), {}, "committers read state, so compose transaction by transaction"),
        (
            writing(("last",)),
            {},
            "two tasks changed the same field of a string state, so compose transaction by transaction",
        ),
        (writing(("sums",)), {"operations_max": 3}, "4 operations exceed the limit of 3"),
        (writing(("sums",)), {"trips": (Trip("b0", 1, 3, "finish", 1),)}, "a task composed more than the good prefix"),
    ],
    ids=["readers", "order matters", "over the limit", "a failure in the middle"],
)
def test_a_commit_phase_that_has_to_run_again_runs_on_new_bolts_and_is_exact(caplog, part, changes, reason):
    changes = {"batches": FOUR, "window": 8, "group": 4, "seed": 5, **changes}
    scenario = Scenario(parts=(SPOUT, part), **changes)
    with caplog.at_level(logging.DEBUG, logger="txbatch"):
        play(scenario, topology_id="again")
    assert any(reason in text for text in caplog.messages if text.startswith("commit phase of"))
    attempts = len(FOUR) + 2 * len(scenario.trips)  # of txids 3 and 4
    assert LocalTally.kept["again"]["prepared"] > attempts * part.tasks


def test_a_group_ends_before_a_transaction_that_reads_what_another_task_wrote():
    groups: list[int] = []
    scenario = Scenario(parts=(SPOUT, reading(tasks=3)), batches=FOUR, window=8, group=4)
    play(scenario, watch=lambda run: groups.append(run.statistics.commit_groups))
    alone = Scenario(parts=(SPOUT, reading(tasks=1)), batches=FOUR, window=8, group=4)
    play(alone, watch=lambda run: groups.append(run.statistics.commit_groups))
    assert groups == [4, 1]


def test_finish_batch_of_committers_goes_by_txid_though_tuples_come_as_they_like():
    orders = []
    for seed in range(20):
        InOrder.events = []
        with LocalCluster(seed=seed) as cluster:
            topology = build(("count", InOrder(), ["lines"]), spout=Lines(6), spout_tasks=2)
            cluster.submit(topology, options=RunOptions(max_spout_pending=12)).run_until_idle()
        assert [txid for what, txid in InOrder.events if what == "finish"] == [1, 2, 3, 4, 5, 6]
        orders.append([txid for what, txid in InOrder.events if what == "execute"])
    assert any(order != sorted(order) for order in orders)


class InOrder(Count):
    events: ClassVar[list[tuple[str, int]]] = []

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.attempt = attempt

    def execute(self, tup):
        super().execute(tup)
        InOrder.events.append(("execute", self.attempt.txid))

    def finish_batch(self):
        InOrder.events.append(("finish", self.attempt.txid))
        super().finish_batch()
