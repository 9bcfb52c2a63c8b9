"""A standalone master and its workers as processes, late, killed, restarted: every number is counted once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.support.chaos.jobs import REPOSITORY, Job, Site, await_true
from tests.support.chaos.nemesis.processes import send
from tests.support.chaos.nemesis.standalone_cluster import SETTINGS, StandaloneCluster
from tests.support.spark.paced_job import SIZE

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(600)]

JOB = "tests/support/spark/paced_job.py:topology"
TIMEOUT_S = 120.0
LONG_S = 500.0
NOTICED_S = 30.0
SECRET = ("spark.authenticate=true", "spark.authenticate.secret=between-us")
DECOMMISSIONING = (
    "spark.decommission.enabled=true",
    "spark.storage.decommission.enabled=true",
    "spark.storage.decommission.shuffleBlocks.enabled=true",
)
DYNAMIC = (
    "spark.dynamicAllocation.enabled=true",
    "spark.dynamicAllocation.shuffleTracking.enabled=true",
    "spark.dynamicAllocation.minExecutors=0",
    "spark.dynamicAllocation.executorIdleTimeout=1s",
)


class Field:
    """A cluster, and runs of the paced job on it."""

    def __init__(self, folder: Path, cluster: StandaloneCluster) -> None:
        self.cluster = cluster
        self.site = Site(folder, "numbers", [JOB], LONG_S)

    def run(self, transactions: int, *more: str, conf: Sequence[str] = (), pause_ms: int = 0) -> Job:
        """Starts a run."""
        merged = dict(setting.split("=", maxsplit=1) for setting in (*SETTINGS, *conf))
        settings = [part for key, value in merged.items() for part in ("--conf", f"{key}={value}")]
        given = ("-p", f"transactions={transactions}", "-p", f"pause_ms={pause_ms}")
        return self.site.start(*given, "--master", self.cluster.master, *settings, *more)

    def status(self) -> dict[str, Any]:
        """What `txbatch status --json` says of the run; empty while nothing is stored."""
        command = [sys.executable, "-m", "coordinator.operating.cli", "status", "numbers", "--json"]
        shown = subprocess.run(
            [*command, "--data-dir", str(self.site.data_dir)], cwd=REPOSITORY, capture_output=True, check=False
        )
        run = json.loads(shown.stdout).get("run") if shown.returncode == 0 else None
        return {} if run is None else dict(run["now"])

    def await_committed(self, txid: int, job: Job, timeout_s: float = LONG_S) -> None:
        """Waits until so many transactions are committed."""
        assert await_true(lambda: not job.is_running() or (self.site.committed() or 0) >= txid, timeout_s)
        assert job.is_running(), job.complaint()

    def assert_exact(self, transactions: int) -> None:
        """Every number was counted once; asked of a server that a last, idle run has started."""
        found = self.site.snapshot("HGETALL", "counts")
        assert found is not None
        counts = {int(number): int(count) for number, count in found[1].items()}
        assert (found[0], counts) == (transactions, dict.fromkeys(range(transactions * SIZE), 1))

    def finished(self, job: Job, transactions: int) -> dict[str, Any]:
        """What a run says that ends well; its server ends with it, so another one holds the state to look at."""
        assert job.wait(LONG_S) == 0, job.complaint()
        said = job.said()
        server = self.site.start("-p", f"transactions={transactions + 1}", "-p", "pause_ms=60000")
        try:
            assert await_true(lambda: self.site.committed() == transactions, TIMEOUT_S), server.complaint()
            self.assert_exact(transactions)
        finally:
            server.kill()
        return said


@pytest.fixture
def field(tmp_path, monkeypatch):
    """Makes a cluster: `field(workers=0, remembers=True)`."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    made: list[Field] = []

    def make(**given: Any) -> Field:
        made.append(Field(tmp_path, StandaloneCluster(tmp_path, **given)))
        return made[-1]

    yield make
    for each in made:
        each.site.close()
        each.cluster.close()


Make = Callable[..., Field]


@pytest.mark.nightly
def test_a_slow_start_counts_against_nobody_and_is_said_everywhere(field: Make) -> None:
    cluster = field(workers=0)
    job = cluster.run(60, "-p", "timeout_s=8", "--on-poison", "quarantine", "--max-attempts", "1")
    seen: dict[str, Any] = {}

    def waits() -> bool:
        seen.update(cluster.status())
        return "no worker is registered" in seen.get("cluster", "") or not job.is_running()

    assert await_true(waits, TIMEOUT_S)
    assert seen["state"] == "waiting for executors"
    assert seen["cluster"].startswith("waiting for executors: 0 registered, asked for as many as fit of 512 MiB; ")
    assert await_true(lambda: "which does not count against any batch" in job.complaint(), TIMEOUT_S)
    cluster.cluster.start_worker()
    said = cluster.finished(job, 60)
    assert "waiting for executors: 0 registered" in job.complaint()
    assert (said["attempts"], said["failed_attempts"], said.get("quarantined", [])) == (60, 0, [])
    assert said["waves"] == 4, "4, 8, 16 and 32 attempts: none was halved"


@pytest.mark.nightly
def test_a_run_without_executors_ends_with_five_and_the_figures(field: Make) -> None:
    cluster = field(workers=1)
    job = cluster.run(4, "--executors-timeout", "8", conf=("spark.executor.memory=8g",))
    assert job.wait(TIMEOUT_S) == 5, job.complaint()
    for clause in ("0 registered, asked for as many as fit of 8 GiB", "workers offer 600 MiB and 1 cores at most"):
        assert clause in job.complaint()
    assert re.search(r"the cluster gives the run no executor, (.|\n)* --executors-timeout", job.complaint())


@pytest.mark.nightly
def test_a_master_that_comes_back_and_remembers_is_survived(field: Make) -> None:
    cluster = field(remembers=True)
    job = cluster.run(2000, "--max-pending", "8", pause_ms=100)
    for turn in range(1, 4):
        cluster.await_committed(60 * turn, job)
        cluster.cluster.kill_master()
        assert await_true(lambda: "is gone" in cluster.status().get("cluster", ""), NOTICED_S), job.complaint()
        committed = cluster.site.committed() or 0
        cluster.await_committed(committed + 8, job)  # executors keep running
        cluster.cluster.start_master()
        back = turn
        assert await_true(lambda: job.complaint().count("is back") == back, TIMEOUT_S), job.complaint()  # noqa: B023
    said = cluster.finished(job, 2000)
    assert job.complaint().count("executors keep running, but none is replaced; waiting for it to come back") == 3
    assert said["failed_attempts"] == 0


@pytest.mark.nightly
def test_a_master_that_comes_back_and_knows_nothing_ends_the_run_with_five(field: Make) -> None:
    cluster = field()
    job = cluster.run(4000, "--max-pending", "8", pause_ms=100)
    cluster.await_committed(20, job)
    cluster.cluster.kill_master()
    assert await_true(lambda: "is gone" in job.complaint(), NOTICED_S), job.complaint()
    cluster.cluster.start_master()
    assert job.wait(TIMEOUT_S) == 5, job.complaint()
    assert "does not know application app-" in job.complaint()
    done = cluster.run(400, "--max-pending", "64")
    cluster.finished(done, 400)


@pytest.mark.nightly
def test_twenty_executors_and_five_workers_killed_leave_every_number_counted_once(field: Make) -> None:
    cluster = field()
    job = cluster.run(3000, "--max-pending", "16", pause_ms=20)
    for kill in range(25):
        cluster.await_committed(80 * (kill + 1), job)
        assert await_true(cluster.cluster.executors, TIMEOUT_S)
        if kill % 5 == 4:
            cluster.cluster.kill_worker()
            cluster.cluster.start_worker()
        else:
            send(cluster.cluster.executors()[kill % len(cluster.cluster.executors())], signal.SIGKILL)
    cluster.finished(job, 3000)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("conf", "options"),
    [(SECRET, SECRET), (DYNAMIC, ()), (DECOMMISSIONING, ("spark.decommission.enabled=true",))],
    ids=["authenticate", "dynamic allocation", "decommissioning"],
)
def test_a_cluster_with_other_settings_counts_every_number_once(field: Make, conf, options) -> None:
    cluster = field(options=[f"-D{option}" for option in options])
    job = cluster.run(300, "--max-pending", "8", conf=conf, pause_ms=50)
    for turn in range(3):
        cluster.await_committed(60 * (turn + 1), job)
        if conf is DECOMMISSIONING:
            cluster.cluster.decommission_worker()
            cluster.cluster.start_worker()
        else:
            assert await_true(cluster.cluster.executors, TIMEOUT_S)
            send(cluster.cluster.executors()[0], signal.SIGKILL)
    cluster.finished(job, 300)


def submitted(cluster: Field, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """`spark-submit` of a driver that runs the job on the session it makes."""
    driver = folder / "driver.py"
    url = f"{cluster.site.data_dir}"
    driver.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "from coordinator import run\n"
        "from pyspark.sql import SparkSession\n"
        "from tests.support.spark.paced_job import topology\n"
        f"print(run(topology(40), spark=SparkSession.builder.getOrCreate(), data_dir={url!r}).committed)\n",
        encoding="utf-8",
    )
    home = Path(pyspark.__file__).parent
    settings = [part for setting in SETTINGS for part in ("--conf", setting)]
    return subprocess.run(
        [str(home / "bin/spark-submit"), "--master", cluster.cluster.master, *settings, *more, str(driver)],
        env=os.environ | {"SPARK_HOME": str(home), "PYSPARK_DRIVER_PYTHON": sys.executable},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


@pytest.mark.nightly
def test_spark_submit_runs_a_driver_in_client_mode(field: Make, tmp_path: Path) -> None:
    done = submitted(field(), tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["40"]), done.stderr[-4000:]
