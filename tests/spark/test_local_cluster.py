"""Executors as processes of their own: what they need is shipped, and one may die between the two jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.spark import cluster_driver
from tests.support.spark.cluster_driver import SIZE, TRANSACTIONS
from tests.support.spark.elsewhere import shaky_bolts
from tests.support.spark.installed import python_in, spark_home_in

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.chaos,
    pytest.mark.timeout(400),
]

REPOSITORY = Path(__file__).resolve().parents[2]


class Outcome:
    """What one topology left: the driver's words and the server's content."""

    def __init__(self, said: dict[str, Any], client: redis.Redis, topology_id: str) -> None:
        self.said = said
        self.work = said["work"]
        self.counts = self._hash(client, f"{{{topology_id}}}:counts")
        self.sizes = self._hash(client, f"{{{topology_id}}}:sizes")
        self.weights = self._hash(client, f"{{{topology_id}}}:weights")
        members: Any = client.smembers(f"{{{topology_id}}}:workers")
        self.workers = sorted(member.decode() for member in members)

    @staticmethod
    def _hash(client: redis.Redis, key: str) -> dict[int, int]:
        found: Any = client.hgetall(key)
        return {int(field): int(value) for field, value in found.items()}

    def was_done_again(self) -> bool:
        """Whether some task did some attempt more than once: the shuffle files were lost."""
        return max(Counter((attempt, task) for attempt, task, *_ in self.work).values()) > 1


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, valkey_url) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("elsewhere")
    libraries = sysconfig.get_path("purelib")  # without the .pth file by which this checkout is found
    (folder / "shaky_bolts.py").write_bytes(Path(shaky_bolts.__file__).read_bytes())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "PYSPARK_PYTHON": str(python_in(folder, f"$PYTHONPATH:{libraries}", "-S")),
        "SPARK_HOME": str(spark_home_in(folder)),
        "SPARK_LOCAL_DIRS": str(folder / "spark-local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
        driver = subprocess.run(
            [sys.executable, cluster_driver.__file__, str(REPOSITORY), str(folder), valkey_url],
            cwd=folder,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=380,
        )
        assert driver.returncode == 0, driver.stderr[-8000:]
        sys.stderr.write(driver.stderr[-8000:])
        said = json.loads(driver.stdout.splitlines()[-1])
        return {topology_id: Outcome(said[topology_id], client, topology_id) for topology_id in said}


@pytest.fixture(params=["round_robin", "random", "in_order"])
def outcome(request, outcomes) -> Outcome:
    found: Outcome = outcomes[request.param]
    return found


def test_our_packages_and_the_users_module_are_shipped(outcome):
    for _, _, users_file, our_file in outcome.work:
        assert ".zip/shaky_bolts.py" in users_file
        assert ".zip/state/__init__.py" in our_file


def test_an_executor_killed_between_the_jobs_makes_work_be_done_again(outcome):
    assert outcome.said["killed"]
    assert outcome.was_done_again()


def test_every_number_is_counted_once_whatever_was_killed(outcome):
    assert outcome.said["last_txid"] == TRANSACTIONS
    assert outcome.counts == dict.fromkeys(range(TRANSACTIONS * SIZE), 1)
    assert outcome.sizes == dict.fromkeys(range(1, TRANSACTIONS + 1), SIZE)


def test_work_that_comes_out_the_same_again_is_not_replayed(outcomes):
    assert outcomes["round_robin"].said["failed_attempts"] == 0
    assert outcomes["in_order"].said["failed_attempts"] == 0


def test_work_that_comes_out_otherwise_is_replayed_and_never_mixed(outcomes):
    outcome = outcomes["random"]

    assert outcome.said["failed_attempts"] > 0
    done = Counter(tuple(worker.split()[:2]) for worker in outcome.workers)
    assert done == {(str(txid), str(task)): 1 for txid in range(1, TRANSACTIONS + 1) for task in range(2)}


def test_work_that_depends_on_the_order_equals_an_independent_fold(outcomes):
    expected = {}
    for txid in range(1, TRANSACTIONS + 1):
        first, end = (txid - 1) * SIZE, txid * SIZE
        weight = 0
        for lane in shaky_bolts.LANES:  # each is one task's, and its numbers come from one emitter after the other
            came = [n for task in range(2) for n in range(first + task, end, 2) if shaky_bolts.lane(n) == lane]
            weight += sum(number * place % 1_000_003 for place, number in enumerate(came, 1))
        expected[txid] = weight

    assert outcomes["in_order"].weights == expected
