"""Messages cross between processes unchanged."""

from __future__ import annotations

import pytest

from coordinator.plain.tasks.messages import (
    Message,
    MessageKind,
    coord_message,
    regular_message,
    tick_message,
    tree_message,
)
from state.attempt import TransactionAttempt
from tests.support.tasks.messages import edges_message, message_outbox, tuple_message

HUGE = 2**64 - 1
BATCH = TransactionAttempt(3, HUGE)
MESSAGES = [
    tuple_message(1, 2, stream_index=3, values=["a", (1, 2), None], roots={HUGE: 5, 0: HUGE}),
    edges_message(MessageKind.INIT, 1, 9, root=HUGE, edges=0),
    edges_message(MessageKind.ACK, 2, 9, root=0, edges=HUGE),
    tree_message(MessageKind.FAIL, 2, 9, 7),
    tree_message(MessageKind.RESET_TIMEOUT, 2, 9, 7),
    tree_message(MessageKind.ACKED, 9, 1, 7),
    tree_message(MessageKind.FAILED, 9, 1, 7),
    tick_message(0, 2, 1.5),
    regular_message(1, 2, batch=BATCH, roots=[HUGE, 0], stream_index=3, values=["a", (1, 2), None]),
    coord_message(1, 2, batch=BATCH, roots={HUGE: 5, 0: HUGE}, tuple_count=7),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.kind.name)
def test_a_message_comes_back_from_the_wire_as_it_was(message):
    sent: list[Message] = []
    message_outbox(message.sender, (9,), sent.append).send(message)
    assert sent == [message]


def test_these_are_messages_of_every_kind():
    assert {message.kind for message in MESSAGES} == set(MessageKind)
