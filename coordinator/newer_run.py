"""Names the run that has taken a topology over, for the message of the run that ends with it (driver)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from state.errors import FencedError, TransactionError
from state.printable import one_line
from state.records.run_pulse import owners
from state.redis_topology.topology import RedisTopology

TRIES, PAUSE_S = 8, 0.25
"""The newer run tells where it runs right after the takeover, from a thread of its own; that is waited for."""


@contextmanager
def newer_run_named(store: RedisTopology, pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Encloses a run: the error of one that was taken over says where the newer one runs, if that tells it in time.

    Raises:
        FencedError: the same as was raised inside, with more to say.
    """
    try:
        yield
    except FencedError as error:
        for number in range(0 if error.was_dropped else TRIES):
            if number:
                pause(PAUSE_S)
            try:
                where = _where(store)
            except TransactionError:
                break  # the server cannot be asked
            if where:
                raise FencedError(error.topology_id, by=where) from error
        raise


def _where(store: RedisTopology) -> str:
    """Returns host, pid and user of the owner's process, "" if it has told nothing."""
    stored = store.status()
    pulse = None if stored is None else owners(store.pulse(), stored.fence)
    if pulse is None:
        return ""
    return f"on {one_line(pulse.run.host)}, pid {pulse.run.pid}, as {one_line(pulse.run.user)}"
