"""Why transactions are replayed is in the log without a word from the user, and never fills it."""

from __future__ import annotations

import pytest

from coordinator.watching.run_observer import AttemptRetried, RunEnded
from coordinator.watching.telemetry.run_logs import RetryLog
from state.attempt import TransactionAttempt
from tests.support.cli.in_process import HandClock

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
