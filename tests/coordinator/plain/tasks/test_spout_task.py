"""A spout task draws roots, waits for their trees, and tells the spout exactly once how each ended."""

from __future__ import annotations

from random import Random

import pytest

from coordinated_bolt.components.spouts import BaseSpout, IAckValueSpout, IFailValueSpout
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import AllGrouping
from coordinated_bolt.watching.task_observer import Meter, TaskObserver
from coordinator.plain.tasks.messages import Message, MessageKind, tick_message, tree_message
from coordinator.plain.tasks.spout_task import SpoutTask
from coordinator.plain.tasks.user_calls import end_on
from state.errors import ProtocolError, UserCodeError
from tests.support.tasks.messages import message_outbox
from tests.support.tasks.wirings import Calls, output, wire

ACKERS = (90, 91)
STREAMS = (StreamSpec("default", ("value",)), StreamSpec("orders", ("value",), direct=True))


class Scripted(BaseSpout):
    """Emits (values, message id) pairs, one a call; records its calls."""

    output_fields = ("value",)

    def __init__(self, *script):
        self.script = list(script)

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        Calls.log.append(("open", conf, context.task_id))

    def next_tuple(self):
        if self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            self.collector.emit(*step)

    def ack(self, message_id):
        Calls.log.append(("ack", message_id))

    def fail(self, message_id):
        Calls.log.append(("fail", message_id))

    def activate(self):
        Calls.log.append(("activate",))

    def deactivate(self):
        Calls.log.append(("deactivate",))

    def close(self):
        Calls.log.append(("close",))


class WithValues(IAckValueSpout, IFailValueSpout, BaseSpout):
    output_fields = ("value",)

    def next_tuple(self):
        self.collector.emit(["v"], "m")

    def ack(self, message_id, values=()):
        Calls.log.append(("ack", message_id, values))

    def fail(self, message_id, values=()):
        Calls.log.append(("fail", message_id, values))


class Chatty(Scripted):
    """Emits the next message when one is acked."""

    def ack(self, message_id):
        super().ack(message_id)
        self.collector.emit(["again"], message_id + 1)


class Sender(Scripted):
    def next_tuple(self):
        self.collector.emit_direct(22, ["d"], "m", "orders")


def make(spout, *, targets=(21, 22), ackers=ACKERS, **options):
    """A task that is active, what it sends, and no calls yet."""
    sent: list[Message] = []
    streams = output(targets, AllGrouping(), *STREAMS)
    wiring = wire(spout, task_id=1, targets=targets, streams=streams, ackers=ackers)
    task = SpoutTask(wiring, message_outbox(1, ackers, sent.append), Random(1), **options)
    end_on(task.start())
    end_on(task.activate())
    Calls.take()
    return task, sent


def root_of(sent):
    (init,) = (message for message in sent if message.kind is MessageKind.INIT)
    return init.root


def ended(kind, root):
    return tree_message(kind, ACKERS[root % 2], 1, root)


def test_a_message_is_a_root_with_an_edge_for_each_target_and_an_init_of_them_all():
    task, sent = make(Scripted((["x"], "m")))
    assert task.ask()
    first, second, init = sent
    root = init.root
    edges = [message.payload[2][root] for message in (first, second)]
    assert sent == [
        Message(1, 21, MessageKind.TUPLE, (0, ["x"], {root: edges[0]})),
        Message(1, 22, MessageKind.TUPLE, (0, ["x"], {root: edges[1]})),
        Message(1, ACKERS[root % 2], MessageKind.INIT, (root, edges[0] ^ edges[1])),
    ]
    assert edges[0] != edges[1]
    assert task.pending_count == 1


def test_a_message_nobody_subscribes_to_is_a_root_without_edges():
    task, sent = make(Scripted((["x"], "m")), targets=())
    task.ask()
    assert sent == [Message(1, ACKERS[sent[0].root % 2], MessageKind.INIT, (sent[0].root, 0))]


def test_a_tuple_without_message_id_is_not_tracked():
    task, sent = make(Scripted((["x"], None)))
    assert task.ask()
    assert [(message.target, message.payload) for message in sent] == [(21, (0, ["x"], {})), (22, (0, ["x"], {}))]
    assert task.pending_count == 0
    end_on(task.tick())
    end_on(task.tick())
    assert Calls.take() == []


def test_a_direct_message_is_tracked_too():
    task, sent = make(Sender())
    task.ask()
    root = root_of(sent)
    assert sent[0] == Message(1, 22, MessageKind.TUPLE, (1, ["d"], {root: sent[1].payload[1]}))


@pytest.mark.parametrize(("kind", "call"), [(MessageKind.ACKED, "ack"), (MessageKind.FAILED, "fail")])
def test_the_spout_is_told_once_how_its_message_ended(kind, call):
    task, sent = make(Scripted((["x"], "m")))
    task.ask()
    end_on(task.receive(ended(kind, root_of(sent))))
    assert Calls.take() == [(call, "m")]
    assert task.pending_count == 0
    for late in (MessageKind.ACKED, MessageKind.FAILED):
        end_on(task.receive(ended(late, root_of(sent))))
    assert Calls.take() == []


@pytest.mark.parametrize(("kind", "call"), [(MessageKind.ACKED, "ack"), (MessageKind.FAILED, "fail")])
def test_a_value_spout_gets_its_values_back(kind, call):
    task, sent = make(WithValues())
    task.ask()
    end_on(task.receive(ended(kind, root_of(sent))))
    assert Calls.take() == [(call, "m", ["v"])]


@pytest.mark.parametrize("bases", [(BaseSpout, IAckValueSpout), (IFailValueSpout, BaseSpout)])
def test_a_value_spout_has_to_say_what_it_does_with_them(bases):
    forgetful = type("Forgetful", bases, {"next_tuple": lambda self: None})
    with pytest.raises(TypeError, match="abstract class Forgetful"):
        forgetful()


def test_a_value_spout_that_times_out_gets_its_values_back():
    task, _ = make(WithValues())
    task.ask()
    end_on(task.tick())
    end_on(task.tick())
    assert Calls.take() == [("fail", "m", ["v"])]


def test_a_message_fails_with_the_second_tick_after_its_emit():
    task, sent = make(Scripted((["x"], "old"), (["y"], "young")))
    task.ask()
    end_on(task.tick())
    assert Calls.take() == []
    task.ask()
    end_on(task.tick())
    assert Calls.take() == [("fail", "old")]
    assert task.pending_count == 1
    end_on(task.receive(ended(MessageKind.ACKED, next(m for m in sent if m.kind is MessageKind.INIT).root)))
    assert Calls.take() == []  # a late ack
    end_on(task.tick())
    assert Calls.take() == [("fail", "young")]


def test_a_reset_begins_the_time_of_a_message_anew():
    task, sent = make(Scripted((["x"], "m")))
    task.ask()
    end_on(task.tick())
    end_on(task.receive(ended(MessageKind.RESET_TIMEOUT, root_of(sent))))
    end_on(task.tick())
    assert Calls.take() == []
    end_on(task.tick())
    assert Calls.take() == [("fail", "m")]
    end_on(task.receive(ended(MessageKind.RESET_TIMEOUT, root_of(sent))))
    assert task.pending_count == 0


@pytest.mark.case(id="P-12")
def test_without_ackers_a_message_is_acked_at_once_and_never_fails():
    task, sent = make(Scripted((["x"], "m")), ackers=())
    assert task.ask()
    assert Calls.take() == [("ack", "m")]
    assert [message.payload for message in sent] == [(0, ["x"], {}), (0, ["x"], {})]
    end_on(task.tick())
    end_on(task.tick())
    assert Calls.take() == []


def test_a_spout_that_emits_in_its_ack_is_acked_step_by_step_where_nothing_is_tracked():
    task, _ = make(Chatty((["x"], 1)), ackers=())
    for number in (1, 2, 3):
        assert task.ask()
        assert Calls.take() == [("ack", number)]


def test_it_is_asked_while_active_and_below_its_bound():
    task, sent = make(Scripted(*[([number], number) for number in range(5)]), max_spout_pending=2)
    assert [task.ask() for _ in range(3)] == [1, 1, 0]
    end_on(task.receive(ended(MessageKind.FAILED, next(m for m in sent if m.kind is MessageKind.INIT).root)))
    assert [task.ask() for _ in range(2)] == [1, 0]
    end_on(task.receive(ended(MessageKind.FAILED, [m for m in sent if m.kind is MessageKind.INIT][1].root)))
    end_on(task.deactivate())
    assert task.ask() == 0
    end_on(task.activate())
    assert task.ask() == 1


def test_life_begins_with_open_and_ends_with_close_and_an_inactive_spout_still_learns():
    sent: list[Message] = []
    wiring = wire(Scripted((["x"], "m")), task_id=1, targets=(21,), streams=output((21,)), ackers=ACKERS)
    task = SpoutTask(wiring, message_outbox(1, ACKERS, sent.append), Random(1))
    assert task.ask() == 0
    end_on(task.start())
    assert task.ask() == 0
    end_on(task.activate())
    end_on(task.activate())
    task.ask()
    end_on(task.deactivate())
    end_on(task.deactivate())
    end_on(task.receive(ended(MessageKind.ACKED, root_of(sent))))
    end_on(task.close())
    assert Calls.take() == [
        ("open", {"key": "value"}, 1),
        ("activate",),
        ("deactivate",),
        ("ack", "m"),
        ("close",),
    ]


def test_a_spout_that_has_nothing_says_so():
    task, sent = make(Scripted())
    assert not task.ask()
    assert sent == []


def test_what_a_spout_raises_ends_the_run_and_what_it_could_not_emit_is_not_waited_for():
    task, sent = make(Scripted(KeyError("oops"), (["too", "many"], "m")))
    with pytest.raises(UserCodeError, match=r"component 'bolt', task 0 raised:\n(.*\n)*KeyError: 'oops'"):
        task.ask()
    with pytest.raises(UserCodeError, match="which takes a list of 1 value:"):
        task.ask()
    assert (sent, task.pending_count) == ([], 0)


def test_a_message_for_others_is_a_bug_of_ours():
    task, _ = make(Scripted())
    with pytest.raises(ProtocolError, match="spout task 1 received an unexpected Message"):
        end_on(task.receive(tick_message(0, 1, 5)))


def test_roots_and_edges_depend_on_the_seed_alone():
    def sent_with(seed):
        sent: list[Message] = []
        wiring = wire(Scripted((["x"], "m")), task_id=1, targets=(21,), streams=output((21,)), ackers=ACKERS)
        task = SpoutTask(wiring, message_outbox(1, ACKERS, sent.append), Random(seed))
        end_on(task.start())
        end_on(task.activate())
        task.ask()
        return sent

    assert sent_with(1) == sent_with(1)
    assert root_of(sent_with(1)) != root_of(sent_with(2))


def test_an_observer_is_told_what_the_spout_emits_and_hears():
    class Seen(TaskObserver):
        def __init__(self):
            self.steps = []

        def emitted(self, stream_id, values, receivers, attempt=None):
            self.steps.append(("emitted", stream_id, values, receivers))

        def message_acked(self, message, latency_ns):
            self.steps.append(("acked", message.message_id))

        def message_failed(self, message, latency_ns):
            self.steps.append(("failed", message.message_id))

    seen = Seen()
    task, sent = make(Scripted((["x"], "a"), (["y"], "b")), meter=Meter(observer=seen))
    task.ask()
    end_on(task.receive(ended(MessageKind.ACKED, root_of(sent))))
    task.ask()
    end_on(task.tick())
    end_on(task.tick())
    assert seen.steps == [
        ("emitted", "default", ["x"], [21, 22]),
        ("acked", "a"),
        ("emitted", "default", ["y"], [21, 22]),
        ("failed", "b"),
    ]
