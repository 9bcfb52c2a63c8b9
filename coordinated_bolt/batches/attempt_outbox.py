"""The outboxes of one task of a transactional topology, one per attempt.

They are made here and not in `transport`, because `wiring` builds on `transport`.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinated_bolt.transport.outbox import Carrier, FrameOutbox, NewOutbox
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt


def attempt_outboxes(wiring: TaskWiring, carrier: Carrier) -> NewOutbox:
    """Returns a function that makes the outbox of an attempt; `carrier` takes what all of them send."""
    targets = framed_targets(wiring)

    def new_outbox(attempt: TransactionAttempt) -> FrameOutbox:
        return FrameOutbox(attempt, wiring.task_id, targets, carrier, wiring.frame_tuples)

    return new_outbox


def framed_targets(wiring: TaskWiring) -> Collection[int]:
    """Returns the tasks downstream that are not chained to it, each of which gets frames and a report."""
    return dict.fromkeys(target for target in wiring.targets if target not in wiring.chained_targets)
