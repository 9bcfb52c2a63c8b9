"""What a task sends for a batch: counted inside, in the tree outside, nothing after the report."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.plain.tasks.messages import Message, MessageKind
from coordinator.plain.tasks.outboxes import SubtopologyOutbox
from tests.support.tasks.messages import message_outbox
from tests.support.tasks.wirings import attempt

A = attempt(1)
INSIDE, OTHER_INSIDE, OUTSIDE = 21, 22, 30


def outbox(sent, roots=(7, 8)):
    task_outbox = message_outbox(10, (), sent.append)
    return SubtopologyOutbox(A, roots, sender=10, inside=(INSIDE, OTHER_INSIDE), outbox=task_outbox, random=Random(0))


def test_counts_go_to_everybody_inside_and_edges_are_those_that_were_sent():
    sent: list[Message] = []
    box = outbox(sent)
    box.add(INSIDE, 0, ["a"])
    box.add_all(INSIDE, 1, [["b"], ["c"]])
    box.add_all(OUTSIDE, 1, [["d"], ["e"]])
    edges = box.close()
    assert [(m.target, m.payload) for m in sent if m.kind is MessageKind.REGULAR] == [
        (INSIDE, ([1, 1001], [7, 8], 0, ["a"])),
        (INSIDE, ([1, 1001], [7, 8], 1, ["b"])),
        (INSIDE, ([1, 1001], [7, 8], 1, ["c"])),
    ]
    coords = {m.target: m.payload[1:] for m in sent if m.kind is MessageKind.COORD}
    assert coords == {
        INSIDE: ({7: edges[INSIDE], 8: edges[INSIDE]}, 3),
        OTHER_INSIDE: ({7: edges[OTHER_INSIDE], 8: edges[OTHER_INSIDE]}, 0),
    }
    first, second = (m.payload[2] for m in sent if m.kind is MessageKind.TUPLE)
    assert first[7] == first[8] != second[7] == second[8]
    assert edges[OUTSIDE] == first[7] ^ second[7]
    assert box.transferred == {0: 1, 1: 4}


@pytest.mark.parametrize("target", [INSIDE, OUTSIDE])
def test_nothing_can_be_sent_after_the_report(target):
    box = outbox([])
    box.close()
    with pytest.raises(RuntimeError, match="a tuple was emitted after finish_batch had returned"):
        box.add(target, 0, ["late"])
