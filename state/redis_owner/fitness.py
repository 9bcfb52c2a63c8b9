"""Checks whether a server is fit to hold a topology, from INFO (CONFIG is often blocked).

A managed service may leave out or rename facts in INFO. A missing fact is unknown, and no reason to refuse the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.errors import StateRefusedError, StateUnreachableError
from state.printable import counted
from state.records.durability import how_to_set
from state.redis_client.connection import RedisConnection
from state.troubles import Trouble

OLDEST = {"redis": (7, 0, 0), "valkey": (7, 2, 0)}
"""The oldest versions on which the function library works."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A reason why a server cannot hold a topology, about its "version", its role as "primary", or "eviction".

    `found` follows the server's name in a sentence.
    """

    about: str
    found: str
    remedy: str


def unfitness(info: Mapping[str, Any], *, expires: bool = True) -> Iterator[Unfit]:
    """Yields every reason why a server is unfit, by its reply to INFO, the gravest first.

    `expires` says whether a state of the topology may expire: only such keys are evicted by a policy named volatile-*.
    """
    product, version = product_of(info)
    oldest = OLDEST[product]
    if (0, 0, 0) < _numbers(version) < oldest:
        found = f"is {product} {version}, but txbatch needs {product} >= {oldest[0]}.{oldest[1]}"
        yield Unfit("version", found, "upgrade it, or leave out --redis to use the embedded server")
    role = _text(info, "role")
    if _text(info, "redis_mode") == "sentinel" or _text(info, "server_mode") == "sentinel":
        yield Unfit("primary", "is a sentinel", "give the address of the primary it watches")
    elif role not in ("master", "primary", ""):
        yield Unfit("primary", f"is a {role}", "give the primary's address")
    if may_evict(info, expires=expires):
        whose = ", of which some expires" if evicts_only_expiring(info) else ""
        yield Unfit(
            "eviction",
            f"has maxmemory-policy {policy_of(info)!r}, which may silently delete committed state{whose}",
            f"set it to noeviction ({how_to_set('maxmemory-policy noeviction')})",
        )


def policy_of(info: Mapping[str, Any]) -> str:
    """Returns a server's policy for full memory, "" if INFO does not show it."""
    return _text(info, "maxmemory_policy")


def evicts_only_expiring(info: Mapping[str, Any]) -> bool:
    return policy_of(info).startswith("volatile-")


def may_evict(info: Mapping[str, Any], *, expires: bool) -> bool:
    """Returns whether the server's policy may evict keys of a topology."""
    return policy_of(info) not in ("noeviction", "") and (expires or not evicts_only_expiring(info))


def unknown_facts(info: Mapping[str, Any]) -> list[str]:
    """Returns the facts that are missing in a server's INFO."""
    said = {
        "version": any(_numbers(product_of(info)[1])),
        "role": _text(info, "role"),
        "mode": _text(info, "redis_mode") or _text(info, "server_mode"),
        "maxmemory-policy": policy_of(info),
    }
    return [f"its {name}" for name, value in said.items() if not value]


def refuse_unfit_server(info: Mapping[str, Any], server: str, *, expires: bool = True) -> None:
    """Refuses a server whose reply to INFO shows that it is unfit; called at start, and again during a run."""
    for unfit in unfitness(info, expires=expires):
        raise StateRefusedError(f"server {server} {unfit.found}; {unfit.remedy}").about(Trouble.SERVER_UNFIT)


def evicted_keys(info: Mapping[str, Any]) -> int:
    """Returns how many keys a server has evicted since it started, 0 if INFO does not show it."""
    count = _text(info, "evicted_keys")
    return int(count) if count.isdecimal() else 0


def product_of(info: Mapping[str, Any]) -> tuple[str, str]:
    if "valkey_version" in info:
        return "valkey", _text(info, "valkey_version")
    return "redis", _text(info, "redis_version")


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in found.groups()) if found else (0, 0, 0)


def _text(info: Mapping[str, Any], name: str) -> str:
    value = info.get(name, "")
    return value.decode() if isinstance(value, bytes) else str(value)


LOOK_EVERY_S = 10.0


class ServerWatch:
    """Watches one run's server; the coordinator calls it on its own thread, every turn.

    Args:
        connection: the store's connection.
        expires: whether a state of the topology may expire.
        evicted_before: how many keys the server had evicted at the check at start.
        clock: monotonic, in seconds.
        every_s: seconds between two checks.

    Attributes:
        others: watches of the servers of a topology's shards.
    """

    def __init__(
        self,
        connection: RedisConnection,
        *,
        expires: bool,
        evicted_before: int,
        clock: Callable[[], float],
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._connection = connection
        self._expires, self._evicted = expires, evicted_before
        self._clock, self._every_s = clock, every_s
        self._next_s = clock() + every_s
        self.others: Sequence[ServerWatch] = ()

    @property
    def away_count(self) -> int:
        """How often the server did not answer or was slow; see `RedisConnection`."""
        return self._connection.away_count + sum(other.away_count for other in self.others)

    @property
    def away_s(self) -> float:
        """The total of those times, in seconds."""
        return self._connection.away_s + sum(other.away_s for other in self.others)

    def look(self) -> None:
        """Checks the server again if that is due; a server that does not answer is left to the next commit."""
        for other in self.others:
            other.look()
        if self._clock() < self._next_s:
            return
        self._next_s = self._clock() + self._every_s
        try:
            info = self._connection.info(timeout_s=0.0)
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
        if found > self._evicted and (self._expires or not evicts_only_expiring(info)):
            raise StateRefusedError(
                f"server {self._connection.server} has evicted {counted(found - self._evicted, 'key')} during this "
                f"run, perhaps of its state; set maxmemory-policy to noeviction ("
                f"{how_to_set('maxmemory-policy noeviction')}), then restore the data or drop the topology"
            ).about(Trouble.EVICTED)
        self._evicted = found  # a restarted server counts from 0
        try:
            refuse_unfit_server(info, self._connection.server, expires=self._expires)
        except StateRefusedError as error:
            raise StateRefusedError(
                f"{error}; this changed during the run, which stops here: what is committed stays, and a "
                "new run continues from there"
            ) from None
