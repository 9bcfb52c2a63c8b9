"""The outboxes of one task of a transactional topology: one per attempt, all sending the same way."""

from __future__ import annotations

from functools import partial

from coordinated_bolt.transport.outbox import FrameOutbox, NewOutbox, Send
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt


def attempt_outbox(wiring: TaskWiring, attempt: TransactionAttempt, send: Send) -> FrameOutbox:
    """A fresh outbox to every task downstream."""
    return FrameOutbox(attempt, wiring.task_id, wiring.targets, send, wiring.frame_tuples)


def attempt_outboxes(wiring: TaskWiring, send: Send) -> NewOutbox:
    """Makes an outbox for each attempt it is called with; all of them send the same way."""
    return partial(attempt_outbox, wiring, send=send)
