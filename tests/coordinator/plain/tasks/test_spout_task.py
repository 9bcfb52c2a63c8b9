"""A spout task draws roots, waits for their trees, and tells the spout exactly once how each ended."""

from __future__ import annotations

from random import Random

import pytest

from coordinated_bolt.components.spouts import BaseSpout, IAckValueSpout, IFailValueSpout
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import AllGrouping
from coordinator.plain.tasks.messages import Message, MessageKind, tick_message, tree_message
from coordinator.plain.tasks.spout_task import SpoutTask
from coordinator.plain.tasks.user_calls import end_on
from state.errors import ProtocolError, UserCodeError
from tests.support.tasks.messages import message_outbox
from tests.support.tasks.wirings import Calls, output, wire

ACKERS = (90, 91)
STREAMS = (StreamSpec("default", ("value",)), StreamSpec("orders", ("value",), direct=True))
ACKED, FAILED, RESET = MessageKind.ACKED, MessageKind.FAILED, MessageKind.RESET_TIMEOUT


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

    def ack(self, message_id, *values):
        Calls.log.append(("ack", message_id, *values))

    def fail(self, message_id, *values):
        Calls.log.append(("fail", message_id, *values))

    def activate(self):
        Calls.log.append(("activate",))

    def deactivate(self):
        Calls.log.append(("deactivate",))

    def close(self):
        Calls.log.append(("close",))


class WithValues(Scripted, IAckValueSpout, IFailValueSpout):
    """Gets its values back."""


class Chatty(Scripted):
    """Emits the next message when one is acked."""

    def ack(self, message_id):
        super().ack(message_id)
        self.collector.emit(["again"], message_id + 1)


class Sender(Scripted):
    def next_tuple(self):
        self.collector.emit_direct(22, ["d"], "m", "orders")


class Task:
    """One spout task and what it has sent; `number` names a message by the order of their emits."""

    def __init__(self, spout, *, targets=(21, 22), ackers=ACKERS, seed=1, **options):
        self.sent: list[Message] = []
        streams = output(targets, AllGrouping(), *STREAMS)
        wiring = wire(spout, task_id=1, targets=targets, streams=streams, ackers=ackers)
        self.task = SpoutTask(wiring, message_outbox(1, ackers, self.sent.append), Random(seed), **options)

    def roots(self):
        return [message.root for message in self.sent if message.kind is MessageKind.INIT]

    def hears(self, kind, number=0):
        """What an acker says of a message."""
        root = self.roots()[number]
        end_on(self.task.receive(tree_message(kind, ACKERS[root % 2], 1, root)))

    def tick(self):
        end_on(self.task.tick())


def active(spout, **more):
    """A task that is active, and no calls yet."""
    made = Task(spout, **more)
    end_on(made.task.start())
    end_on(made.task.activate())
    Calls.take()
    return made


def test_a_message_is_a_root_with_an_edge_for_each_target_and_an_init_of_them_all():
    made = active(Scripted((["x"], "m")))
    assert made.task.ask()
    first, second, init = made.sent
    root = init.root
    edges = [message.payload[2][root] for message in (first, second)]
    assert made.sent == [
        Message(1, 21, MessageKind.TUPLE, (0, ["x"], {root: edges[0]})),
        Message(1, 22, MessageKind.TUPLE, (0, ["x"], {root: edges[1]})),
        Message(1, ACKERS[root % 2], MessageKind.INIT, (root, edges[0] ^ edges[1])),
    ]
    assert edges[0] != edges[1]
    assert made.task.pending_count == 1


def test_a_message_nobody_subscribes_to_is_a_root_without_edges():
    made = active(Scripted((["x"], "m")), targets=())
    made.task.ask()
    (root,) = made.roots()
    assert made.sent == [Message(1, ACKERS[root % 2], MessageKind.INIT, (root, 0))]


def test_a_direct_message_is_tracked_too():
    made = active(Sender())
    made.task.ask()
    (root,) = made.roots()
    assert made.sent[0] == Message(1, 22, MessageKind.TUPLE, (1, ["d"], {root: made.sent[1].payload[1]}))


@pytest.mark.parametrize(("kind", "call"), [(ACKED, "ack"), (FAILED, "fail")])
@pytest.mark.parametrize(("spout", "values"), [(Scripted, ()), (WithValues, (["x"],))])
def test_the_spout_is_told_once_how_its_message_ended_with_its_values_if_it_wants_them(kind, call, spout, values):
    made = active(spout((["x"], "m")))
    made.task.ask()
    made.hears(kind)
    assert Calls.take() == [(call, "m", *values)]
    assert made.task.pending_count == 0
    for late in (ACKED, FAILED):
        made.hears(late)
    assert Calls.take() == []


@pytest.mark.parametrize("bases", [(BaseSpout, IAckValueSpout), (IFailValueSpout, BaseSpout)])
def test_a_value_spout_has_to_say_what_it_does_with_them(bases):
    forgetful = type("Forgetful", bases, {"next_tuple": lambda self: None})
    with pytest.raises(TypeError, match="abstract class Forgetful"):
        forgetful()


def test_a_message_fails_with_the_second_tick_after_its_emit():
    made = active(WithValues((["x"], "old"), (["y"], "young")))
    made.task.ask()
    made.tick()
    assert Calls.take() == []
    made.task.ask()
    made.tick()
    assert Calls.take() == [("fail", "old", ["x"])]
    assert made.task.pending_count == 1
    made.hears(ACKED, 0)
    assert Calls.take() == []  # a late ack
    made.tick()
    assert Calls.take() == [("fail", "young", ["y"])]


def test_a_reset_begins_the_time_of_a_message_anew():
    made = active(Scripted((["x"], "m")))
    made.task.ask()
    made.tick()
    made.hears(RESET)
    made.tick()
    assert Calls.take() == []
    made.tick()
    assert Calls.take() == [("fail", "m")]
    made.hears(RESET)
    assert made.task.pending_count == 0


@pytest.mark.case(id="P-12")
def test_without_ackers_a_message_is_acked_at_once_and_never_fails():
    made = active(Scripted((["x"], "m")), ackers=())
    assert made.task.ask()
    assert Calls.take() == [("ack", "m")]
    assert [message.payload for message in made.sent] == [(0, ["x"], {}), (0, ["x"], {})]
    made.tick()
    made.tick()
    assert Calls.take() == []


def test_a_spout_that_emits_in_its_ack_is_acked_step_by_step_where_nothing_is_tracked():
    made = active(Chatty((["x"], 1)), ackers=())
    for number in (1, 2, 3):
        assert made.task.ask()
        assert Calls.take() == [("ack", number)]


def test_it_is_asked_while_active_and_below_its_bound():
    made = active(Scripted(*[([number], number) for number in range(5)]), max_spout_pending=2)
    assert [made.task.ask() for _ in range(3)] == [1, 1, 0]
    made.hears(FAILED, 0)
    assert [made.task.ask() for _ in range(2)] == [1, 0]
    made.hears(FAILED, 1)
    end_on(made.task.deactivate())
    assert made.task.ask() == 0
    end_on(made.task.activate())
    assert made.task.ask() == 1


def test_life_begins_with_open_and_ends_with_close_and_an_inactive_spout_still_learns():
    made = Task(Scripted((["x"], "m")))
    task = made.task
    assert task.ask() == 0
    end_on(task.start())
    assert task.ask() == 0
    for _ in range(2):
        end_on(task.activate())
    task.ask()
    for _ in range(2):
        end_on(task.deactivate())
    made.hears(ACKED)
    end_on(task.close())
    opened = ("open", {"key": "value"}, 1)
    assert Calls.take() == [opened, ("activate",), ("deactivate",), ("ack", "m"), ("close",)]


def test_what_a_spout_raises_ends_the_run_and_what_it_could_not_emit_is_not_waited_for():
    made = active(Scripted(KeyError("oops"), (["too", "many"], "m")))
    with pytest.raises(UserCodeError, match=r"component 'bolt', task 0 raised:\n(.*\n)*KeyError: 'oops'"):
        made.task.ask()
    with pytest.raises(UserCodeError, match="which takes a list of 1 value:"):
        made.task.ask()
    assert (made.sent, made.task.pending_count) == ([], 0)


def test_a_message_for_others_is_a_bug_of_ours():
    with pytest.raises(ProtocolError, match="spout task 1 received an unexpected Message"):
        active(Scripted()).task.receive(tick_message(0, 1, 5))


def test_roots_and_edges_depend_on_the_seed_alone():
    made = [active(Scripted((["x"], "m")), seed=seed) for seed in (1, 1, 2)]
    for each in made:
        each.task.ask()
    assert made[0].sent == made[1].sent
    assert made[0].roots() != made[2].roots()
