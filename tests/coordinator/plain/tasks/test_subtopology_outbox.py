"""What a task sends for a batch: nothing after the report."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.plain.tasks.messages import Message
from coordinator.plain.tasks.outboxes import SubtopologyOutbox
from tests.support.tasks.messages import message_outbox
from tests.support.tasks.wirings import attempt


@pytest.mark.parametrize("target", [21, 30], ids=["inside", "outside"])
def test_nothing_can_be_sent_after_the_report(target):
    task_outbox = message_outbox(10, (), list[Message]().append)
    box = SubtopologyOutbox(attempt(1), (7, 8), sender=10, inside=(21, 22), outbox=task_outbox, random=Random(0))
    box.close()
    with pytest.raises(RuntimeError, match="a tuple was emitted after finish_batch had returned"):
        box.add(target, 0, ["late"])
