"""The outboxes of one task of a transactional topology, one per attempt.

They are made here and not in `transport`, because `wiring` builds on `transport`.
"""

from __future__ import annotations

from functools import partial

from coordinated_bolt.transport.outbox import FrameOutbox, NewOutbox, Send
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt


def attempt_outbox(wiring: TaskWiring, attempt: TransactionAttempt, send: Send) -> FrameOutbox:
    """Returns a fresh outbox to every task downstream that is not handed its tuples in memory."""
    targets = [target for target in wiring.targets if target not in wiring.chained_targets]
    return FrameOutbox(attempt, wiring.task_id, targets, send, wiring.frame_tuples)


def attempt_outboxes(wiring: TaskWiring, send: Send) -> NewOutbox:
    """Returns a function that makes the outbox of an attempt; all of them send with `send`."""
    return partial(attempt_outbox, wiring, send=send)
