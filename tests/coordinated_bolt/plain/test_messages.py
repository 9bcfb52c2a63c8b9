"""Messages cross between processes unchanged."""

from __future__ import annotations

import pytest

from coordinated_bolt.plain.messages import (
    Message,
    MessageKind,
    acker_of,
    coord_message,
    edges_message,
    regular_message,
    tick_message,
    tree_message,
    tuple_message,
)
from state.attempt import TransactionAttempt
from state.codec import pack, unpack

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
    assert Message.from_wire(unpack(pack(message.to_wire()))) == message


def test_every_kind_of_message_is_made_here():
    assert {message.kind for message in MESSAGES} == set(MessageKind)


def test_a_message_keeps_its_own_copy_of_values_and_roots():
    values, roots = ["a"], {1: 2}
    message = tuple_message(1, 2, stream_index=0, values=values, roots=roots)
    values.append("b")
    roots[3] = 4
    assert message.payload == (0, ["a"], {1: 2})


def test_all_senders_choose_the_acker_by_root():
    assert [acker_of(root, (90, 91, 92)) for root in (0, 1, 2, 3, HUGE)] == [90, 91, 92, 90, (90, 91, 92)[HUGE % 3]]


def test_a_message_about_a_tree_names_its_root():
    assert [message.root for message in MESSAGES[1:7]] == [HUGE, 0, 7, 7, 7, 7]


def test_a_message_of_a_batch_names_it():
    assert [message.batch for message in MESSAGES[8:]] == [BATCH, BATCH]
