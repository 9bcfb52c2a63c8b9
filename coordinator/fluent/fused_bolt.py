"""Stateless steps that run in one bolt, from the tuples that it receives to the rows that it emits.

Rows run through a tree of pipes: each step's rows go to every outlet below it, so steps that several consumers share
run once, and rows are not sent to other tasks before they have to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import not_
from typing import Any

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.component import MadeOfFunctions
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.row_steps import ColumnLists, RowStep
from coordinator.fluent.user_function import Explained, UserFunction, place_of


class Outlet:
    """Takes rows on their way through one attempt (executor)."""

    def take(self, columns: ColumnLists, collector: BatchOutputCollector) -> None:
        """Takes some of the rows, at least one."""
        raise NotImplementedError

    def finish(self, collector: BatchOutputCollector) -> None:
        """Called once, after all rows of the attempt."""


@dataclass
class Pipe(Outlet):
    """Applies a step to rows, if it has one, and hands the rows to each outlet."""

    step: RowStep | None = None
    outlets: list[Outlet] = field(default_factory=list)

    def take(self, columns: ColumnLists, collector: BatchOutputCollector) -> None:
        if self.step is not None:
            columns = self.step.apply(columns)
        if columns[0]:
            for outlet in self.outlets:
                outlet.take(columns, collector)

    def finish(self, collector: BatchOutputCollector) -> None:
        for outlet in self.outlets:
            outlet.finish(collector)


@dataclass(frozen=True)
class RowOutlet(Outlet):
    """Emits rows on a stream."""

    stream_id: str

    def take(self, columns: ColumnLists, collector: BatchOutputCollector) -> None:
        collector.emit_batch(columns, self.stream_id)


@dataclass
class CombiningOutlet(Outlet):
    """Combines the rows of the attempt on this task, and emits one row for each group when the batch ends.

    Attributes:
        kept: the aggregation and its state.
        group: positions of the fields of a group.
        values: positions of the fields that are aggregated.
        combined: the accumulator; None before the first row.
    """

    stream_id: str
    kept: KeptAggregation
    group: tuple[int, ...]
    values: tuple[int, ...]
    combined: Any = None

    def take(self, columns: ColumnLists, collector: BatchOutputCollector) -> None:
        group, values = ([columns[place] for place in places] for places in (self.group, self.values))
        if self.combined is None:
            self.combined = self.kept.aggregation.start()
        group, values = self.kept.taken(group, values, collector)
        with Explained(self.kept.aggregation.said):
            self.kept.aggregation.add(self.combined, group, values)

    def finish(self, collector: BatchOutputCollector) -> None:
        if self.combined:
            with Explained(self.kept.aggregation.said):
                rows = self.kept.aggregation.columns(self.combined)
            collector.emit_batch(rows, self.stream_id)


@dataclass(frozen=True)
class Refusal:
    """Which tuples become dead letters, and why.

    Attributes:
        predicate: returns whether a row is refused.
        positions: positions of the fields that it is called with.
        reason: a sentence, or a function that returns one for the same values.
    """

    predicate: UserFunction
    positions: tuple[int, ...]
    reason: str | UserFunction

    def reasons(self, given: ColumnLists) -> list[str]:
        """Returns why rows were refused."""
        return self.reason.each(given) if isinstance(self.reason, UserFunction) else [self.reason] * len(given[0])


class PipedBolt(MadeOfFunctions, BaseBatchBolt):
    """A bolt that ends in a tree of pipes; compilation declares its streams.

    Attributes:
        streams: stream id -> fields.
        pipe: the root of the tree.
        said: the user's call that it stands for; see `current_user_call`.
    """

    skips_empty_batches = True

    def __init__(self, said: str) -> None:
        self.said, self.made_at = said, place_of(said)
        self.streams: dict[str, Sequence[str]] = {}
        self.pipe = Pipe()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream_id, fields in self.streams.items():
            declarer.declare_stream(stream_id, fields)


class FusedBolt(PipedBolt):
    """Runs steps, after it has refused the tuples that become dead letters.

    A dead letter is the received tuple, so that it can be republished: it then enters only this bolt.
    """

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.refusals: list[Refusal] = []

    def execute_batch(self, batch: TupleBatch) -> None:
        columns = batch.columns()
        if self.refusals:
            columns = self._accepted(batch, columns)
        self.pipe.take(columns, self.collector)

    def finish_batch(self) -> None:
        self.pipe.finish(self.collector)

    def _accepted(self, batch: TupleBatch, columns: ColumnLists) -> ColumnLists:
        *columns, places = (*columns, list(range(len(batch))))
        for refusal in self.refusals:
            given = [columns[position] for position in refusal.positions]
            verdicts = refusal.predicate.verdicts(given)
            if any(verdicts):
                reasons = refusal.reasons([list(compress(column, verdicts)) for column in given])
                for place, reason in zip(compress(places, verdicts), reasons, strict=True):
                    self.collector.dead_letter(batch[place], reason)
                *columns, places = (list(compress(column, map(not_, verdicts))) for column in (*columns, places))
        return columns
