"""A Redis stream that a topology writes: each transaction's entries in order, with the txid in their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from state.commits.packed_writes import SECTION_LIMIT
from state.kinds.state_handle import Item, StateHandle, check_most
from state.values.state_kind import KeptEnd, Retention, StateKind

ENTRIES_PER_TASK = 2**32
"""The distance between the numbers of two tasks' first entries."""


class StreamState(StateHandle[Item]):
    """A Redis stream, for programs (such as another topology) that follow a topology's results.

    An entry's id is ``<txid>-<number>``. The numbers of a transaction ascend from 0 in the order of `append`; those of
    a committer's second task begin at 2**32. So a batch that runs again writes the same entries, and the id is a
    reader's position. Nobody else may add to the stream: a transaction that finds a higher id is refused. Write-only: a
    transaction never reads a stream; the source `RedisStreams` does.

    Args:
        name: state name.
        value: type of the values of all fields: ``int``, ``float``, ``str``, ``bytes``, ``Decimal`` or ``"json"``; or
            its name.
        scale: see `HashState`.
        keep_last: how many entries stay: each commit cuts off older ones. None keeps all.
    """

    kind = StateKind.STREAM

    @overload
    def __init__(
        self, name: str, value: type[Item] = ..., *, scale: int | None = None, keep_last: int | None = None
    ) -> None: ...

    @overload
    def __init__(
        self: StreamState[Any], name: str, value: str, *, scale: int | None = None, keep_last: int | None = None
    ) -> None: ...

    def __init__(
        self, name: str, value: type | str = str, *, scale: int | None = None, keep_last: int | None = None
    ) -> None:
        super().__init__(name)
        self._declare_value("value", value, scale)
        self._declare_field("field", str)
        if keep_last is not None:
            self.retention = Retention(KeptEnd.LAST, check_most(f"keep_last of state {name!r}", keep_last))

    def append(self, fields: Mapping[str, Item]) -> None:
        """Appends one entry of one or more fields.

        Raises:
            TypeError, ValueError: a field or value has the wrong type or is out of range, or there are no fields.
        """
        appends = self._open().appends
        if not isinstance(fields, Mapping) or not 0 < len(fields) <= SECTION_LIMIT:
            raise ValueError(
                f"state {self.name!r} was given {fields!r:.100} to append; give a mapping of 1 to {SECTION_LIMIT:,} "
                "fields"
            )
        assert self._session is not None
        txid, task_index = self._session.place
        entry: list[Any] = [txid, task_index * ENTRIES_PER_TASK + len(appends)]
        for name, value in fields.items():
            entry += [self._fields.to_stored("field", name), self._values.to_stored("value", value)]
        appends.append(entry)
