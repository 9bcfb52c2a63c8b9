"""The outbox of one attempt, for tests that need no second one."""

from __future__ import annotations

from coordinated_bolt.transport.outbox import Carrier, RowOutbox
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt


def attempt_outbox(wiring: TaskWiring, attempt: TransactionAttempt, carrier: Carrier) -> RowOutbox:
    """A fresh outbox to every task downstream that is not handed its tuples in memory."""
    return wiring.outboxes(carrier)(attempt)
