"""Messages to ackers: each goes to the acker that keeps its root."""

from __future__ import annotations

from coordinator.plain.tasks.messages import Message, MessageKind, tree_message
from tests.support.tasks.messages import edges_message, message_outbox

TASK, ACKERS = 3, (90, 91)


def test_each_message_reaches_the_acker_of_its_root():
    sent: list[Message] = []
    ackers = message_outbox(TASK, ACKERS, sent.append)
    ackers.init(4, 17)
    ackers.ack(5, 18)
    ackers.fail(6)
    ackers.reset_timeout(7)
    assert sent == [
        edges_message(MessageKind.INIT, TASK, 90, root=4, edges=17),
        edges_message(MessageKind.ACK, TASK, 91, root=5, edges=18),
        tree_message(MessageKind.FAIL, TASK, 90, 6),
        tree_message(MessageKind.RESET_TIMEOUT, TASK, 91, 7),
    ]
