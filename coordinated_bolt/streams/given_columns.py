"""Makes columns of what a component gives to `emit_batch`: lists that nobody else can change, all of one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.columns import Columns
from coordinated_bolt.streams.rows import StreamRows
from coordinated_bolt.streams.tuple_batch import TupleBatch
from state.values.column_values import column_values, is_unordered


def columns_given(stream_rows: StreamRows, batch: Any) -> Columns:
    """Returns a batch as columns, in the order of the stream's fields.

    Args:
        stream_rows: of the stream; checks the values.
        batch: a `TupleBatch`; columns in the order of the fields; or columns by name: a mapping, or a table or record
            batch of pyarrow. A column is a list or another iterable with an order, or an array of pyarrow or NumPy,
            whose values become Python's.

    Raises:
        ValueError: the columns do not fit the stream, or are not of one length.
        CodecError: a value cannot travel.
    """
    if isinstance(batch, TupleBatch):
        lists, count = [list(column) for column in batch.columns()], len(batch)
    else:
        lists = [_values(stream_rows, batch, column) for column in _in_order(stream_rows, batch)]
        count = len(lists[0]) if lists else 0
    if len(lists) != len(stream_rows.fields):
        raise stream_rows.batch_refusal(batch, f"it has {len(lists)}")
    if any(len(column) != count for column in lists):
        raise stream_rows.batch_refusal(batch, f"their lengths are {', '.join(str(len(column)) for column in lists)}")
    columns = Columns(lists, count)
    stream_rows.own_columns(columns)
    return columns


def _in_order(stream_rows: StreamRows, batch: Any) -> Sequence[Any]:
    """Returns the columns in the order of the fields; those with names are found by them."""
    names = list(batch) if isinstance(batch, Mapping) else _arrow_names(batch)
    if names is not None:
        if sorted(map(str, names)) != sorted(stream_rows.fields):
            raise stream_rows.batch_refusal(batch, f"its columns are {', '.join(map(repr, names))}")
        return [batch[field] for field in stream_rows.fields]
    if is_unordered(batch) or not hasattr(batch, "__iter__"):
        raise stream_rows.batch_refusal(batch, f"it is a {type(batch).__name__}; give a list of columns, or a mapping")
    return list(batch)


def _arrow_names(batch: Any) -> list[str] | None:
    """Returns the column names of a table or record batch of pyarrow, which this room does not import."""
    return getattr(getattr(batch, "schema", None), "names", None)


def _values(stream_rows: StreamRows, batch: Any, column: Any) -> list[Any]:
    values = column_values(column)
    if values is None:
        raise stream_rows.batch_refusal(batch, f"one of them is a {type(column).__name__}; give lists")
    return values
