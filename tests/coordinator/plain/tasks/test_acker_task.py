"""An acker task tells the spout task that emitted a root how its tree ended, once, and forgets it."""

from __future__ import annotations

import pytest

from coordinator.plain.tasks import acker_task
from coordinator.plain.tasks.acker_task import AckerTask
from coordinator.plain.tasks.messages import Message, MessageKind, tick_message, tree_message
from state.errors import ProtocolError
from tests.support.tasks.messages import edges_message

ACKER, SPOUT, BOLT, ROOT = 90, 1, 10, 77
INIT = edges_message(MessageKind.INIT, SPOUT, ACKER, root=ROOT, edges=5)
ACK = edges_message(MessageKind.ACK, BOLT, ACKER, root=ROOT, edges=5)
FAIL = tree_message(MessageKind.FAIL, BOLT, ACKER, ROOT)
RESET = tree_message(MessageKind.RESET_TIMEOUT, BOLT, ACKER, ROOT)
ACKED = Message(ACKER, SPOUT, MessageKind.ACKED, (ROOT,))
FAILED = Message(ACKER, SPOUT, MessageKind.FAILED, (ROOT,))


def make():
    sent: list[Message] = []
    return AckerTask(ACKER, sent.append), sent


def receive(acker, *messages):
    for message in messages:
        acker.receive(message)


@pytest.mark.case(id="G6")
@pytest.mark.parametrize("order", [(INIT, ACK), (ACK, INIT)], ids=["init first", "ack first"])
def test_init_and_ack_in_either_order_are_one_ack(order):
    acker, sent = make()
    receive(acker, *order)
    assert sent == [ACKED]
    assert len(acker) == len(acker._spout_of) == 0


def test_jstorm_a_fail_before_init_is_kept():
    acker, sent = make()
    receive(acker, FAIL)
    assert sent == []
    receive(acker, INIT)
    assert sent == [FAILED]


def test_each_root_is_answered_to_the_spout_task_that_emitted_it():
    acker, sent = make()
    for spout in (1, 2, 3):
        receive(acker, edges_message(MessageKind.INIT, spout, ACKER, root=spout, edges=5))
    for root in (2, 3, 1):
        receive(acker, edges_message(MessageKind.ACK, BOLT, ACKER, root=root, edges=5))
    assert [(message.target, message.root) for message in sent] == [(2, 2), (3, 3), (1, 1)]


def test_a_tree_is_forgotten_by_the_third_tick_after_its_last_message():
    acker, sent = make()
    receive(acker, INIT)
    acker.tick()
    acker.tick()
    assert len(acker) == 1
    receive(acker, edges_message(MessageKind.ACK, BOLT, ACKER, root=ROOT, edges=1))  # begins its time anew
    acker.tick()
    acker.tick()
    assert len(acker) == 1
    acker.tick()
    assert len(acker) == 0
    receive(acker, edges_message(MessageKind.ACK, BOLT, ACKER, root=ROOT, edges=4))
    assert sent == []


def test_a_fail_is_told_at_once_and_nothing_is_kept_of_the_tree_whatever_comes_of_it_later():
    acker, sent = make()
    receive(acker, INIT, FAIL)
    assert (len(acker), sent) == (0, [FAILED])
    receive(acker, ACK, FAIL, RESET)
    assert (len(acker), sent) == (0, [FAILED])


def test_an_acker_remembers_a_bounded_number_of_failures(monkeypatch):
    monkeypatch.setattr(acker_task, "REMEMBERED_FAILURES", 2)
    acker, _ = make()
    for root in (1, 2, 3):
        for message in (
            edges_message(MessageKind.INIT, SPOUT, ACKER, root=root, edges=5),
            tree_message(MessageKind.FAIL, BOLT, ACKER, root),
        ):
            acker.receive(message)
    for root in (1, 2, 3):
        acker.receive(edges_message(MessageKind.ACK, BOLT, ACKER, root=root, edges=5))
    assert len(acker) == 1  # root 1 was forgotten first


def test_a_reset_begins_the_trees_time_anew_and_reaches_the_spout():
    acker, sent = make()
    receive(acker, INIT)
    acker.tick()
    acker.tick()
    receive(acker, RESET)
    assert sent == [Message(ACKER, SPOUT, MessageKind.RESET_TIMEOUT, (ROOT,))]
    acker.tick()
    acker.tick()
    receive(acker, ACK)
    assert sent[1:] == [ACKED]


def test_a_reset_of_a_tree_it_does_not_know_is_ignored():
    acker, sent = make()
    receive(acker, RESET)
    assert (len(acker), sent) == (0, [])
    receive(acker, ACK, RESET)  # before INIT nobody knows the spout
    assert sent == []
    receive(acker, INIT)
    assert sent == [ACKED]


def test_a_message_for_others_is_a_bug_of_ours():
    acker, _ = make()
    with pytest.raises(ProtocolError, match="acker task 90 received an unexpected Message"):
        receive(acker, tick_message(0, ACKER, 1))
