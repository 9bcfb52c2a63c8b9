"""User code of plain topologies: whatever it raises is a failure that ends the run, except an interruption."""

from __future__ import annotations

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinator.plain.tasks.user_calls import UserCalls
from state.errors import FailedException, Interruption, SourceError, StateRefusedError, StateUnreachableError
from tests.support.case_names import shown
from tests.support.tasks.wirings import RecordingBolt, wire


def raising(error):
    def raise_it():
        raise error

    return raise_it


@pytest.mark.parametrize("error", [ValueError("mine"), FailedException("later"), SystemExit(3)], ids=shown)
def test_what_user_code_raises_ends_the_run_even_if_it_asks_for_a_replay(error):
    wiring = wire(RecordingBolt())
    failure = UserCalls(wiring).call(raising(error))
    assert failure is not None
    assert (failure.kind, failure.component_id, failure.task_index) == (
        FailureKind.USER,
        wiring.component_id,
        wiring.task_index,
    )
    assert type(error).__name__ in failure.text


@pytest.mark.parametrize("kind", [SourceError, StateRefusedError, StateUnreachableError])
def test_what_a_source_says_of_its_input_or_server_is_not_told_as_a_bug_of_the_user(kind):
    failure = UserCalls(wire(RecordingBolt())).call(raising(kind("topic t has no partition 3")))
    assert failure is not None
    assert failure.halts()
    error = failure.to_error()
    assert type(error) is kind
    assert str(error) == f"topic t has no partition 3 (component {failure.component_id!r})"


def test_an_interruption_passes():
    with pytest.raises(Interruption):
        UserCalls(wire(RecordingBolt())).call(raising(Interruption()))


def test_every_closing_gets_its_turn_and_the_first_failure_is_returned():
    closed = []
    closings = [raising(ValueError("first")), lambda: closed.append("hook"), raising(ValueError("second"))]
    user = UserCalls(wire(RecordingBolt()))
    failure = user.close(closings)
    assert closed == ["hook"]
    assert failure is not None
    assert "ValueError: first" in failure.text
    assert user.close(closings[1:2]) is None
