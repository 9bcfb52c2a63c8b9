"""Aggregations that keep rows by an order: the highest scores, and the latest row of each key."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from types import NoneType
from typing import Any

from coordinated_bolt.streams.tuples import cut
from coordinator.fluent.aggregations import Aggregation, replaced
from coordinator.fluent.row_steps import ColumnLists
from state.codec import is_valid_text
from state.kinds.handles import DeclaredState
from state.kinds.state_family import StateFamily
from state.kinds.state_handle import StateHandle, check_most
from state.values.first_wrong import Wrong, first_wrong
from state.values.state_kind import KEEP_ALL, KeptEnd, Retention, StateKind, ValueType
from state.values.value_form import canonical_json, stored_bytes

_AS_IT_IS = frozenset({int, bool, str, NoneType})
"""Types whose values JSON keeps unchanged, if texts are valid; values of other types are checked one by one."""


@dataclass(frozen=True)
class Ranking(Aggregation):
    """The rows with the highest scores; the key is the member, and each counts with its best score."""

    most: int

    compares = True
    kinds = (StateKind.SORTED_SET,)
    reads = False

    def fitted(self, into: DeclaredState) -> DeclaredState:
        handle = Aggregation.fitted(self, into.template if isinstance(into, StateFamily) else into)
        assert isinstance(handle, StateHandle)
        bounded = copy.copy(handle)
        bounded.retention = Retention(KeptEnd.HIGHEST, check_most(f"top of state {into.name!r}", self.most))
        if handle.retention not in (KEEP_ALL, bounded.retention):
            raise self.wrong(f"{into!r} does not keep the highest {self.most}; leave its limit out")
        return replaced(into, bounded) if isinstance(into, StateFamily) else bounded

    def add(self, combined: Any, group: ColumnLists, values: ColumnLists) -> None:
        rows = dict(zip(self._groups(group), values[0], strict=False))
        if combined or len(rows) < len(values[0]):
            super().add(combined, group, values)
        else:  # each member once, the usual case
            combined.update(rows)

    def merged(self, one: Any, other: Any) -> Any:
        return max(one, other)

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        return state.first_wrong_value(values)

    def columns(self, combined: Any) -> list[Any]:
        parts: dict[Any, list[Any]] = {}
        for key in combined:
            parts.setdefault(None if self.part is None else key[0], []).append(key)

        def rank(key: Any) -> Any:
            """Returns a sort key like the state's, which prefers the last members by their bytes at equal scores."""
            member = key if self.part is None else key[1] if len(self.key) == 1 else key[1:]
            return combined[key], stored_bytes(member)

        best = (nlargest(self.most, self._candidates(combined, keys), rank) for keys in parts.values())
        return Aggregation.columns(self, {key: combined[key] for keys in best for key in keys})

    def _candidates(self, combined: Any, keys: list[Any]) -> list[Any]:
        """Returns the keys whose scores may be among the best: only their members have to be compared."""
        lowest = nlargest(self.most, map(combined.__getitem__, keys))[-1]
        found = [key for key in keys if combined[key] >= lowest]
        return found if len(found) >= self.most else keys

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        best: dict[Any, Any] = {}
        self.add(best, [keys], values)
        state.put_many(best)


@dataclass(frozen=True)
class Latest(Aggregation):
    """The row with the greatest value of its first field, as a JSON object; of equal ones, the last by JSON text."""

    compares = True
    value_types = (ValueType.JSON,)

    def _values(self, values: ColumnLists) -> Iterable[Any]:
        return (dict(zip(self.takes, row, strict=True)) for row in zip(*values, strict=True))

    def columns(self, combined: Any) -> list[Any]:
        return [*self._ungrouped(combined.keys()), *([row[name] for row in combined.values()] for name in self.takes)]

    def merged(self, one: Any, other: Any) -> Any:
        before, after = one[self.takes[0]], other[self.takes[0]]
        try:
            is_later = canonical_json(other) > canonical_json(one) if before == after else after > before
        except TypeError:
            shown = f"{cut(before)} and {cut(after)}"
            raise TypeError(f"{shown} have no order; map field {self.takes[0]!r} to values of one type") from None
        return other if is_later else one

    def differs(self, one: Any, other: Any) -> bool:
        return other is None or canonical_json(one) != canonical_json(other)

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        if not _AS_IT_IS.issuperset(map(type, values)):
            return first_wrong(values, _check_order if name == self.takes[0] else canonical_json)
        texts = "".join(value for value in values if type(value) is str)
        return None if is_valid_text(texts) else first_wrong(values, canonical_json)


def has_order(value: Any) -> bool:
    """Returns whether a value can be ordered: it is not None, and contains no None."""
    return all(map(has_order, value)) if isinstance(value, list | tuple) else value is not None


def _check_order(value: Any) -> None:
    """Refuses a value that `latest_by` cannot compare with others of its type, or cannot keep."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        raise TypeError("an object has no order; give a number or a text, such as a time")
    canonical_json(value)
