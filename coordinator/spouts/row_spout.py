"""A spout whose rows are read by Spark: its tasks are fed with partitions of a DataFrame.

The coordinator cuts transactions like any other. The emitter does not read by itself but gets its rows: the engine
makes a DataFrame of each transaction and runs the spout's tasks over its partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.spouts.transactional import ITransactionalSpout, SpoutEmitter
from state.attempt import TransactionAttempt
from state.errors import SourceError, TopologyError

EMITTED_ROWS = 1024  # at a time: in larger portions Python's garbage collector takes over


class RowSpout(ITransactionalSpout):
    """The spec of a spout over DataFrames; a tuple has one value for each of its columns.

    Args:
        columns: names of the DataFrame's columns that become the fields of the tuples, in order.

    Raises:
        TopologyError: `columns` is not a list of different names.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        if isinstance(columns, str) or not columns or not all(isinstance(name, str) and name for name in columns):
            raise TopologyError(
                f"columns of {type(self).__name__} is {columns!r}; give a list of names, such as ['page', 'user']"
            )
        if len(set(columns)) < len(columns):
            raise TopologyError(
                f"columns of {type(self).__name__} is {columns!r}, which repeats a name; name each once"
            )
        self.columns = tuple(columns)
        self._rows: Rows | None = None

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self.columns)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return RowEmitter(context, self._rows)

    def feed(self, rows: Rows) -> None:
        """Sets the rows that the next emitter emits; called by the engine on its shipped copy (executor)."""
        self._rows = rows


class Rows(Protocol):
    """One task's rows of one batch."""

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """Returns the rows in the form in which they are emitted."""

    def tally(self) -> Mapping[str, int]:
        """Returns counts of the read rows, once all were read; reported to the driver with the batch."""


class RowEmitter(SpoutEmitter):
    """Emits the rows it is fed (executor; one per task and batch).

    Args:
        context: the task.
        rows: this task's rows of the batch; None without Spark, which would provide them.
    """

    def __init__(self, context: TopologyContext, rows: Rows | None) -> None:
        self._context, self._rows = context, rows

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        if self._rows is None:
            raise SourceError(
                f"component {self._context.component_id!r} reads rows of a Spark DataFrame, and this engine is not "
                "Spark: run it with `run` or `txbatch run`, and test its bolts with FixedBatchesSpout in its place"
            )
        fed, self._rows = self._rows, None
        rows = iter(fed)
        while portion := list(islice(rows, EMITTED_ROWS)):
            collector.emit_all(portion)
        for name, amount in fed.tally().items():
            self._context.count(name, amount)
