"""Many transactions travel in few Spark jobs, commits wait for their turn, and nothing is left over."""

from __future__ import annotations

import threading
from collections import defaultdict

import pytest
from pyspark.sql import SparkSession

from coordinator.engines.waves.wave import Wave
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from examples import word_count
from tests.support.spark.bolts import (
    exact_sums,
    numbers_topology,
)

pytestmark = [pytest.mark.spark, pytest.mark.redis]

OVERLAP_TIMEOUT_S = 30.0


def jobs_so_far(cluster) -> int:
    """How many Spark jobs this context has run."""
    return int(cluster.context._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.often("one job a wave", "a job for each group")
@pytest.mark.parametrize(
    ("options", "job_count"),
    [
        ({}, 2),
        ({"early_commit": False}, 4),
        ({"commit_group_max": 8}, 2),
        ({"commit_group_max": 8, "early_commit": False}, 10),
    ],
    ids=["one job a wave", "two jobs a wave", "one job a wave of four groups", "a job for each group"],
)
def test_64_transactions_of_a_plain_word_count_take_few_spark_jobs(cluster, tmp_path, options, job_count):
    options = {"max_spout_pending": 64, **options}  # waves of half of that, from the first on
    lines = [f"one word{number % 7} and word{number % 3}" for number in range(640)]
    (tmp_path / "input.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    before = jobs_so_far(cluster)

    statistics = cluster.run(
        word_count.topology(str(tmp_path / "input.txt"), lines_per_batch=10), commit_target_s=None, **options
    )

    assert (statistics.committed, statistics.last_txid) == (64, 64)
    assert jobs_so_far(cluster) - before == job_count
    expected: dict[str, int] = defaultdict(int)
    for word in " ".join(lines).split():
        expected[word] += 1
    assert cluster.hash("{word_count}:counts") == expected


def test_jobs_are_described_by_topology_wave_and_txids(cluster, tmp_path):
    (tmp_path / "input.txt").write_text("".join(f"line {number}\n" for number in range(30)), encoding="utf-8")
    before = jobs_so_far(cluster)
    cluster.run(word_count.topology(str(tmp_path / "input.txt"), lines_per_batch=10), early_commit=False)

    cluster.context._jsc.sc().listenerBus().waitUntilEmpty()
    store = cluster.context._jsc.sc().statusStore()
    described = [store.job(before + number).description().get() for number in range(2)]
    assert described == ["word_count: wave 1, txids 1..3, processing", "word_count: wave 1, txids 1..3, commit"]


@pytest.mark.nightly
def test_no_shuffle_file_is_left_after_50_waves(cluster, contexts):
    before = contexts.shuffle_files()  # Spark SQL leaves its own to the garbage collector
    statistics = cluster.run(numbers_topology(50, size=2, parallelism=2), max_spout_pending=2)

    assert statistics.waves >= 50
    assert set(contexts.shuffle_files()) <= set(before)


def test_a_commit_runs_beside_the_next_wave(cluster, monkeypatch):
    second_wave_runs = threading.Event()
    overlapped: list[bool] = []
    process, commit = Wave.process, Wave.commit

    def noting_process(wave, *given):
        if overlapped or wave._input.wave_id > 1:
            second_wave_runs.set()
        return process(wave, *given)

    def waiting_commit(wave, attempts, **named):
        overlapped.append(second_wave_runs.wait(OVERLAP_TIMEOUT_S))
        return commit(wave, attempts, **named)

    monkeypatch.setattr(Wave, "process", noting_process)
    monkeypatch.setattr(Wave, "commit", waiting_commit)
    cluster.run(numbers_topology(8), max_spout_pending=8, early_commit=False)

    assert overlapped[0]
    assert cluster.hash("{numbers}:sums") == exact_sums(8)


@pytest.mark.nightly
@pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])
def test_a_fifo_session_of_the_user_runs_one_wave_at_a_time_and_is_left_running(
    contexts, redis_backend, monkeypatch, caplog, early_commit
):
    busy: list[str] = []
    together: list[tuple[str, ...]] = []

    def alone(name, method):
        def call(*arguments, **named):
            busy.append(name)
            together.append(tuple(busy))
            try:
                return method(*arguments, **named)
            finally:
                busy.remove(name)

        return call

    monkeypatch.setattr(Wave, "process", alone("job 1", Wave.process))
    monkeypatch.setattr(Wave, "commit", alone("job 2", Wave.commit))
    context = contexts.open(spark__scheduler__mode="FIFO")
    session = SparkSession(context)
    with caplog.at_level("INFO", logger="txbatch"):
        options = RunOptions(max_spout_pending=8, early_commit=early_commit)
        run(numbers_topology(16), spark=session, redis_url=redis_backend.url, options=options)

    assert set(together) == ({("job 1",)} if early_commit else {("job 1",), ("job 2",)})
    assert [record.getMessage() for record in caplog.records if "FIFO" in record.msg] == [
        "this Spark context schedules FIFO: one wave at a time; set spark.scheduler.mode=FAIR for two"
    ]
    assert session.sparkContext.parallelize([1, 2, 3], 2).sum() == 6
    assert redis_backend.client().hget("{numbers}:counts", "127") == b"1"
