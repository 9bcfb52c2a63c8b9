"""What becomes of a run when user code raises, kills its worker or hangs."""

from __future__ import annotations

import logging
import random
import re

import pytest
import redis

from coordinator.engines.spark.frame_jobs import FrameJobs
from coordinator.run import run
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import EngineError, ReplayLimitError, UserCodeError
from tests.support.spark import mishaps
from tests.support.spark.bolts import Pass, Store, exact_counts, numbers_topology
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.spark.mishaps import (
    AtNumber,
    InStore,
    Mishap,
    break_down,
    end_process,
    fail,
    hang,
    hang_in_c,
    interrupt,
    kill_worker,
)

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TRANSACTIONS, SIZE, BAD = 6, 8, 4
BAD_NUMBER = (BAD - 1) * SIZE + 1
SHIFT_UNIT = 1000


in_both_modes = pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])


def only_lower_ones(txid):
    """Counts when everything below a txid is committed and nothing from it on."""
    return exact_counts(txid - 1)


def crashes(caplog) -> list[int]:
    """Sizes of the waves that crashed."""
    found = (re.match(r"wave \d+ of (\d+) attempts? crashed", message) for message in caplog.messages)
    return [int(match[1]) for match in found if match]


@EITHER_ENGINE
def test_an_error_in_a_bolt_ends_the_run_with_its_story_once_all_lower_txids_are_committed(cluster):
    with pytest.raises(UserCodeError) as caught:
        cluster.run(numbers_topology(TRANSACTIONS, work=AtNumber(break_down, BAD_NUMBER)))

    error = caught.value
    assert (error.component_id, error.attempt.partition(":")[0]) == ("work", str(BAD))
    assert error.task_index in (0, 1)
    assert error.tuple_text == f"Tuple(numbers/default: number={BAD_NUMBER})"
    assert f'File "{mishaps.__file__}", line ' in error.traceback_text
    assert ".zip" not in error.traceback_text
    assert error.traceback_text.rstrip().endswith("ValueError: cannot work with it")
    for part in ("component 'work'", f"task {error.task_index}", error.attempt, f"number={BAD_NUMBER}", "Traceback"):
        assert part in str(error)
    assert cluster.hash("{numbers}:counts") == only_lower_ones(BAD)

    fixed = cluster.run(numbers_topology(TRANSACTIONS))
    assert fixed.committed == TRANSACTIONS - BAD + 1
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)


@in_both_modes
@pytest.mark.parametrize(
    ("bolt", "cause"),
    [
        ({"work": AtNumber(end_process, BAD_NUMBER)}, "SystemExit: I have had enough"),
        ({"work": AtNumber(interrupt, BAD_NUMBER)}, "KeyboardInterrupt: not a person"),
        ({"store": InStore(end_process, BAD)}, "SystemExit: I have had enough"),
        ({"store": InStore(break_down, BAD)}, "ValueError: cannot work with it"),
    ],
    ids=["exit", "interrupt", "exit in a committer", "error in a committer"],
)
def test_whoever_raises_or_ends_his_process_is_named_at_once_and_all_lower_txids_are_committed(
    cluster, caplog, bolt, cause, early_commit
):
    with caplog.at_level(logging.WARNING, logger="txbatch"), pytest.raises(UserCodeError, match=cause) as caught:
        cluster.run(numbers_topology(TRANSACTIONS, **bolt), early_commit=early_commit)

    assert ([caught.value.component_id], caught.value.attempt.partition(":")[0]) == ([*bolt], str(BAD))
    assert crashes(caplog) == []
    assert cluster.hash("{numbers}:counts") == only_lower_ones(BAD)


@EITHER_ENGINE
def test_a_failed_exception_has_the_transaction_replayed(cluster):
    work = AtNumber(fail, BAD_NUMBER, cluster.notes / "failed")
    statistics = cluster.run(numbers_topology(TRANSACTIONS, work=work), max_spout_pending=64)

    assert statistics.failed_attempts == TRANSACTIONS - BAD + 1  # all in one wave
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)


@EITHER_ENGINE
def test_a_txid_that_always_fails_ends_the_run_after_5_attempts(cluster, caplog):
    seen: list[RunStatistics] = []
    with caplog.at_level(logging.INFO, logger="txbatch"), pytest.raises(ReplayLimitError) as caught:
        cluster.run(numbers_topology(TRANSACTIONS, work=AtNumber(fail, BAD_NUMBER)), on_progress=seen.append)

    assert (caught.value.txid, caught.value.attempt_count) == (BAD, 5)
    assert "FailedException: not now" in caught.value.last_reason
    reasons = [
        message
        for message in caplog.messages
        if re.search(r"is replayed: work\[[01]\]: FailedException: not now", message)
    ]
    assert reasons, "without a word from the user"
    assert len(reasons) <= 3, "but not one line for each"
    assert seen[-1].last_txid == BAD - 1
    assert cluster.hash("{numbers}:counts") == only_lower_ones(BAD)


@pytest.mark.parametrize("phase", [pytest.param("processing", marks=pytest.mark.every_spark), "commit"])
def test_a_worker_that_is_killed_has_its_wave_halved_and_that_counts_against_no_attempt(cluster, caplog, phase):
    marker = cluster.notes / "killed"
    work = AtNumber(kill_worker, BAD_NUMBER, marker) if phase == "processing" else None
    store = InStore(kill_worker, BAD, marker) if phase == "commit" else None
    topology = numbers_topology(TRANSACTIONS, work=work, store=store)
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        statistics = cluster.run(topology, max_spout_pending=2 * TRANSACTIONS, max_attempts=1)

    assert crashes(caplog) == [TRANSACTIONS]
    assert statistics.waves == 3  # all six, then three and three
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)


def test_a_worker_that_is_killed_in_a_commit_job_has_it_done_again(cluster, caplog):
    store = InStore(kill_worker, BAD, cluster.notes / "killed")
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        cluster.run(numbers_topology(TRANSACTIONS, store=store), early_commit=False)

    assert sum("commit phase of" in message for message in caplog.messages) == 1
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)


@pytest.mark.nightly
@in_both_modes
@pytest.mark.parametrize(
    "bolts",
    [
        pytest.param({"work": AtNumber(kill_worker, BAD_NUMBER)}, marks=pytest.mark.nightly),
        {"store": InStore(kill_worker, BAD)},
    ],
    ids=["processing", "commit"],
)
def test_a_txid_that_always_kills_its_worker_is_named_and_all_lower_ones_are_committed(
    cluster, caplog, bolts, early_commit
):
    with caplog.at_level(logging.WARNING, logger="txbatch"), pytest.raises(ReplayLimitError) as caught:
        cluster.run(
            numbers_topology(TRANSACTIONS, **bolts), max_spout_pending=2 * TRANSACTIONS, early_commit=early_commit
        )

    assert (caught.value.txid, caught.value.attempt_count) == (BAD, 5)
    assert str(BAD) in str(caught.value)
    assert cluster.hash("{numbers}:counts") == only_lower_ones(BAD)


@EITHER_ENGINE
@pytest.mark.parametrize("timeout_s", [pytest.param(3, marks=pytest.mark.nightly), 5])
def test_a_bolt_that_hangs_is_ended_after_the_message_timeout_named_and_tried_again(cluster, caplog, timeout_s):
    work = AtNumber(hang, 1, cluster.notes / "hung")
    topology = numbers_topology(2, work=work, message_timeout_s=timeout_s)
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        cluster.run(topology)

    told = next(text for text in caplog.messages if "crashed" in text)
    assert re.fullmatch(
        r"wave 1 of 2 attempts crashed: component 'work', task [01], attempt 1:[0-9a-f]+ had not returned when the "
        rf"message timeout of {timeout_s} s ran out, in hang \({re.escape(mishaps.__file__)}, line \d+\)"
        r"(; if it needs longer, raise the limit with the builder's set_message_timeout_s|; for part of .*)",
        told,
    )
    assert crashes(caplog) == [2]
    assert cluster.hash("{numbers}:counts") == exact_counts(2)


@pytest.mark.nightly
def test_a_bolt_that_no_signal_reaches_is_cancelled_after_the_message_timeout_and_tried_again(cluster, caplog):
    topology = numbers_topology(2, work=AtNumber(hang_in_c, 1, cluster.notes / "hung"), message_timeout_s=3.0)
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        cluster.run(topology)

    assert caplog.records[0].msg == "wave %d exceeds the message timeout and is cancelled"
    assert "it exceeded the message timeout of 3 s and was cancelled" in caplog.records[1].getMessage()
    assert crashes(caplog) == [2]
    assert cluster.hash("{numbers}:counts") == exact_counts(2)


@pytest.mark.nightly
def test_a_bolt_that_always_hangs_ends_the_run_with_its_txid_and_line_though_spark_tries_its_task_again(
    cluster_that_retries,
):
    topology = numbers_topology(2, work=AtNumber(hang, SIZE), message_timeout_s=6.0)
    with pytest.raises(ReplayLimitError) as caught:
        cluster_that_retries.run(topology, max_attempts=2)

    assert (caught.value.txid, caught.value.attempt_count) == (2, 2)
    assert re.match(
        rf"component 'work', task .*, in hang \({re.escape(mishaps.__file__)}, line", caught.value.last_reason
    )
    assert cluster_that_retries.hash("{numbers}:counts") == only_lower_ones(2)


@pytest.mark.nightly
@in_both_modes
@pytest.mark.timeout(90)
def test_a_committer_that_hangs_is_cancelled_after_the_message_timeout_and_tried_again(cluster, caplog, early_commit):
    store = InStore(hang, 2, cluster.notes / "hung")
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        cluster.run(numbers_topology(2, store=store, message_timeout_s=6.0), early_commit=early_commit)

    phase = "wave 1 of" if early_commit else "the commit phase of"
    assert any(text.startswith(phase) and "component 'store', task" in text for text in caplog.messages)
    assert cluster.hash("{numbers}:counts") == exact_counts(2)


@pytest.mark.nightly
def test_an_application_that_is_stopped_under_a_run_is_told(contexts, redis_backend):
    context = contexts.open(spark__app__name="stopped")

    def stop(_: RunStatistics) -> None:
        context._jsc.sc().stop()

    try:
        with pytest.raises(
            EngineError, match="Spark's application was stopped from outside, for instance by its master"
        ):
            run(numbers_topology(40), spark=context, redis_url=redis_backend.url, on_progress=stop)
    finally:
        contexts.close()


class Drawing(Mishap, Pass):
    """Shifts all numbers by what it draws; it happens in the middle of a batch."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.shift = random.randrange(1, 1_000_000) * SHIFT_UNIT

    def execute(self, tup):
        self.collector.emit([tup["number"] + self.shift])
        self.passes(tup["number"])


@pytest.mark.nightly
def test_a_task_that_spark_tries_again_after_half_its_tuples_counts_once(cluster_that_retries, caplog):
    cluster = cluster_that_retries
    work = Drawing(kill_worker, BAD_NUMBER, cluster.notes / "killed")
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        statistics = cluster.run(numbers_topology(TRANSACTIONS, work=work))

    counts = cluster.hash("{numbers}:counts")
    assert (cluster.notes / "killed").exists()
    assert (crashes(caplog), statistics.failed_attempts) == ([], 0)  # Spark has recovered by itself
    assert sorted(int(number) % SHIFT_UNIT for number in counts) == list(range(TRANSACTIONS * SIZE))
    assert set(counts.values()) == {1}
    shifts = {(int(number) % SHIFT_UNIT // SIZE, int(number) // SHIFT_UNIT) for number in counts}
    assert len(shifts) == 2 * TRANSACTIONS  # one for each of two tasks, never a third from the try that died


@pytest.mark.nightly
@in_both_modes
def test_a_commit_task_that_spark_tries_again_counts_once(cluster_that_retries, caplog, early_commit):
    cluster = cluster_that_retries
    store = InStore(kill_worker, BAD, cluster.notes / "killed")
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        statistics = cluster.run(numbers_topology(TRANSACTIONS, store=store), early_commit=early_commit)

    assert (cluster.notes / "killed").exists()
    assert (caplog.records, statistics.failed_attempts) == ([], 0)
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)


class StoreOnAFlushedServer(Store):
    """Reads right after somebody has flushed the server's functions."""

    def __init__(self, url):
        self.url = url

    def finish_batch(self):
        with redis.Redis.from_url(self.url) as client:
            client.function_flush()
        self.counts.get(-1)
        super().finish_batch()


@pytest.mark.nightly
def test_a_committer_that_reads_loads_the_functions_that_somebody_has_flushed(cluster):
    store = StoreOnAFlushedServer(cluster.redis_url)
    statistics = cluster.run(numbers_topology(2, store=store, parallelism=1))
    assert (statistics.committed, statistics.failed_attempts) == (2, 0)
    assert cluster.hash("{numbers}:counts") == exact_counts(2)


def test_an_error_of_the_engine_itself_ends_the_run_at_once_and_counts_against_nobody(cluster, monkeypatch, caplog):
    monkeypatch.setattr(FrameJobs, "_python_rdd", None)
    sentence = r"TypeError: 'NoneType' object is not callable \(on the driver, frame_jobs.py, line \d+\); txbatch does"
    with caplog.at_level(logging.WARNING, logger="txbatch"), pytest.raises(EngineError, match=sentence):
        cluster.run(numbers_topology(TRANSACTIONS), on_poison="quarantine", max_attempts=1)
    assert len(crashes(caplog)) == 1
    assert cluster.hash("{numbers}:counts") == {}
