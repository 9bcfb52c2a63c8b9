"""Failures: what follows from an exception, and that the story survives the way to the driver."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.completeness.failure import Failure, FailureKind, most_telling
from coordinated_bolt.user_failure import failure_of, lasting_failure_of
from state.codec import CodecError, pack, unpack
from state.errors import (
    BadInputError,
    FailedException,
    ProtocolError,
    SourceError,
    StaleReadError,
    StateRefusedError,
    StateUnreachableError,
    TopologyError,
    UserCodeError,
)
from state.troubles import Trouble
from tests.support.tasks.wirings import RecordingBolt, attempt, origin_of, wire


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


CASES = [
    (FailedException("later"), FailureKind.FAILED, "FailedException: later", ProtocolError),
    (StaleReadError("s", 4, 5), FailureKind.UNANSWERED, "StaleReadError: state 's' is at txid 5", ProtocolError),
    (StateUnreachableError("no answer"), FailureKind.UNANSWERED, "StateUnreachableError: no answer", ProtocolError),
    (BadInputError("line 3 is bad"), FailureKind.RECORD, "line 3 is bad", BadInputError),
    (SourceError("file is gone"), FailureKind.SOURCE, "file is gone", SourceError),
    (StateRefusedError("wrong type"), FailureKind.STATE, "wrong type", StateRefusedError),
    (TopologyError("closed"), FailureKind.USER, "Traceback (most recent call last):\n", UserCodeError),
    (CodecError("cannot be sent"), FailureKind.USER, "Traceback (most recent call last):\n", UserCodeError),
    (ValueError("mine"), FailureKind.USER, "Traceback (most recent call last):\n", UserCodeError),
]


@pytest.mark.parametrize(("error", "kind", "text", "final"), CASES, ids=lambda part: type(part).__name__)
def test_an_exception_is_sorted_by_what_follows_from_it(error, kind, text, final):
    failure = failure_of(raised(error), "store", 2, "Tuple(…)")
    assert (failure.kind, failure.component_id, failure.task_index) == (kind, "store", 2)
    assert failure.text.startswith(text)
    halting = (FailureKind.USER, FailureKind.RECORD, FailureKind.SOURCE, FailureKind.STATE)
    assert failure.halts() == (kind in halting)
    assert failure.is_of_batch() == (kind in (FailureKind.USER, FailureKind.RECORD, FailureKind.FAILED))
    ending = failure.to_error(attempt(3, 255))
    assert type(ending) is final
    assert "'store'" in str(ending)
    assert "attempt 3:00000000000000ff" in str(ending)


@pytest.mark.parametrize("kind", FailureKind)
def test_a_failure_survives_the_wire_and_pickling(kind):
    failure = Failure(kind, "store", 2, "line\nline", "Tuple(…)", "3:00000000000000ff")
    assert Failure.from_wire(unpack(pack(failure.to_wire()))) == failure
    assert pickle.loads(pickle.dumps(failure)) == failure


def test_what_an_error_is_about_reaches_the_driver():
    changed = SourceError("file 'a' has shrunk").about(Trouble.INPUT_CHANGED)
    travelled = Failure.from_wire(unpack(pack(failure_of(changed, "lines", 0).to_wire())))
    assert travelled.to_error().trouble is Trouble.INPUT_CHANGED
    plain = failure_of(SourceError("no file"), "lines", 0)
    assert (plain.trouble, plain.to_error().trouble) == ("", Trouble.INPUT)


def test_a_failure_reads_as_where_and_what():
    assert str(Failure(FailureKind.FAILED, "store", 2, "FailedException: later")) == "store[2]: FailedException: later"
    with_tuple = Failure(FailureKind.FAILED, "store", 2, "FailedException: later", "Tuple(lines/default: id=333)")
    assert str(with_tuple) == "store[2]: FailedException: later, at tuple Tuple(lines/default: id=333)"


def test_the_users_error_has_component_task_attempt_tuple_and_traceback():
    failure = failure_of(raised(ValueError("mine")), "store", 2, "Tuple(lines/default: line='x')")
    assert str(failure.to_error(attempt(3, 255))).startswith(
        "component 'store', task 2, attempt 3:00000000000000ff, at tuple Tuple(lines/default: line='x') raised:\n"
        "Traceback (most recent call last):\n"
    )


def test_without_an_attempt_the_error_names_the_batch_if_there_is_one():
    failure = lasting_failure_of(raised(FailedException("in prepare")), "count", 1)
    assert str(failure.to_error()).startswith("component 'count', task 1 raised:\nTraceback")
    within = replace(failure, batch="3:00000000000000ff")
    assert str(within.to_error()).startswith("component 'count', task 1, attempt 3:00000000000000ff raised:\n")
    refused = replace(failure, kind=FailureKind.SOURCE, text="file is gone")
    assert str(refused.to_error()) == "file is gone (component 'count')"


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")


def test_a_story_travels_even_if_its_text_is_not_valid_unicode():
    failure = Failure(FailureKind.USER, "store", 1, "no file 'caf\udce9'", "Tuple(\ud800)")
    received = Failure.from_wire(unpack(pack(failure.to_wire())))
    assert (received.text, received.tuple_text) == ("no file 'caf\\udce9'", "Tuple(\\ud800)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 1000, "Tuple(source/default: value='" + "x" * 271 + "… (731 more)"),
        (Unprintable(), "<tuple whose repr raised RuntimeError>"),
    ],
    ids=["long", "unprintable"],
)
def test_a_tuple_in_a_story_is_short_and_always_printable(value, text):
    wiring = wire(RecordingBolt({"execute": ValueError("mine")}))
    executor = BatchBoltExecutor(wiring, lambda *_: None)  # type: ignore[arg-type] # nothing is emitted
    failure = executor.execute(attempt(1), [(origin_of(wiring, attempt(1)), [[value]])])
    assert failure is not None
    assert failure.tuple_text == text


def test_dropping_what_was_never_there_does_not_fail():
    executor = BatchBoltExecutor(wire(RecordingBolt()), lambda *_: None)  # type: ignore[arg-type]
    assert executor.drop(attempt(1)) is None
    assert executor.counters(attempt(1)) == {}


def test_of_several_failures_the_first_that_explains_most_is_reported():
    incomplete, failed, again, user = (
        Failure(kind, "store", task_index, "text")
        for kind, task_index in (
            (FailureKind.INCOMPLETE, 0),
            (FailureKind.FAILED, 1),
            (FailureKind.FAILED, 0),
            (FailureKind.USER, 0),
        )
    )
    assert most_telling([incomplete, None, failed, again]) == failed
    assert most_telling([failed, user, incomplete]) == user
    assert most_telling([None, None]) is most_telling([]) is None
