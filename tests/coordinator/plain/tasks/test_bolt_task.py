"""A bolt task runs rich and basic bolts, acks for the latter, and says whose fault an exception is."""

from __future__ import annotations

from random import Random

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.streams.plain_tuple import PlainTuple, is_tick
from coordinator.plain.tasks.bolt_task import BoltTask
from coordinator.plain.tasks.messages import Message, MessageKind, tick_message, tree_message
from coordinator.plain.tasks.user_calls import end_on
from state.errors import FailedException, ProtocolError, UserCodeError
from tests.support.tasks.messages import message_outbox, tuple_message
from tests.support.tasks.wirings import Calls, wire

ACKER = 90


def script(tup, collector, *, basic):
    """What the bolts below do with a value, so that one test can ask it of both."""
    match tup["value"]:
        case "pass":
            collector.emit(["on"]) if basic else collector.emit(["on"], tup)
        case "pass and fail":
            collector.emit(["on"]) if basic else collector.emit(["on"], tup)
            raise FailedException("no")
        case "fail":
            raise FailedException("no")


class Basic(BaseBasicBolt):
    output_fields = ("value",)

    def prepare(self, conf, context):
        super().prepare(conf, context)
        Calls.log.append(("prepare", conf, context.task_id))

    def execute(self, tup, collector):
        Calls.log.append(("execute", tup))
        if not is_tick(tup):
            script(tup, collector, basic=True)

    def cleanup(self):
        Calls.log.append(("cleanup",))


class Rich(BaseRichBolt):
    output_fields = ("value",)

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        Calls.log.append(("prepare", conf, context.task_id))

    def execute(self, tup):
        Calls.log.append(("execute", tup))
        if is_tick(tup):
            return
        match tup["value"]:
            case "ack and fail":
                self.collector.ack(tup)
                raise FailedException("too late")
            case "fail twice":
                self.collector.fail(tup)
                raise FailedException("again")
        script(tup, self.collector, basic=False)
        self.collector.ack(tup)

    def cleanup(self):
        Calls.log.append(("cleanup",))


class Raising(BaseBasicBolt):
    def prepare(self, conf, context):
        raise FailedException("in prepare")

    def execute(self, tup, collector):
        """Never called."""

    def cleanup(self):
        raise OSError("in cleanup")


def make(bolt):
    sent: list[Message] = []
    wiring = wire(bolt, targets=(21,), ackers=(ACKER,))
    return BoltTask(wiring, message_outbox(wiring.task_id, (ACKER,), sent.append), Random(1)), sent


def started(bolt):
    """The same of a task whose bolt is prepared, and no calls yet."""
    task, sent = make(bolt)
    end_on(task.start())
    Calls.take()
    return task, sent


def given(value, root=7, edge=70):
    return tuple_message(1, 10, stream_index=0, values=[value], roots={root: edge})


both = pytest.mark.parametrize("bolt", [Basic(), Rich()], ids=["basic", "rich"])


@both
def test_a_bolt_is_prepared_executes_and_cleans_up(bolt):
    task, _ = make(bolt)
    assert Calls.take() == []
    end_on(task.start())
    assert Calls.take() == [("prepare", {"key": "value"}, 10)]
    end_on(task.receive(given("x")))
    ((_, tup),) = Calls.take()
    assert isinstance(tup, PlainTuple)
    assert (tup.values, tup.fields, tup.source_component, tup.source_task, tup.stream_id, tup.roots) == (
        ["x"],
        ("value",),
        "source",
        1,
        "default",
        {7: 70},
    )
    end_on(task.close())
    assert Calls.take() == [("cleanup",)]


@both
def test_what_is_passed_on_is_anchored_on_the_input_which_is_acked_with_it(bolt):
    task, sent = started(bolt)
    end_on(task.receive(given("pass")))
    passed, acked = sent
    edge = passed.payload[2][7]
    assert passed == Message(10, 21, MessageKind.TUPLE, (0, ["on"], {7: edge}))
    assert acked == Message(10, ACKER, MessageKind.ACK, (7, 70 ^ edge))


@both
def test_a_failed_exception_fails_the_tuple_at_once_and_the_run_goes_on(bolt):
    task, sent = started(bolt)
    end_on(task.receive(given("fail")))
    assert sent == [tree_message(MessageKind.FAIL, 10, ACKER, 7)]
    end_on(task.receive(given("pass and fail", root=8)))
    assert sent[2:] == [tree_message(MessageKind.FAIL, 10, ACKER, 8)]
    end_on(task.receive(given("pass", root=9)))
    assert sent[-1].kind is MessageKind.ACK


def test_a_failed_exception_after_an_ack_comes_too_late():
    task, _ = started(Rich())
    with pytest.raises(UserCodeError, match="FailedException: too late"):
        end_on(task.receive(given("ack and fail")))


def test_a_failed_exception_after_a_fail_changes_nothing():
    task, sent = started(Rich())
    end_on(task.receive(given("fail twice")))
    assert sent == [tree_message(MessageKind.FAIL, 10, ACKER, 7)]


def test_a_basic_bolt_cannot_emit_on_a_tuple_after_its_execute():
    task, _ = started(Basic())
    end_on(task.receive(given("x")))
    with pytest.raises(ValueError, match="cannot be anchored on: it was already acked"):
        task._anchoring.emit(["late"])


@both
def test_a_tick_is_a_tuple_of_the_system_that_belongs_to_no_tree(bolt):
    task, sent = started(bolt)
    end_on(task.receive(tick_message(0, 10, 5)))
    ((_, tick),) = Calls.take()
    assert is_tick(tick)
    assert (tick["rate_secs"], tick.source_component, tick.stream_id) == (5, "__system", "__tick")
    assert sent == []
    end_on(task.receive(given("x")))
    assert not is_tick(Calls.take()[0][1])


def test_prepare_and_cleanup_that_raise_end_the_run_and_have_nothing_to_fail():
    task, sent = make(Raising())
    with pytest.raises(UserCodeError, match=r"component 'bolt', task 0 raised:\n(.*\n)*.*FailedException: in prepare"):
        end_on(task.start())
    with pytest.raises(UserCodeError, match="OSError: in cleanup"):
        end_on(task.close())
    assert sent == []


def test_a_message_for_others_is_a_bug_of_ours():
    task, _ = make(Basic())
    with pytest.raises(ProtocolError, match="bolt task 10 received an unexpected Message"):
        end_on(task.receive(tree_message(MessageKind.ACKED, ACKER, 10, 7)))
