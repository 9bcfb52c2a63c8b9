"""Joins of two streams by key, without time: each row waits in a state for rows of the other side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from committers.committer import ICommitter
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import cut
from coordinated_bolt.user_traceback import WrongAnswerError
from coordinator.fluent.fused_bolt import PipedBolt
from coordinator.fluent.keepers import columns_of
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.user_function import Explained
from state.codec import pack, unpack
from state.kinds.handles import GivenStates
from state.values.first_wrong import first_wrong
from state.values.state_kind import ValueType
from state.values.value_form import canonical_json

DropWhen: TypeAlias = Literal["matched"] | None
Sides: TypeAlias = tuple[list[Any], list[Any]]
"""The waiting rows of a key, without the key: rows of the left stream, and rows of the right stream."""
New: TypeAlias = tuple[list[tuple[Any, list[Any]]], list[tuple[Any, list[Any]]]]
"""(key, other values) of this transaction's rows: rows of the left stream, and rows of the right stream."""
_LEFT, _RIGHT = "left", "right"


class Joining(PipedBolt, GivenStates, ICommitter):
    """Joins each row of one side with each row of the other side that has the same key, once; either may come first.

    Which rows are joined depends only on the order of each side's rows, never on how they are cut into transactions.

    Args:
        keys: for each side, its keys and the state in which rows wait.
        others: for each side, the fields that are not the key.
        drop_when: "matched" joins a key's first row of one side with its first row of the other, the second with the
            second, and so on, and then deletes both; None keeps all rows.

    Attributes:
        sides: (component, stream) -> 0 for rows of the left side, 1 for rows of the right side.
    """

    state: Any

    def __init__(
        self,
        keys: tuple[KeptAggregation, KeptAggregation],
        others: tuple[Sequence[str], Sequence[str]],
        drop_when: DropWhen,
    ) -> None:
        super().__init__(keys[0].aggregation.said)
        self.given_states = {"state": keys[0].state}
        self.sides: dict[tuple[str, str], int] = {}
        self._keys, self._others, self._drop_when = keys, others, drop_when
        self._batches: tuple[list[TupleBatch], list[TupleBatch]] = [], []

    def execute_batch(self, batch: TupleBatch) -> None:
        self._batches[self.sides[batch.origin.source_component, batch.origin.stream_id]].append(batch)

    def finish_batch(self) -> None:
        with Explained(self.said):
            new = self._new(0), self._new(1)
            waiting = self._waiting(dict.fromkeys(key for side in new for key, _ in side))
            pairs = _pairs(new, waiting) if self._drop_when is None else _first_pairs(new, waiting)
            columns = [list(column) for column in zip(*(self._row(*pair) for pair in pairs), strict=True)]
            self._keep(waiting)
        if columns:
            self.pipe.take(columns, self.collector)
        self.pipe.finish(self.collector)

    def _new(self, side: int) -> list[tuple[Any, list[Any]]]:
        """Returns the key and the other values of each row of this transaction."""
        kept, batches = self._keys[side], self._batches[side]
        key_columns = columns_of(batches, kept.aggregation.key)
        kept.check(dict(zip(kept.aggregation.key, key_columns, strict=True)))
        _, keys, _ = kept.aggregation.divided(key_columns)
        others = columns_of(batches, self._others[side])
        if self.state.value_type is ValueType.JSON:
            self._check(dict(zip(self._others[side], others, strict=True)))
        rows = zip(*others, strict=True) if others else ([] for _ in keys)
        return list(zip(keys, map(list, rows), strict=True))

    def _waiting(self, keys: dict[Any, None]) -> dict[Any, Sides]:
        found: dict[Any, Sides] = {}
        for key, stored in self.state.get_many(keys).items():
            if stored is None:
                found[key] = [], []
            elif self.state.value_type is ValueType.JSON:
                found[key] = stored[_LEFT], stored[_RIGHT]
            else:
                left, right = unpack(stored)
                found[key] = left, right
        return found

    def _check(self, columns: Mapping[str, list[Any]]) -> None:
        """Refuses values that JSON would not restore."""
        for name, column in columns.items():
            if wrong := first_wrong(column, canonical_json):
                shown = cut(column[wrong.place], 100)
                raise WrongAnswerError(
                    f"field {name!r} is {shown}, which {self.said} cannot keep as JSON: {wrong.error}; give "
                    f"HashState({self.state.name!r}, bytes), or map it to text"
                )

    def _keep(self, waiting: dict[Any, Sides]) -> None:
        for key, (left, right) in waiting.items():
            if not left and not right:
                self.state.delete(key)
            elif self.state.value_type is ValueType.JSON:
                self.state.put(key, {_LEFT: left, _RIGHT: right})
            else:
                self.state.put(key, pack([left, right]))

    def _row(self, key: Any, left: list[Any], right: list[Any]) -> list[Any]:
        return [*(key if len(self._keys[0].aggregation.key) > 1 else [key]), *left, *right]


def _first_pairs(new: New, waiting: dict[Any, Sides]) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Yields and removes the first rows of both sides, as long as a key has both."""
    for side in (0, 1):
        for key, row in new[side]:
            waiting[key][side].append(row)
    for key, (left, right) in waiting.items():
        count = min(len(left), len(right))
        yield from ((key, *pair) for pair in zip(left[:count], right[:count], strict=True))
        del left[:count], right[:count]


def _pairs(new: New, waiting: dict[Any, Sides]) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Yields each pair that a new row completes, and adds the new rows to the waiting ones."""
    for key, row in new[0]:
        left, right = waiting[key]
        yield from ((key, row, other) for other in right)
        left.append(row)
    for key, row in new[1]:
        left, right = waiting[key]
        yield from ((key, other, row) for other in left)
        right.append(row)
