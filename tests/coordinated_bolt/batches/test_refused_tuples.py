"""What one task refuses in one attempt: limits, types, and errors that a bolt cannot swallow."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.batches.refused_tuples import RefusedTuples
from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.tuples import Tuple
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.wiring import Coordination
from state.codec import CodecError, pack, unpack
from state.commits.dead_letters import LetterLimits
from state.errors import BadInputError, TopologyError
from tests.support.tasks.wire import arrived
from tests.support.tasks.wirings import Sent, attempt, origin_of, wire

A = attempt(1)


class RefuseAll(BaseBatchBolt):
    """Refuses everything, and raises nothing whatever happens."""

    def execute(self, tup):
        with suppress(BadInputError):  # a bolt that handles too much
            self.collector.dead_letter(tup, "no")


def box(**limits: int) -> tuple[RefusedTuples, Tuple]:
    wiring = replace(wire(RefuseAll()), letter_limits=LetterLimits(**limits))
    return RefusedTuples(wiring), Tuple(["x" * 10], origin_of(wiring, A))


def finished(count: int, **limits: int) -> AttemptResult:
    """The result of a task that was sent so many tuples and refuses them all."""
    wiring = replace(wire(RefuseAll(), targets=()), letter_limits=LetterLimits(**limits))
    task = BatchTask(wiring, CoordinatedBolt(wiring, wiring.outboxes(Sent().carrier)))
    rows = [[f"value {number}"] for number in range(count)]
    frame = Frame(A, 1, 0, wiring.task_id, FrameKind.REGULAR, pack([[0, rows]]))
    result = task.run(A, arrived(A, [frame, Frame(A, 1, 1, wiring.task_id, FrameKind.COORD, pack(count))]))
    assert result is not None
    return result


def test_a_letter_says_who_refused_what_and_why() -> None:
    refused_tuples, tup = box()
    refused_tuples.add(tup, "too short")
    refused_tuples.add({"place": "line 3", "record": b"\xff"}, "not text")
    assert [unpack(letter) for letter in refused_tuples.letters] == [
        ["bolt", 0, "source", "default", ["value"], ["x" * 10], "too short"],
        ["bolt", 0, "bolt", "", ["place", "record"], ["line 3", b"\xff"], "not text"],
    ]


def test_a_letter_holds_the_values_of_the_moment_it_was_refused() -> None:
    refused_tuples, _ = box()
    values = {"tags": ["a"]}
    refused_tuples.add(values, "no")
    values["tags"].append("b")
    assert unpack(refused_tuples.letters[0])[5] == [["a"]]


@pytest.mark.parametrize(
    ("refused", "reason", "error", "message"),
    [
        (["x"], "no", TypeError, r"dead_letter got \['x'\] of type list; give the tuple that execute received, or"),
        ({1: "x"}, "no", TypeError, "give the tuple that execute received, or a mapping of field names to values"),
        ({"a": 1}, KeyError("no"), TypeError, r"dead_letter got the reason KeyError\('no'\); give a string, such as"),
        (
            {"a": object},
            "no",
            CodecError,
            r"component 'bolt' refused \{'a': <class 'object'>\}, but one of its values ca",
        ),
    ],
)
def test_what_is_no_letter_is_refused(refused: Any, reason: Any, error: type[Exception], message: str) -> None:
    refused_tuples, _ = box()
    with pytest.raises(error, match=message):
        refused_tuples.add(refused, reason)
    assert refused_tuples.letters == []


def test_a_letter_may_be_as_large_as_the_limit_and_no_larger() -> None:
    refused_tuples, tup = box()
    refused_tuples.add(tup, "no")
    size = len(refused_tuples.letters[0])
    exact, _ = box(letter_bytes=size)
    exact.add(tup, "no")
    small, _ = box(letter_bytes=size - 1)
    with pytest.raises(BadInputError) as caught:
        small.add(tup, "no")
    assert str(caught.value) == (
        f"a dead letter of component 'bolt' has {size} bytes, more than the limit of {size - 1}; raise it with "
        f"builder.set_dead_letters(letter_bytes={2 * size}), or refuse a smaller tuple that says where the record is"
    )


def test_a_task_refuses_as_many_tuples_as_the_limit_allows() -> None:
    result = finished(3, per_transaction=3)
    assert result.failure is None
    assert (result.letter_count, result.metrics["bolt"].dead_letters) == (3, 3)


def test_an_attempt_fails_that_refused_too_many_even_if_the_bolt_handled_the_error() -> None:
    result = finished(4, per_transaction=3)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.RECORD
    assert result.failure.text.startswith("one transaction has 4 dead letters or more, and the limit is 3;")
    assert result.letters == {}


def test_a_batch_of_a_sub_topology_has_no_letters() -> None:
    wiring = replace(wire(RefuseAll()), coordination=Coordination({}, ()))
    with pytest.raises(TopologyError, match="component 'bolt' called dead_letter outside transactions, where no state"):
        RefusedTuples(wiring).add({"a": 1}, "no")
