"""When the alarm rings, and what it says; that it rings is tested on Spark."""

from __future__ import annotations

import signal
from time import time

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.engines.waves.alarm import Alarm, Deadline, OverdueError, alarm_for
from state.attempt import TransactionAttempt
from state.errors import Interruption
from tests.support.tasks.wirings import wire

STARTED_S = 1_000_000.0
WIRING = wire(BaseBatchBolt(), component_id="work")


@pytest.mark.parametrize(
    ("timeout_s", "later_s", "left_s"),
    [
        (60.0, 0.0, 58.0),  # a little before the driver cancels the wave
        (3.0, 0.0, 2.7),
        (1.0, 2.0, 0.45),  # the worker had to start, and the driver waits for three seconds
        (3.0, 2.9, 1.35),
        (5.0, 3.1, 4.5),
        (60.0, 10.0, 48.0),  # earlier stages have used up some of the time
        (60.0, -3600.0, 58.0),  # the worker's clock is behind
        (60.0, 29.0, 29.0),  # never less than half of the time
        (60.0, 30.0, 58.0),  # the task has waited for an executor
        (60.0, 3600.0, 58.0),  # as before, or the worker's clock is ahead
    ],
)
def test_the_alarm_rings_before_the_driver_gives_up_and_clocks_may_differ(timeout_s, later_s, left_s):
    deadline = Deadline(STARTED_S, timeout_s)

    assert deadline.seconds_left(STARTED_S + later_s) == pytest.approx(left_s)


def told(alarm: Alarm) -> str:
    """What it says when it rings."""
    with pytest.raises(OverdueError) as caught:
        alarm.ring(14, None)
    assert isinstance(caught.value, Interruption)  # so that no executor takes it for the user's error
    return str(caught.value)


def test_the_alarm_names_component_task_attempt_and_timeout_of_a_chained_task_too():
    alarm = Alarm(WIRING, 60.0)
    alarm.begin(TransactionAttempt(7, 0xAB), wire(BaseBatchBolt(), component_id="next"))
    assert told(alarm).startswith("component 'next', task 0, attempt 7:")
    alarm.begin(TransactionAttempt(8, 0xAB))
    assert told(alarm).startswith("component 'work', task 0, attempt 8:")
    assert told(alarm).endswith(" had not returned when the message timeout of 60 s ran out")


def test_the_alarm_names_the_task_of_several_in_one_spark_task_that_runs():
    alarm = Alarm(WIRING, 60.0)
    for wiring in alarm.through([WIRING, wire(BaseBatchBolt(), component_id="other")]):
        alarm.begin(TransactionAttempt(7, 0xAB))
        assert told(alarm).startswith(f"component '{wiring.component_id}', task 0")


def test_the_alarm_rings_in_user_code_on_the_main_thread_and_in_no_other():
    with alarm_for(WIRING, Deadline(STARTED_S, 0.001)) as alarm:
        alarm.begin(TransactionAttempt(1, 1))


@pytest.mark.parametrize(("theirs_s", "is_ours"), [(100.0, True), (2.0, False)], ids=["later", "sooner"])
def test_a_timer_of_the_programs_own_rings_when_it_would_have(theirs_s, is_ours):
    was, before = signal.getitimer(signal.ITIMER_REAL), signal.signal(signal.SIGALRM, print)
    try:
        signal.setitimer(signal.ITIMER_REAL, theirs_s, 7.0)
        with alarm_for(WIRING, Deadline(time(), 60.0)) as alarm:
            assert (signal.getsignal(signal.SIGALRM) == alarm.ring) is is_ours
        left_s, every_s = signal.getitimer(signal.ITIMER_REAL)
        assert (signal.getsignal(signal.SIGALRM), every_s) == (print, 7.0)
        assert 0 < left_s <= theirs_s
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *was)
