"""How many attempts travel together, and when a wave is done with. Exact."""

from __future__ import annotations

import pytest

from coordinator.transactional.engine import GroupCrashed, WaveCrashed
from coordinator.transactional.machine import wave_records
from coordinator.transactional.machine.wave_records import CrashCauses, WaveRecords
from coordinator.transactional.machine.wave_size import WaveSize
from coordinator.watching.failure_cause import CrashKind
from state.attempt import TransactionAttempt

REMEDY = "; if it needs longer, raise the limit with the builder's set_message_timeout_s"
CANCELLED = f"it exceeded the message timeout of 60 s and was cancelled{REMEDY}"


@pytest.fixture
def causes():
    return CrashCauses(60.0)


@pytest.mark.parametrize("kind", [CrashKind.LOST, CrashKind.CERTAIN])
def test_a_crash_is_what_the_engine_says(causes, kind):
    assert causes.of(WaveCrashed(3, "a worker died", kind)) == ("a worker died", kind)


@pytest.mark.parametrize("event", [WaveCrashed(3, "cancelled"), GroupCrashed(3, (), "cancelled")])
def test_what_was_cancelled_names_the_timeout_once(causes, event):
    causes.cancelled(3)

    assert causes.of(event) == (CANCELLED, CrashKind.OVERDUE)
    assert causes.of(event) == ("cancelled", CrashKind.LOST)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_worker_that_names_what_hangs_is_believed(causes, is_cancelled):
    if is_cancelled:
        causes.cancelled(3)

    assert causes.of(WaveCrashed(3, "component 'work'", CrashKind.OVERDUE)) == (
        f"component 'work'{REMEDY}",
        CrashKind.OVERDUE,
    )


def test_a_phase_that_ended_in_spite_of_it_leaves_the_next_one_alone(causes):
    causes.cancelled(3)
    causes.ended(3)

    assert causes.of(GroupCrashed(3, (), "a worker died")) == ("a worker died", CrashKind.LOST)


def attempts_of(*txids, attempt_id=1):
    return tuple(TransactionAttempt(txid, attempt_id) for txid in txids)


def started(count, window=16):
    """Records with one wave under way, number 1."""
    waves = WaveRecords(WaveSize(window, 1.0), 10.0)
    return waves, waves.start(attempts_of(*range(1, 1 + count)), 100.0)


@pytest.mark.parametrize(
    ("window", "waiting", "byte_count", "size"),
    [
        # half a window, so that two waves fill it
        *((1, 100, 0, 1), (2, 100, 0, 1), (3, 100, 0, 2), (7, 100, 0, 4), (64, 100, 0, 32)),
        # no more than wait
        *((16, 0, 0, 0), (16, 1, 0, 1), (16, 3, 0, 3), (16, 9, 0, 8)),
        # no more input than allowed, unless it is a single attempt
        *((8, 4, 25, 4), (8, 4, 40, 2), (8, 4, 100, 1), (8, 4, 500, 1)),
    ],
)
def test_a_wave_takes_half_a_window_of_what_waits_and_no_more_input_than_allowed(
    monkeypatch, window, waiting, byte_count, size
):
    monkeypatch.setattr(wave_records, "WAVE_BYTES_MAX", 100)
    assert WaveRecords(WaveSize(window, 1.0), 10.0).room([byte_count] * waiting) == size


def test_waves_are_numbered_from_one_and_run_from_their_start():
    waves, first = started(2)
    assert (first.wave_id, first.attempts, first.started_s) == (1, attempts_of(1, 2), 100.0)
    assert (first.live, first.is_running) == (set(attempts_of(1, 2)), True)
    waves.processed(1)
    assert waves.start(attempts_of(3), 107.0).wave_id == 2


def test_a_crashed_wave_halves_the_next_down_to_one_and_good_ones_double_it_again():
    waves = WaveRecords(WaveSize(16, 1.0), 10.0)
    sizes = []
    for outcome in ("crashed", "crashed", "crashed", "crashed", "processed", "processed", "processed", "processed"):
        sizes.append(waves.room([0] * 100))
        wave = waves.start(attempts_of(*range(1, 1 + sizes[-1])), 0.0)
        assert getattr(waves, outcome)(wave.wave_id) is wave
    assert sizes == [8, 4, 2, 1, 1, 2, 4, 8]


def test_what_counts_is_how_large_the_crashed_wave_was_not_how_much_had_room():
    waves, _ = started(3)
    waves.crashed(1)
    assert waves.room([0] * 100) == 1


@pytest.mark.parametrize(("waits", "next_size"), [(False, 32), (True, 64)])
def test_what_a_wave_has_waited_for_executors_says_nothing_of_its_size(waits, next_size):
    waves = WaveRecords(WaveSize(None, 0.3), 10.0)
    for seconds in (1.0, 0.0, 0.0, 0.001, 50.0):
        size = waves.room([0] * 100)
        wave = waves.start(attempts_of(*range(1, 1 + size)), 0.0)
        if waits and seconds == 50.0:
            waves.waits(wave.wave_id)
        waves.processed(wave.wave_id, seconds)
    assert waves.room([0] * 100) == next_size


def cancelled():
    waves, wave = started(8)
    for attempt in wave.attempts:
        waves.let_go(1, attempt)
    assert waves.running_for_nothing([1]) == [1]
    return waves


def test_a_cancelled_wave_that_ends_as_crashed_halves_nothing():
    waves = cancelled()
    waves.crashed(1)
    assert waves.room([0] * 100) == 8


def test_a_cancelled_wave_that_ends_well_all_the_same_doubles_nothing():
    """Else a commit that crashes would never be found: the void wave after it doubles what it has halved."""
    waves = cancelled()
    waves.size.halve(2)
    waves.processed(1)
    assert waves.room([0] * 100) == 1


def test_a_wave_is_released_once_all_its_attempts_are_committed_or_dropped():
    waves, _ = started(2)
    waves.processed(1)
    waves.let_go(1, *attempts_of(1))
    assert waves.take_finished() == []
    waves.let_go(1, *attempts_of(2))
    assert waves.running_for_nothing([1]) == []
    assert waves.take_finished() == [1]
    assert waves.take_finished() == []


def test_an_attempt_that_still_waits_is_in_no_wave():
    waves, wave = started(1)
    waves.let_go(0, *attempts_of(1))
    assert wave.live == set(attempts_of(1))
    assert waves.running_for_nothing([0]) == []


# What `validate` finds


def test_waves_and_attempts_that_agree_are_fine():
    waves, wave = started(2)
    waves.validate(dict.fromkeys(wave.attempts, 1))


@pytest.mark.parametrize("forgotten", ["by the wave", "by the transactions"])
def test_a_wave_that_holds_other_attempts_than_there_are_is_found(forgotten):
    waves, wave = started(2)
    known = dict.fromkeys(wave.attempts, 1)
    if forgotten == "by the wave":
        waves.let_go(1, wave.attempts[0])
    else:
        del known[wave.attempts[1]]
    with pytest.raises(AssertionError, match="waves hold"):
        waves.validate(known)


def test_the_time_of_a_queued_wave_begins_when_the_one_before_it_has_ended():
    waves, first = started(1)
    waves.start(attempts_of(2), 101.0)
    assert waves.overdue(110.1) == [first]
    waves.processed(first.wave_id)
    assert [waves.overdue(now) for now in (120.0, 130.0)] == [[], []]
    assert [late.wave_id for late in waves.overdue(130.1)] == [2]


def test_two_queued_waves_are_found():
    waves, wave = started(1)
    queued, other = waves.start(attempts_of(2), 0.0), waves.start(attempts_of(3), 0.0)
    with pytest.raises(AssertionError, match="more than one wave queued"):
        waves.validate({each.attempts[0]: each.wave_id for each in (wave, queued, other)})
