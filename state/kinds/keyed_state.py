"""The base of states whose entries are read by key: hashes by field, sets and sorted sets by member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Self

from state.errors import TopologyError
from state.kinds.session import WaitingValues
from state.kinds.state_handle import Declared, StateHandle
from state.values.state_kind import Field, TupleType


class KeyedState(StateHandle[Declared]):
    """The base of states whose entries are read by key."""

    def prefetch(self, *tuple_fields: str) -> Self:
        """Names the fields of the committer's tuples that hold the keys which `finish_batch` will read.

        ``balances = HashState("balances").prefetch("account")`` has the first read of a commit group fetch the balances
        of all accounts that the group's tuples name, so a group costs one round trip and not one for each transaction.
        Results do not change: other keys are read when they are needed, and unneeded prefetched keys do no harm.

        Args:
            tuple_fields: one or more fields of streams to which the committer is subscribed. For keys that are tuples,
                one field for each of their values, all of one stream.

        Raises:
            TopologyError: no field is given, or one is not a name; or the state cannot be read.
        """
        if not tuple_fields or not all(isinstance(name, str) and name for name in tuple_fields):
            raise TopologyError(
                f"prefetch of state {self.name!r} was given {tuple_fields!r}; give the names of the tuple fields that "
                'hold its keys, as in prefetch("account")'
            )
        if self.retention.is_ranked:
            raise TopologyError(f"state {self.name!r} is bounded and cannot be read, so there is nothing to prefetch")
        if isinstance(self.field_type, TupleType) and len(tuple_fields) != len(self.field_type.types):
            raise TopologyError(
                f"prefetch of state {self.name!r} was given {tuple_fields!r}, but its keys are tuples of "
                f"{self.field_type.value}; give one name for each of their values"
            )
        self.prefetched_by = tuple_fields
        return self

    def _read(self, fields: list[Any]) -> dict[Field, Any]:
        self._open()
        assert self._session is not None
        prefetched = self._prefetched if self.prefetched_by else None
        return self._session.read(self.name, self.kind, self.stored_type, fields, prefetched)

    def _prefetched(self, waiting: WaitingValues) -> Iterator[Field]:
        """Yields the keys in the waiting tuples; skips values that cannot be keys, which `finish_batch` will report."""
        columns = waiting(self.prefetched_by)
        for values in columns if not isinstance(self.field_type, TupleType) else _tuples(columns, self.field_type):
            if self._fields.are_stored_as_given(values):
                yield from values
                continue
            for value in values:
                try:
                    yield self._fields.to_stored("field", value)
                except (TypeError, ValueError):
                    continue


def _tuples(columns: Iterator[Sequence[Any]], declared: TupleType) -> Iterator[Sequence[Any]]:
    """Yields columns of tuples, zipped from one column for each of their values."""
    while some := list(islice(columns, len(declared.types))):
        yield list(zip(*some, strict=False))
