"""The batches that `execute_batch` receives: tuples of one origin, by column or one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinated_bolt.columns import Columns, Rows
from coordinated_bolt.streams.tuples import ReceivedTuples, Tuple, TupleOrigin
from state.errors import TopologyError
from state.printable import counted


class TupleBatch(ReceivedTuples):
    """Tuples from one task on one stream for one attempt that arrived together; only the framework makes it.

    The boundaries between batches mean nothing: they depend on sizes, and on the engine. A bolt may keep a batch, and
    change its lists: nobody else has them.
    """

    __slots__ = ("_columns", "_rows")

    def __init__(self, rows: Rows, origin: TupleOrigin) -> None:
        self.origin = origin
        self._rows = rows
        self._columns: Columns | None = rows if isinstance(rows, Columns) else None

    def column(self, field: str | int) -> list[Any]:
        """Returns the values of one field, by name or position, in the order of the tuples.

        Raises:
            KeyError: the stream has no such field.
        """
        position = self.origin.index.get(field)
        if position is None:
            raise self.origin.unknown(field)
        return self.columns()[position]

    def columns(self) -> list[list[Any]]:
        """Returns the values of every field, in the order of the fields; every call returns the same lists."""
        if self._columns is None:
            self._columns = Columns.of_rows(list(self._rows), len(self.origin.fields))
        return self._columns.lists

    def rows(self) -> list[list[Any]]:
        """Returns the values of every tuple, as lists in the order of the fields."""
        return list(self._rows)

    def to_arrow(self) -> Any:
        """Returns the columns as a record batch of pyarrow.

        pyarrow infers their types from the values, and raises its own error if a column's values have no common type.

        Raises:
            TopologyError: pyarrow is not installed where the task runs.
        """
        try:
            import pyarrow  # an extra
        except ImportError as error:
            raise TopologyError(
                "to_arrow needs pyarrow, which is not installed in the Python that runs this task: "
                "pip install 'txbatch[arrow]' there, or use column(...), which returns a list"
            ) from error
        return pyarrow.RecordBatch.from_arrays(list(map(pyarrow.array, self.columns())), names=list(self.fields))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Tuple]:
        for row in self._rows:
            yield Tuple(row, self.origin)

    def __getitem__(self, place: int) -> Tuple:
        """Returns one tuple, for instance to refuse it with `dead_letter`."""
        if isinstance(self._rows, Columns):
            return Tuple([column[place] for column in self._rows.lists], self.origin)
        return Tuple(self._rows[place], self.origin)

    def __repr__(self) -> str:
        first = f", the first {self[0]!r}" if self._rows else ""
        return f"TupleBatch({self.source_component}/{self.stream_id}: {counted(len(self), 'tuple')}{first})"
