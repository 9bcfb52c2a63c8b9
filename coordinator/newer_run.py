"""Names the run that has taken a topology over, for the message of the run that ends with it (driver)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from state.errors import FencedError, TransactionError
from state.printable import one_line
from state.records.run_pulse import owners
from state.redis_topology.topology import RedisTopology


@contextmanager
def newer_run_named(store: RedisTopology) -> Iterator[None]:
    """Encloses a run: the error of one that was taken over says where the newer one runs, if that has told it yet.

    Raises:
        FencedError: the same as was raised inside, with more to say.
    """
    try:
        yield
    except FencedError as error:
        where = "" if error.was_dropped else _where(store)
        if not where:
            raise
        raise FencedError(error.topology_id, by=where) from error


def _where(store: RedisTopology) -> str:
    """Returns host, pid and user of the owner's process, "" if it tells nothing or cannot be asked."""
    try:
        stored = store.status()
        pulse = None if stored is None else owners(store.pulse(), stored.fence)
    except TransactionError:
        return ""
    if pulse is None:
        return ""
    return f"on {one_line(pulse.run.host)}, pid {pulse.run.pid}, as {one_line(pulse.run.user)}"
