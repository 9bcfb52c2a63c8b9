"""What took unusually long is logged with what it spent the time on; what is usual is not."""

from __future__ import annotations

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator.watching.run_observer import GroupCommitted, RunEnded, WaveEnded
from coordinator.watching.telemetry.run_logs import SlowLog
from state.attempt import TransactionAttempt

ATTEMPTS = tuple(TransactionAttempt(txid, txid) for txid in range(100, 104))


class Time:
    now = 0.0

    def __call__(self):
        return self.now


def wave(wave_id, seconds, **worked_s):
    metrics = {name: TaskMetrics(execute_ns={"lines/default": int(s * 1e9)}) for name, s in worked_s.items()}
    return WaveEnded(wave_id, ATTEMPTS, seconds, (AttemptResult(ATTEMPTS[0], metrics=metrics),))


def test_a_slow_wave_names_the_components_it_spent_its_time_in(caplog):
    log = SlowLog(Time())
    log(wave(1, 0.5, count=0.1))
    log(wave(2, 14.25, count=25.0, store=0.25))
    assert caplog.messages == [
        "wave 2 (txids 100..103) took 14.2 s, where earlier ones took 0.5 s on average; its tasks spent 25.0 s in "
        "'count', 0.2 s in 'store'"
    ]
    (record,) = caplog.records
    assert (record.wave, record.txid, record.last_txid) == (2, 100, 103)
    assert record.reason == "its tasks spent 25.0 s in 'count', 0.2 s in 'store'"


def test_the_first_wave_and_waves_that_always_take_long_are_not_slow(caplog):
    log = SlowLog(Time())
    for wave_id in range(1, 5):
        log(wave(wave_id, 20.0))
    assert caplog.messages == []


def test_a_wave_of_a_plain_topology_has_no_txids(caplog):
    log = SlowLog(Time())
    log(WaveEnded(1, (), 0.1))
    log(WaveEnded(2, (), 9.0))
    assert caplog.messages == [
        "wave 2 took 9.0 s, where earlier ones took 0.1 s on average; no time of its tasks is known"
    ]


def test_a_slow_commit_says_how_large_it_was(caplog):
    log = SlowLog(Time())
    log(GroupCommitted(ATTEMPTS, 0.9, 10, 100))
    log(GroupCommitted(ATTEMPTS[:1], 1.75, 48_211, 3_200_000))
    assert caplog.messages == [
        "the commit of txid 100 took 1.8 s (48,211 changes, 3.2 MB); look at the server, its disk and the network in "
        "between"
    ]


def test_many_slow_commits_are_one_line_in_five_seconds_and_none_is_uncounted(caplog):
    time = Time()
    log = SlowLog(time)
    for _ in range(3):
        log(GroupCommitted(ATTEMPTS, 2.0, 1, 1))
    assert len(caplog.messages) == 1
    log(RunEnded(None))
    assert caplog.messages[1].startswith("not shown so far: 2 like this one: the commit of txid")
