"""Why transactions are replayed and what took unusually long is logged, and never fills the log."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator.watching.run_observer import AttemptRetried, GroupCommitted, RunEnded, WaveEnded
from coordinator.watching.telemetry.run_logs import RetryLog, SlowLog
from state.attempt import TransactionAttempt
from tests.support.cli.in_process import HandClock

ATTEMPTS = tuple(TransactionAttempt(txid, txid) for txid in range(100, 104))


def wave(wave_id, seconds, **worked_s):
    metrics = {name: TaskMetrics(execute_ns={"lines/default": int(s * 1e9)}) for name, s in worked_s.items()}
    return WaveEnded(wave_id, ATTEMPTS, seconds, (AttemptResult(ATTEMPTS[0], metrics=metrics),))


def test_a_slow_wave_names_the_components_it_spent_its_time_in(caplog):
    log = SlowLog(HandClock())
    log(wave(1, 0.5, count=0.1))
    log(wave(2, 14.25, count=25.0, store=0.25))
    assert caplog.messages == [
        "wave 2 (txids 100..103) took 14.2 s, where earlier ones took 0.5 s on average; its tasks spent 25.0 s in "
        "'count', 0.2 s in 'store'"
    ]
    (record,) = caplog.records
    assert (record.wave, record.txid, record.last_txid) == (2, 100, 103)
    assert record.reason == "its tasks spent 25.0 s in 'count', 0.2 s in 'store'"


@pytest.mark.parametrize(
    ("observations", "said"),
    [
        ([wave(wave_id, 20.0) for wave_id in range(1, 5)], []),
        (
            [WaveEnded(1, (), 0.1), WaveEnded(2, (), 9.0)],
            ["wave 2 took 9.0 s, where earlier ones took 0.1 s on average; no time of its tasks is known"],
        ),
        (
            [GroupCommitted(ATTEMPTS, 0.9, 10, 100), GroupCommitted(ATTEMPTS[:1], 1.75, 48_211, 3_200_000)],
            [
                "the commit of txid 100 took 1.8 s (48,211 changes, 3.2 MB); look at the server, its disk and the "
                "network in between"
            ],
        ),
    ],
    ids=["waves that always take long", "a wave of a plain topology", "a commit"],
)
def test_what_is_slower_than_usual_is_told_with_what_is_known_of_it(caplog, observations, said):
    log = SlowLog(HandClock())
    for observation in observations:
        log(observation)
    assert caplog.messages == said


def test_many_slow_commits_are_one_line_in_five_seconds_and_none_is_uncounted(caplog):
    log = SlowLog(HandClock())
    for _ in range(3):
        log(GroupCommitted(ATTEMPTS, 2.0, 1, 1))
    assert len(caplog.messages) == 1
    log(RunEnded(None))
    assert caplog.messages[1].startswith("not shown so far: 2 like this one: the commit of txid")


TRACEBACK = 'split[0]: Traceback (most recent call last):\n  File "job.py", line 3, in execute\nValueError: no\n'


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("split[0]: FailedException: later", "split[0]: FailedException: later"),
        (TRACEBACK, "split[0]: ValueError: no"),
    ],
    ids=["a line", "a traceback"],
)
def test_the_first_reason_is_told_at_once_by_its_last_line(caplog, reason, said):
    RetryLog(HandClock())(AttemptRetried(TransactionAttempt(7, 255), reason, 3))
    assert caplog.messages == [f"attempt 7:00000000000000ff failed and is replayed: {said}"]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert (record.txid, record.attempt, record.wave, record.reason) == (7, "7:00000000000000ff", 3, said)


def test_many_replays_are_one_line_in_five_seconds_and_none_is_uncounted(caplog):
    time = HandClock()
    log = RetryLog(time)
    for txid in range(1, 101):
        time.now_s += 0.125
        log(AttemptRetried(TransactionAttempt(txid, txid), f"reason {txid}", 3))
    log(RunEnded(None))
    assert [message.partition("replayed: ")[2] for message in caplog.messages] == [
        "reason 1",
        "reason 41 (39 more like it, earlier, not shown)",
        "reason 81 (39 more like it, earlier, not shown)",
        "reason 100",
    ]
    assert caplog.messages[-1].startswith("not shown so far: 19 like this one: attempt 100:")
    log(RunEnded(None))
    assert len(caplog.messages) == 4
