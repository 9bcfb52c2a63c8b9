"""Committers of the short form: one keeps an aggregation, the others look up a state for the rows that pass them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from typing import Any, ClassVar

from committers.committer import ICommitter
from coordinated_bolt.columns import Columns
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.component import MadeOfFunctions
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinator.fluent.fused_bolt import PipedBolt
from coordinator.fluent.kept_in import KeptIn
from coordinator.fluent.row_steps import ColumnLists
from coordinator.fluent.user_function import Explained, place_of
from state.kinds.handles import GivenStates


class Keeper(MadeOfFunctions, GivenStates, BaseBatchBolt, ICommitter):
    """Writes an aggregation into its state."""

    skips_empty_batches = True
    state: Any

    def __init__(self, kept: KeptIn) -> None:
        self.given_states = {"state": kept.state}
        self.made_at = place_of(kept.aggregation.said)
        self._kept = kept
        self._batches: list[TupleBatch] = []

    def execute_batch(self, batch: TupleBatch) -> None:
        self._batches.append(batch)

    def finish_batch(self) -> None:
        if not self._batches:
            return
        aggregation = self._kept.aggregation
        with Explained(aggregation.said):
            columns = columns_of(self._batches, aggregation.sent)
            if not aggregation.combines:  # or it has been done
                self._kept.check(dict(zip(aggregation.sent, columns, strict=True)))
            parts, all_keys, rest = aggregation.divided(columns)
            for state, (keys, *values) in parts_of(self.state, parts, [all_keys, *rest]):
                aggregation.write(state, keys, values)


class Lookup(PipedBolt, GivenStates, ICommitter):
    """Looks something up for each row of a transaction, and passes it on, down its own tree of pipes.

    Args:
        fields: of the rows that pass.
        keys: what a row is looked up by, and in which state.
        appends: whether what was found is put into a field of its own; if not, the rows for which it is false go.
    """

    owns_state: ClassVar[bool]
    state: Any

    def __init__(self, fields: Sequence[str], keys: KeptIn, *, appends: bool) -> None:
        super().__init__(keys.aggregation.said)
        if self.owns_state:
            self.given_states = {"state": keys.state}
        else:
            self.read_states = {"state": keys.state}
        self._fields, self._keys, self._appends = tuple(fields), keys, appends
        self._batches: list[TupleBatch] = []

    def execute_batch(self, batch: TupleBatch) -> None:
        self._batches.append(batch)

    def finish_batch(self) -> None:
        if self._batches:
            with Explained(self.said):
                columns = columns_of(self._batches, self._fields)
                found = self._found(columns)
            passed = [*columns, found] if self._appends else [list(compress(column, found)) for column in columns]
            self.pipe.take(passed, self.collector)
        self.pipe.finish(self.collector)

    @abstractmethod
    def looked_up(self, state: Any, keys: list[Any]) -> Iterator[Any]:
        """Yields what is found in the state, or one part of it, for each key."""

    def _found(self, columns: ColumnLists) -> list[Any]:
        by = self._keys.aggregation.group
        given = [columns[self._fields.index(name)] for name in by]
        self._keys.check(dict(zip(by, given, strict=True)))
        parts, keys, _ = self._keys.aggregation.divided(given)
        found: list[Any] = [None] * len(keys)
        for state, (some, places) in parts_of(self.state, parts, [keys, list(range(len(keys)))]):
            for place, value in zip(places, self.looked_up(state, some), strict=True):
                found[place] = value
        return found


class FirstOnly(Lookup):
    """Finds whether a row is the first with its key, and remembers the keys in a set."""

    owns_state = True

    def looked_up(self, state: Any, keys: list[Any]) -> Iterator[bool]:
        new = {key: None for key, is_known in state.contains_many(keys).items() if not is_known}
        state.add_many(list(new))
        for key in keys:
            yield key in new
            new.pop(key, None)


class Enriching(Lookup):
    """Finds the value that a state of another committer has for a key, as the transactions before have left it."""

    owns_state = False

    def looked_up(self, state: Any, keys: list[Any]) -> Iterator[Any]:
        return map(state.get_many(keys).__getitem__, keys)


def columns_of(batches: Sequence[TupleBatch], fields: Sequence[str]) -> ColumnLists:
    """Returns the values of fields, some named twice perhaps, in all batches, in the order in which they arrived."""
    return [list(chain.from_iterable(batch.column(name) for batch in batches)) for name in fields]


def parts_of(state: Any, parts: list[Any] | None, columns: ColumnLists) -> Iterator[tuple[Any, ColumnLists]]:
    """Yields a state, or each part of it that rows belong to, with the columns of these rows."""
    if parts is None:
        yield state, columns
        return
    places: dict[Any, list[int]] = {}
    for place, part in enumerate(parts):
        places.setdefault(part, []).append(place)
    for part, chosen in places.items():
        yield state[part], Columns(columns, len(parts)).take(chosen).lists
