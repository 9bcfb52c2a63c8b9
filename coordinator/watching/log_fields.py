"""What a record of our logger carries apart from its message: topology, txid, attempt, wave, component.

The fields of one call are given with ``extra=fields(...)``. The topology is the same for all records of a run, so the
run names it once. A filter on our logger writes it into each record, where any handler and formatter finds it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from state.attempt import TransactionAttempt

LOGGER = "txbatch"
FIELDS = ("topology", "txid", "last_txid", "attempt", "wave", "phase", "component", "task", "reason", "exit_code")
"""The attributes of a record that formatters show, in this order, if it has them."""


@dataclass(slots=True)
class Subject:
    """What the records of a block are about.

    Attributes:
        topology_id: None while it is not known.
    """

    topology_id: str | None = None


_SUBJECT: ContextVar[Subject | None] = ContextVar("txbatch_subject", default=None)


def fields(attempt: TransactionAttempt | None = None, **others: Any) -> dict[str, Any]:
    """Returns the ``extra`` of a log call, without what is None.

    Args:
        attempt: that the record is about; its txid is a field of its own.
        others: further `FIELDS`.
    """
    known = {} if attempt is None else {"txid": attempt.txid, "attempt": str(attempt)}
    return {**known, **{name: value for name, value in others.items() if value is not None}}


class _TopologyField(logging.Filter):
    """Writes the topology of the current run into each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        subject = _SUBJECT.get()
        if subject is not None and subject.topology_id is not None and not hasattr(record, "topology"):
            record.topology = subject.topology_id
        return True


_FILTER = _TopologyField()


@contextmanager
def logs_of(topology_id: str | None) -> Iterator[Subject]:
    """Names the topology that the block's log records are about; nests (driver).

    The filter stays on our logger: it changes no record outside a block.
    """
    logging.getLogger(LOGGER).addFilter(_FILTER)
    before, subject = _SUBJECT.get(), Subject(topology_id)
    _SUBJECT.set(subject)
    try:
        yield subject
    finally:
        _SUBJECT.set(before)  # not by a token: a block that was entered on one thread may be left on another


def name_topology(topology_id: str) -> None:
    """Names the topology for the rest of the enclosing `logs_of`."""
    subject = _SUBJECT.get()
    if subject is not None:
        subject.topology_id = topology_id
