"""What is told of an exception of user code: printable, bounded, and with a remedy where Python knows none."""

from __future__ import annotations

import pytest

from committers.committer import ICommitter
from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt, IBatchBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinated_bolt.user_failure import failure_of
from coordinated_bolt.user_traceback import user_traceback
from state import HashState
from state.codec import pack
from state.errors import FailedException
from tests.support.tasks.collectors import make
from tests.support.tasks.wirings import RecordingBolt, attempt, origin_of, wire


class Counts(BaseBatchBolt, ICommitter):
    lines = HashState("lines")

    def prepare(self, conf, context, collector, attempt):
        self.total = 0


class Bare(IBatchBolt):
    def prepare(self, conf, context, collector, attempt): ...

    def execute(self, tup): ...

    def finish_batch(self): ...


class Rich(BaseRichBolt):
    def prepare(self, conf, context, collector): ...

    def execute(self, tup): ...


class Basic(BaseBasicBolt):
    def prepare(self, conf, context): ...

    def execute(self, tup, collector): ...


class Lines(BaseSpout):
    def open(self, conf, context, collector): ...

    def next_tuple(self): ...


def raised(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it was
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("component", "attribute", "remedy"),
    [
        (
            Counts(),
            "collector",
            "Counts overrides prepare, which sets self.collector; call super().prepare(conf, context, collector, "
            "attempt) there",
        ),
        (Counts(), "attempt", "Counts overrides prepare, which sets self.attempt"),
        (
            Counts(),
            "totals",
            "self.totals was never set; set it in prepare or, if it is a committer's state, declare it in class "
            "Counts: totals = HashState('totals')",
        ),
        (Bare(), "collector", "self.collector was never set; set it in prepare"),
        (Rich(), "collector", "Rich overrides prepare, which sets self.collector; call super().prepare(conf, context,"),
        (Basic(), "context", "Basic overrides prepare, which sets self.context; call super().prepare(conf, context)"),
        (Lines(), "collector", "Lines overrides open, which sets self.collector; call super().open(conf, context,"),
    ],
)
def test_an_attribute_nobody_has_set_comes_with_its_remedy(component, attribute, remedy):
    text = user_traceback(raised(lambda: getattr(component, attribute)))

    assert text.splitlines()[-2].startswith("AttributeError: ")
    assert text.splitlines()[-1].startswith(f"remedy: {remedy}")


@pytest.mark.parametrize("method", ["emit", "emit_all"])
def test_a_stream_given_by_the_wrong_keyword_is_answered_with_the_right_one(method):
    collector, _, _ = make()

    text = user_traceback(raised(lambda: getattr(collector, method)(["a"], stream="late")))

    assert text.splitlines()[-1] == "remedy: the parameter is called stream_id"


def test_other_errors_are_left_to_their_own_words():
    for wrong in (lambda: [].colector, lambda: int("x"), lambda: 1 / 0):  # type: ignore[attr-defined]
        assert "remedy" not in user_traceback(raised(wrong))


def test_an_error_cannot_write_to_the_terminal_or_fill_it():
    def fail():
        raise ValueError("\x1b[2J\rdone" + "x" * 5_000_000)

    text = user_traceback(raised(fail))

    assert "\x1b" not in text
    assert "\r" not in text
    assert "ValueError: \\x1b[2J\\rdonexxx" in text
    assert len(text) < 10_000


def test_a_failed_exception_is_one_bounded_line():
    failure = failure_of(FailedException("later\ntxbatch: done \x1b[31m" + "x" * 10_000), "bolt", 0)

    assert failure.text.startswith("FailedException: later\\ntxbatch: done \\x1b[31mxxx")
    assert len(failure.text) < 1_100


def test_only_the_users_frames_are_told(monkeypatch):
    executor = BatchBoltExecutor(wire(RecordingBolt({"execute": ValueError("mine")})), lambda *_: None)  # type: ignore[arg-type]
    failure = executor.execute(attempt(1), [(origin_of(wire(RecordingBolt()), attempt(1)), [["a"]])])

    assert failure is not None
    frames = [line for line in failure.text.splitlines() if line.startswith("  File ")]
    assert frames
    assert all("wirings.py" in frame for frame in frames)


def test_what_our_own_check_was_made_from_is_left_out():
    text = user_traceback(raised(lambda: pack([object()])))

    assert text.count("Traceback") == 1
    assert "msgpack" not in text
    assert "CodecError: cannot be sent or stored: <object object at" in text


def test_a_chain_of_the_users_own_is_kept():
    def fail():
        try:
            int("a")
        except ValueError as error:
            raise KeyError("b") from error

    assert user_traceback(raised(fail)).count("Traceback") == 2
