"""Whole runs over random topologies, with faults of frames on the way: the committed state is exact.

Plan, stages, frames, counting, ack tree, group commit and driver loop are the real ones; only Spark is
replaced by lists and Redis by a dictionary.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, suppress
from typing import ClassVar
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.tracking import Tracking
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import FrameKind
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import FailedException, HashState
from tests.support.runs.scenario_runs import drawn_at_length, run_scenario
from tests.support.runs.whole_runs import (
    Count0,
    Counting,
    Crash,
    CrashingStore,
    OneFault,
    crash_points,
    in_both_modes,
    run,
)
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario, random_scenario
from tests.support.scenarios.reference_fold import fold
from tests.support.stores.checked_store import CheckedStore
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import Lines, Pass, plan

scenarios = st.randoms(use_true_random=False).map(random_scenario)


@drawn_at_length(60)
@given(scenarios, crash_points, st.booleans())
def test_a_driver_killed_before_or_after_any_call_goes_on_exactly(scenario: Scenario, crashes, early_commit):
    """What frames that are disturbed do on these topologies is in `test_random_whole_runs`."""
    store, topology = CrashingStore(crashes), topology_of(scenario, LocalTally("killed"))
    while True:
        with suppress(Crash):
            run_scenario(scenario, topology, store, plan(topology), early_commit=early_commit)
            break
    left = CheckedStore(fold(scenario).states)
    left.states, left.committed = store.states, store.committed
    left.check()
    assert [txid for group in store.committed for txid in group] == list(range(1, len(scenario.batches) + 1))


def counted(transactions, copies=1):
    """What four lines of each transaction leave."""
    lines = {f"lines of {txid}": 4 * copies for txid in range(1, transactions + 1)}
    return {"counts0": {**lines, "all": 4 * copies * transactions}}


class Swallowing(Counting):
    """Makes nothing of an exception when it reads."""

    counts = HashState("counts0")

    def finish_batch(self):
        for line, number in Counter(line for line, _ in self.rows).items():
            try:
                before = self.counts.get(line) or 0
            except Exception:  # noqa: BLE001 - what users do
                before = 1_000
            self.counts.put(line, before + number)
            self.counts.increment("all", number)


@in_both_modes
@pytest.mark.parametrize("commit_group_max", [1, 3, 64])
def test_a_committer_that_swallows_exceptions_cannot_commit_what_it_has_not_read(commit_group_max, early_commit):
    builder = TransactionalTopologyBuilder("test", "lines", Lines(6, 4), parallelism=2)
    builder.set_bolt("count", Swallowing(), 2).fields_grouping("lines", ["line"])
    store = MemoryStore()
    run(builder.build(), store, commit_group_max=commit_group_max, early_commit=early_commit)
    assert store.states == counted(6)


HARMFUL = [("drop", FrameKind.REGULAR), ("double", FrameKind.REGULAR), ("alter", FrameKind.REGULAR)]


def word_count():
    builder = TransactionalTopologyBuilder("test", "lines", Lines(4, 4), parallelism=2)
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count0(), 2).fields_grouping("pass", ["line"])
    return builder.build()


WITHOUT = {
    "counting": mock.patch.object(Tracking, "_is_matched", return_value=True),
    "digest": mock.patch.object(EdgeDigest, "edge_id", return_value=0),  # edges say nothing
}


@in_both_modes
@pytest.mark.parametrize("component_id", ["pass", "count"])
@pytest.mark.parametrize(("kind", "frame_kind"), HARMFUL, ids=lambda part: str(getattr(part, "name", part)))
def test_exactly_the_attempt_of_the_faulty_frame_fails(component_id, kind, frame_kind, early_commit):
    store, fault = MemoryStore(), OneFault(component_id, kind, frame_kind)
    coordinator = run(
        word_count(), store, fault=fault, is_chained=False, max_spout_pending=8, early_commit=early_commit
    )
    assert fault.is_done
    assert store.states == counted(4)
    assert coordinator.statistics.failed_attempts == 3  # txid 2, and with it 3 and 4
    assert store.committed[0] == [1]


@in_both_modes
@pytest.mark.parametrize("component_id", ["pass", "count"])
@pytest.mark.parametrize(
    ("without", "kind", "is_exact"),
    [
        *((("counting",), kind, True) for kind in ("drop", "double", "alter")),
        *((("digest",), kind, kind != "alter") for kind in ("drop", "double", "alter")),
        *((("counting", "digest"), kind, False) for kind in ("drop", "double", "alter")),
    ],
    ids=str,
)
def test_digest_or_counting_keeps_the_result_exact_and_without_both_a_wrong_one_would_be_committed(
    component_id, without, kind, is_exact, early_commit
):
    """Counting alone notices no altered tuple."""
    store, fault = MemoryStore(), OneFault(component_id, kind, FrameKind.REGULAR)
    with ExitStack() as guards:
        for guard in without:
            guards.enter_context(WITHOUT[guard])
        run(word_count(), store, fault=fault, is_chained=False, max_spout_pending=8, early_commit=early_commit)
    assert fault.is_done
    assert (store.states == counted(4)) is is_exact


class Header(Pass):
    """Fails once, before it has sent anything."""

    failures: ClassVar[list[FailedException]] = []

    def execute(self, tup):
        if self.attempt.txid == 2 and Header.failures:
            raise Header.failures.pop()
        super().execute(tup)


class Strict(Pass):
    """Raises if it is given a row before the header."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.header: str | None = None

    def execute(self, tup):
        if tup.source_component == "header":
            self.header = tup["line"]
        elif self.header is None:
            raise KeyError("row without a header")
        super().execute(tup)


def test_what_a_bolt_raises_behind_a_failed_one_does_not_halt_the_run():
    Header.failures[:] = [FailedException("later")]
    builder = TransactionalTopologyBuilder("test", "lines", Lines(4, 4))
    builder.set_bolt("header", Header()).shuffle_grouping("lines")
    builder.set_bolt("rows", Pass()).shuffle_grouping("lines")
    builder.set_bolt("strict", Strict()).shuffle_grouping("header").shuffle_grouping("rows")
    builder.set_bolt("count", Count0()).shuffle_grouping("strict")
    store = MemoryStore()
    coordinator = run(builder.build(), store, max_spout_pending=8)
    assert store.states == counted(4, copies=2)
    assert coordinator.statistics.failed_attempts == 3
