"""The same faults with a guard taken out: what each guard is good for, and that the tests would notice.

Counting and digest overlap on purpose: a lost frame is found by either. Both out, it is lost. An altered
frame is found by the digest alone, one that is altered on its way into the commit phase by the residue alone.
Guards are taken out inside the Python workers, which is why each task here has a worker of its own.
"""

from __future__ import annotations

import logging
from functools import reduce
from operator import xor

import pytest

from committers.group_commit import decide_group
from coordinated_bolt.transport.frames import FrameKind
from tests.support.spark.bolts import exact_counts, numbers_topology
from tests.support.spark.faults import OneFrame, tasks_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TRANSACTIONS = 4
HIT = 2
# a committer reads in the wave's own job or in a second one, a bolt always in the first
places = pytest.mark.parametrize(
    ("component_id", "early_commit"),
    [("work", True), pytest.param("store", True, marks=pytest.mark.nightly), ("store", False)],
    ids=["work", "store in one job", "store in two jobs"],
)


@pytest.fixture
def run_without(cluster_of_fresh_workers, caplog):
    """Runs with one fault and some guards out; returns the counts and why attempts were replayed."""

    def run(component_id, change, disabled, *, early_commit=True):
        cluster = cluster_of_fresh_workers
        topology = numbers_topology(TRANSACTIONS, parallelism=1, disabled=disabled, is_chained=False)
        tasks = tasks_of(topology, component_id)
        fault = OneFrame(cluster.notes / "hit", tasks, HIT, change, FrameKind.REGULAR, disabled)
        with caplog.at_level(logging.INFO, logger="txbatch"):
            cluster.run(topology, frame_fault=fault, early_commit=early_commit)
        assert fault.marker.read_text(encoding="utf-8").startswith(f"{HIT}:")
        replays = [message for message in caplog.messages if "is replayed" in message]
        return cluster.hash("{numbers}:counts"), replays

    return run


@pytest.fixture
def residue_is_ignored(monkeypatch):
    """Takes out the driver's comparison of what committers have read with what was sent to them."""

    def believing(group, reports):
        residues = {
            attempt: reduce(xor, (r.results[place].edges for r in reports if place < len(r.results)), 0)
            for place, attempt in enumerate(group.attempts)
        }
        group.residues.update(residues)
        return decide_group(group, reports)

    monkeypatch.setattr("coordinator.transactional.machine.commits.decide_group", believing)


@places
@pytest.mark.parametrize("change", ["drop", pytest.param("double", marks=pytest.mark.nightly)])
def test_a_frame_lost_or_doubled_goes_wrong_without_counting_and_digest(
    run_without, component_id, early_commit, change
):
    counts, replays = run_without(component_id, change, ("counting", "digest"), early_commit=early_commit)

    assert replays == []
    assert counts != exact_counts(TRANSACTIONS)


@places
def test_an_altered_frame_goes_wrong_without_the_digest(run_without, component_id, early_commit):
    counts, replays = run_without(component_id, "alter", ("digest",), early_commit=early_commit)

    assert replays == []
    assert counts != exact_counts(TRANSACTIONS)


@pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])
def test_a_frame_altered_on_its_way_to_a_committer_goes_wrong_without_the_residue(
    run_without, residue_is_ignored, early_commit
):
    counts, replays = run_without("store", "alter", (), early_commit=early_commit)

    assert replays == []
    assert counts != exact_counts(TRANSACTIONS)


def test_the_digest_alone_finds_a_lost_frame(run_without):
    counts, replays = run_without("work", "drop", ("counting",))

    assert len(replays) == 1
    assert "tasks did not receive what others sent" in replays[0]
    assert counts == exact_counts(TRANSACTIONS)


def test_counting_alone_finds_a_lost_frame(run_without):
    counts, replays = run_without("work", "drop", ("digest",))

    assert len(replays) == 1
    assert "tuples, 0 arrived" in replays[0]
    assert counts == exact_counts(TRANSACTIONS)
