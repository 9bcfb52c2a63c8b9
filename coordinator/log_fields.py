"""What a record of our logger carries apart from its message: topology, txid, attempt, wave, component.

The fields of one call are given with ``extra=fields(...)``. The topology is the same for all records of a run, so the
run names it once. A filter on our logger writes it into each record, where any handler and formatter finds it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from state.attempt import TransactionAttempt

LOGGER = "txbatch"
FIELDS = ("topology", "txid", "last_txid", "attempt", "wave", "phase", "component", "task", "reason", "exit_code")
"""The attributes of a record that formatters show, in this order, if it has them."""
_TOPOLOGY: ContextVar[str | None] = ContextVar("txbatch_topology", default=None)


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
        topology_id = _TOPOLOGY.get()
        if topology_id is not None and not hasattr(record, "topology"):
            record.topology = topology_id
        return True


_FILTER = _TopologyField()


@contextmanager
def logs_of(topology_id: str | None) -> Iterator[None]:
    """Names the topology that the block's log records are about; nests (driver).

    The filter stays on our logger: it changes no record outside a block.
    """
    logging.getLogger(LOGGER).addFilter(_FILTER)
    before = _TOPOLOGY.get()
    _TOPOLOGY.set(topology_id)
    try:
        yield
    finally:
        _TOPOLOGY.set(before)  # not by a token: a block that was entered on one thread may be left on another


def name_topology(topology_id: str) -> None:
    """Names the topology for the rest of the enclosing `logs_of`."""
    _TOPOLOGY.set(topology_id)
