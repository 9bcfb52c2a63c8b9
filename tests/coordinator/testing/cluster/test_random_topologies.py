"""Random topologies under random fates, against a fold written apart.

By default 150 examples, always the same; `TXBATCH_RANDOM_EXAMPLES=1000` draws as many others. What the suite
is good for is shown by taking guards out: every planted bug has to be found among a few hundred scenarios.
"""

from __future__ import annotations

from contextlib import ExitStack
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from coordinated_bolt.completeness.tracking import Tracking
from coordinated_bolt.transport.edges import EdgeDigest
from coordinator.testing.cluster.batch_tasks import CommittingTask
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.patch import planted
from tests.support.runs.scenario_runs import drawn_at_length
from tests.support.scenarios.planted import is_found
from tests.support.scenarios.playing import RandomFrameFaults, play
from tests.support.scenarios.random_topologies import Scenario, random_scenario

scenarios = st.randoms(use_true_random=False).map(random_scenario)


@pytest.mark.timeout(1800)
@drawn_at_length(150)
@given(scenarios)
def test_every_commit_leaves_the_state_of_the_fold_and_a_run_leaves_nothing_else(scenario: Scenario):
    play(scenario, watch=lambda run: event(f"failed attempts: {min(run.statistics.failed_attempts, 5)}"))


def test_scenarios_are_of_every_kind():
    """A generator that has lost a kind of thing would go unnoticed: everything passes."""
    drawn = [random_scenario(Random(seed)) for seed in range(300)]
    bolts = [part for scenario in drawn for part in scenario.parts[1:]]
    assert {heard.grouping for part in bolts for heard in part.inputs} == {
        *("shuffle", "none", "local", "fields", "partial", "all", "global", "direct", "by_key", "twice", "drop_fives")
    }
    assert {heard.stream for part in bolts for heard in part.inputs} == {"default", "side", "named"}
    assert {part.behaviour for part in bolts} == {
        *("pass", "filter", "multiply", "rekey", "silent", "partial_sum", "sum", "size", "running")
    }
    assert len({operation for part in bolts for operation in part.operations}) == 16
    assert max(len(scenario.parts) for scenario in drawn) == 8
    assert max(len(scenario.committers()) for scenario in drawn) == 4
    assert {trip.phase for scenario in drawn for trip in scenario.trips} == {
        *("emit", "prepare", "execute", "finish", "finished", "cleanup")
    }
    assert {what for scenario in drawn for _, what in scenario.interruptions} == {"abandon", "timeout"}
    fed_by = [{by_id(scenario, heard.source) for heard in p.inputs} for scenario in drawn for p in scenario.parts]
    assert any(kinds == {"committer", "bolt"} for kinds in fed_by), "the shape that livelocks in Storm, P-04"
    assert any(not batch for scenario in drawn for batch in scenario.batches)
    assert any(scenario.partitions for scenario in drawn)


def by_id(scenario: Scenario, component_id: str) -> str:
    part = next(part for part in scenario.parts if part.component_id == component_id)
    return "bolt" if part.committer is None else "committer"


@pytest.mark.nightly
def test_faults_hit_frames_of_every_kind_and_attempts_are_replayed():
    faults: list[RandomFrameFaults] = []
    failed: list[int] = []
    for seed in range(60):
        scenario = random_scenario(Random(seed))
        faults.append(RandomFrameFaults(Random(seed), scenario.fault_budget))
        play(scenario, watch=lambda run: failed.append(run.statistics.failed_attempts), fault=faults[-1])
    assert {kind.name for fault in faults for _, kind in fault.done} >= {"REGULAR", "COORD", "ACK"}
    assert len({what for fault in faults for what, _ in fault.done}) == 7
    assert sum(map(bool, failed)) > 15


# Planted bugs


def give_every_id(self):
    for attempt in self._group[len(self._commit.report.results) :]:
        if self._wiring.needs_id:
            self._commit.task.id(attempt)


def ignore(*_):
    return None


def catalogued(name):
    return planted(MUTANTS[name].patches)


counting_off = mock.patch.object(Tracking, "_is_matched", return_value=True)
digest_off = mock.patch.object(EdgeDigest, "edge_id", return_value=0)

PLANTED: dict[str, list[Any]] = {
    "one-sum-for-all-senders, and no digest": [catalogued("one-sum-for-all-senders"), digest_off],
    "neither counting nor digest": [counting_off, digest_off],
    "no digest": [digest_off],
    "residue-ignored": [catalogued("residue-ignored")],
    "a failure that does not stick": [mock.patch.object(Tracking, "fail", ignore)],
    "finish_batch in the order of arrival": [mock.patch.object(CommittingTask, "_give_id", give_every_id)],
    "groups that do not end before a read": [
        mock.patch("committers.group_commit._reads_anothers_write", return_value=False)
    ],
    "own-earlier-writes-unseen": [catalogued("own-earlier-writes-unseen")],
    "commit phases that run again on used bolts": [mock.patch.object(CommittingTask, "prepare", ignore)],
    "frames of lower attempts that are kept for ever": [mock.patch.object(CommittingTask, "forget", ignore)],
    "failure-drops-itself-only": [catalogued("failure-drops-itself-only")],
}


@pytest.mark.parametrize("bug", PLANTED)
@pytest.mark.nightly
def test_a_planted_bug_is_found(bug):
    with ExitStack() as bugs:
        for patch in PLANTED[bug]:
            bugs.enter_context(patch)
        assert is_found(lambda seed: play(random_scenario(Random(seed))), range(500))
