"""Checks a server again during a run: what was true at its start may have changed.

Anybody with the right can set an eviction policy at any time; from then on the server may silently delete
committed state. One INFO every ten seconds costs the server well under a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.errors import StateRefusedError, StateUnreachableError
from state.printable import counted
from state.redis_client.connection import RedisConnection
from state.redis_server.fitness import evicted_keys, refuse_unfit_server
from state.troubles import Trouble

LOOK_EVERY_S = 10.0


class ServerWatch:
    """Watches one run's server; the coordinator calls it on its own thread, every turn.

    Args:
        connection: the store's own.
        evicted_before: keys the server had evicted when it was checked at start.
        clock: monotonic, in seconds.
        every_s: seconds between two checks.
    """

    def __init__(
        self,
        connection: RedisConnection,
        *,
        evicted_before: int,
        clock: Callable[[], float],
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._connection = connection
        self._evicted = evicted_before
        self._clock, self._every_s = clock, every_s
        self._next_s = clock() + every_s

    @property
    def away_count(self) -> int:
        """How often the server did not answer or was slow; see `RedisConnection`."""
        return self._connection.away_count

    @property
    def away_s(self) -> float:
        """The total of those times, in seconds."""
        return self._connection.away_s

    def look(self) -> None:
        """Checks the server again if it is time to; leaves a server that does not answer to the next commit.

        Raises:
            StateRefusedError: the server has evicted state, may do so now, or has become a replica.
        """
        if self._clock() < self._next_s:
            return
        self._next_s = self._clock() + self._every_s
        try:
            info = self._connection.call("INFO", timeout_s=0.0)
        except StateUnreachableError:
            return
        except StateRefusedError as error:
            if "unknown command" not in str(error.__cause__):
                raise
            self._next_s = float("inf")  # fakeredis has no INFO
            return
        self._judge(info)

    def _judge(self, info: Mapping[str, Any]) -> None:
        found = evicted_keys(info)
        if found > self._evicted:
            raise StateRefusedError(
                f"server {self._connection.server} has evicted {counted(found - self._evicted, 'key')} during this "
                "run, perhaps of its state; set maxmemory-policy to noeviction, then restore the data or drop the "
                "topology"
            ).about(Trouble.EVICTED)
        self._evicted = found  # a restarted server counts from 0
        try:
            refuse_unfit_server(info, self._connection.server)
        except StateRefusedError as error:
            raise StateRefusedError(
                f"{error}; this changed during the run, which stops here: what is committed stays, and a "
                "new run continues from there"
            ) from None
