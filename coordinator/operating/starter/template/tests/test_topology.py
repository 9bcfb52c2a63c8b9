"""The whole topology in this process: under several schedules, after a crash, and under faults of all kinds."""

import pytest
from coordinator import FixedBatchesSpout, LocalCluster, Topology, prove

from myproject.topology import VISIT, counted

BATCHES = [[["/", 5], ["/docs", 60]], [["/", 7], ["/pricing", 20]], [["/", -3], ["/", 8]]]


def some_visits() -> Topology:
    """Returns the topology over three transactions; one of the visits cannot be true."""
    return counted(FixedBatchesSpout(BATCHES, list(VISIT)))


@pytest.mark.parametrize("seed", range(5))  # a seed is a schedule: the order in which tasks get their turns
def test_every_visit_counts_once(seed: int) -> None:
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(some_visits())
        run.run_until_idle()

        assert run.state("visits") == {"/": 3, "/docs": 1, "/pricing": 1}
        assert run.state("seconds") == {"/": 20, "/docs": 60, "/pricing": 20}
        assert [letter.reason for letter in run.dead_letters()] == ["a visit cannot take -3 seconds"]


@pytest.mark.parametrize("ticks", [5, 20, 40])
def test_a_run_that_was_given_up_is_continued_exactly(ticks: int) -> None:
    with LocalCluster(seed=1) as cluster:
        given_up = cluster.submit(some_visits())
        for _ in range(ticks):
            given_up.tick()
        given_up.close()

        run = cluster.submit(some_visits())
        run.run_until_idle()

        assert run.state("visits") == {"/": 3, "/docs": 1, "/pricing": 1}


def test_whatever_fails_leaves_the_same_state() -> None:
    proof = prove(some_visits(), seeds=20)  # 20 schedules of faults

    assert proof.holds, proof
