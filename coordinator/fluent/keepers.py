"""Committers of the short form: one writes an aggregation, the others look rows up in a state and pass them on."""

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
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.row_steps import ColumnLists
from coordinator.fluent.user_function import Explained, place_of
from state.kinds.handles import GivenStates


class Keeper(MadeOfFunctions, GivenStates, BaseBatchBolt, ICommitter):
    """Writes an aggregation into its state."""

    skips_empty_batches = True
    state: Any

    def __init__(self, kept: KeptAggregation) -> None:
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
            if not aggregation.combines:  # otherwise checked before combining
                self._kept.check(dict(zip(aggregation.sent, columns, strict=True)))
            parts, all_keys, rest = aggregation.divided(columns)
            for state, (keys, *values) in parts_of(self.state, parts, [all_keys, *rest]):
                aggregation.write(state, keys, values)


class Lookup(PipedBolt, GivenStates, ICommitter):
    """Looks up each row of a transaction in a state, and passes rows on, down its own tree of pipes.

    Args:
        fields: fields of the rows.
        keys: the key by which a row is looked up, and the state.
        appends: whether the result becomes a new field; if not, only rows with a true result are passed on.
    """

    owns_state: ClassVar[bool]
    state: Any

    def __init__(self, fields: Sequence[str], keys: KeptAggregation, *, appends: bool) -> None:
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
        """Yields the result for each key in the state, or in one part of it."""

    def _found(self, columns: ColumnLists) -> list[Any]:
        by = self._keys.aggregation.group
        given = [columns[self._fields.index(name)] for name in by]
        self._keys.check(dict(zip(by, given, strict=True)))
        parts, keys, _ = self._keys.aggregation.divided(given)
        if parts is None:
            return list(self.looked_up(self.state, keys))
        found: list[Any] = [None] * len(keys)
        for state, (some, places) in parts_of(self.state, parts, [keys, list(range(len(keys)))]):
            for place, value in zip(places, self.looked_up(state, some), strict=True):
                found[place] = value
        return found


class FirstOnly(Lookup):
    """Finds whether a row is the first with its key, and remembers the keys in a set."""

    owns_state = True

    def looked_up(self, state: Any, keys: list[Any]) -> Iterator[bool]:
        known = state.contains_many(keys)
        new = {key for key, is_known in known.items() if not is_known}
        state.add_many(list(new))
        if len(known) == len(keys):
            yield from map(new.__contains__, keys)
            return
        for key in keys:
            yield key in new
            new.discard(key)


class Enriching(Lookup):
    """Finds the value of a key in another committer's state, as the previous transactions have left it."""

    owns_state = False

    def looked_up(self, state: Any, keys: list[Any]) -> Iterator[Any]:
        return map(state.get_many(keys).__getitem__, keys)


def columns_of(batches: Sequence[TupleBatch], fields: Sequence[str]) -> ColumnLists:
    """Returns the columns of some fields, which may repeat, over all batches, in the order of arrival."""
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
