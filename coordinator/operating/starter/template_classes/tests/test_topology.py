"""The whole topology in this process: under several schedules, after a crash, and under faults of all kinds."""

import json
from pathlib import Path

import pytest
from coordinator import LocalCluster, prove

from myproject.topology import topology

VISITS = [("/", 5), ("/docs", 60), ("/", 7), ("/pricing", 20), ("/", 8)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with a few visits; two of them make a transaction."""
    file = tmp_path / "visits.jsonl"
    file.write_text("".join(json.dumps({"page": page, "seconds": seconds}) + "\n" for page, seconds in VISITS))
    return str(file)


@pytest.mark.parametrize("seed", range(5))  # a seed is a schedule: the order in which tasks get their turns
def test_every_visit_counts_once(path: str, seed: int) -> None:
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(topology(path, visits_per_batch=2))
        run.run_until_idle()

        assert run.statistics.committed == 3
        assert run.state("visits") == {"/": 3, "/docs": 1, "/pricing": 1}
        assert run.state("seconds") == {"/": 20, "/docs": 60, "/pricing": 20}


@pytest.mark.parametrize("ticks", [5, 20, 40])
def test_a_run_that_was_given_up_is_continued_exactly(path: str, ticks: int) -> None:
    with LocalCluster(seed=1) as cluster:
        given_up = cluster.submit(topology(path, visits_per_batch=2))
        for _ in range(ticks):
            given_up.tick()
        given_up.close()

        run = cluster.submit(topology(path, visits_per_batch=2))
        run.run_until_idle()

        assert run.state("visits") == {"/": 3, "/docs": 1, "/pricing": 1}


def test_whatever_fails_leaves_the_same_state(path: str) -> None:
    proof = prove(topology(path, visits_per_batch=2), seeds=20)  # 20 schedules of faults

    assert proof.holds, proof
