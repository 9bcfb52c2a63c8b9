"""What one committer task has read of the state committed before its group: every value once.

Nothing but the group's own commit changes that state, so what was read for one transaction holds for all of the group.
And what its other transactions will read can be read along with it, if their tuples tell: see `KeyedState.prefetch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from state.errors import ProtocolError
from state.values.state_kind import Field, StateKind

PREFETCH_MAX = 10_000
"""Most fields that one read takes along for other transactions; the next read that misses one takes the next ones."""

WaitingValues = Callable[[Sequence[str]], Iterator[Sequence[Any]]]
"""names of tuple fields -> the values in them, column by column, of the group's tuples that wait to be executed."""
Prefetched = Callable[[WaitingValues], Iterator[Field]]
"""What a state will be asked for, by what waits; fields may repeat."""


class StateReader(Protocol):
    """Reads committed state; `RedisReader` on executors, a fake in tests."""

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> list[bytes | None]:
        """Returns the stored bytes of each field as of that committed txid.

        Raises:
            StaleReadError: the state is no longer at that txid.
        """
        ...


def nothing_waits(_names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Returns the `WaitingValues` of a task that gets its tuples one by one."""
    return iter(())


class CommittedValues:
    """The committed values that one task has read during one group.

    Args:
        reader: reads committed values; None where reads are impossible.
        as_of_txid: the committed txid of all reads.
        waiting: what still waits to be executed in the group.
    """

    def __init__(self, reader: StateReader | None, as_of_txid: int = 0, waiting: WaitingValues = nothing_waits) -> None:
        self._reader = reader
        self._as_of_txid = as_of_txid
        self._waiting = waiting
        self._known: dict[str, dict[Field, bytes | None]] = {}
        self._prefetched: dict[str, Iterator[Field]] = {}

    def read(
        self, name: str, kind: StateKind, fields: Sequence[Field], prefetched: Prefetched | None = None
    ) -> list[bytes | None]:
        """Returns the stored bytes of each field, in at most one round trip.

        Args:
            name: name of the state.
            kind: its Redis type.
            fields: fields, members, or just `VALUE_FIELD`.
            prefetched: gives what else to read, if anything has to be read.

        Raises:
            StaleReadError: the state is no longer at that txid.
        """
        known = self._known.setdefault(name, {})
        missing = [field for field in fields if field not in known]
        if missing:
            if self._reader is None:
                raise ProtocolError(f"state {name!r} was read in a task that has no reader")
            if prefetched is not None:
                missing = list(dict.fromkeys([*missing, *self._next_prefetched(name, prefetched, known)]))
            known.update(zip(missing, self._reader.read(name, kind, missing, self._as_of_txid), strict=True))
        return [known[field] for field in fields]

    def _next_prefetched(self, name: str, prefetched: Prefetched, known: dict[Field, bytes | None]) -> Iterator[Field]:
        upcoming = self._prefetched.get(name)
        if upcoming is None:
            upcoming = self._prefetched[name] = prefetched(self._waiting)
        return islice((field for field in upcoming if field not in known), PREFETCH_MAX)
