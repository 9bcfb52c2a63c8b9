"""What was cancelled for its time says so; whoever knows more is believed."""

from __future__ import annotations

import pytest

from coordinator.transactional.engine import GroupCrashed, WaveCrashed
from coordinator.transactional.failure_cause import CrashKind
from coordinator.transactional.machine.crash_causes import CrashCauses

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
