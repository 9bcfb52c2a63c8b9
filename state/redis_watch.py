"""Looks at a server now and then while a run lasts: what was checked at its start may have been changed since.

An eviction policy can be set at any time by anybody with the right to; from then on the server may delete
committed state without a word. One INFO every ten seconds costs the server well under a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.errors import StateRefusedError, StateUnreachableError
from state.redis_connection import RedisConnection
from state.redis_server import evicted_keys, refuse_unfit_server

LOOK_EVERY_S = 10.0


class ServerWatch:
    """One run's eye on its server; called by the coordinator, on its thread, at every turn.

    Args:
        connection: the store's own.
        evicted_before: keys the server had evicted when it was checked.
        clock: seconds, monotonic.
        every_s: seconds between two looks.
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
        """How often the server left a call without answer; see `RedisConnection`."""
        return self._connection.away_count

    @property
    def away_s(self) -> float:
        """For how long altogether, in seconds."""
        return self._connection.away_s

    def look(self) -> None:
        """Checks the server again if it is time to; a server that does not answer is left to the next commit.

        Raises:
            StateRefusedError: it may evict state now, has done so, or is a replica by now.
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
            self._next_s = float("inf")  # fakeredis cannot be asked
            return
        self._judge(info)

    def _judge(self, info: Mapping[str, Any]) -> None:
        found = evicted_keys(info)
        if found > self._evicted:
            raise StateRefusedError(
                f"server {self._connection.server} has evicted {found - self._evicted} keys while this run was going, "
                "and state may be among them; set maxmemory-policy to noeviction, restore the data or drop the topology"
            )
        self._evicted = found  # a server that was started again counts from 0
        try:
            refuse_unfit_server(info, self._connection.server)
        except StateRefusedError as error:
            raise StateRefusedError(
                f"{error}; it was changed while this run was going, which stops here: what is committed stays, and a "
                "new run continues from there"
            ) from None
