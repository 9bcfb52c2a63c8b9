"""A run on the local cluster: how it ends, waits, continues, is fenced, and what its commit phases do."""

from __future__ import annotations

from datetime import date
from typing import Any, ClassVar

import pytest

from coordinated_bolt.transport.frames import Frame
from coordinator import LocalCluster, RunOptions, TransactionalTopologyBuilder
from state.errors import FailedException, TopologyError, UserCodeError
from tests.support.scenarios.playing import leftovers
from tests.support.scenarios.random_bolts import LocalTally, topology_of
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
        (
            COUNTING,
            {"by_hand": ["count"]},
            r"submit got by_hand, which is for plain .*call hold\(\"processing\"\) or hold\(",
        ),
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
