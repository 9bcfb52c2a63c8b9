"""Checks emitted tuples against their stream, and chooses the tasks that receive them.

Every collector uses this module, so an invalid tuple is refused with the same message everywhere, before any part
of it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.columns import Columns
from coordinated_bolt.streams.choosers import Chooser
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import Grouping
from coordinated_bolt.streams.records import EmittedRow
from coordinated_bolt.streams.rows import ORDINARY, StreamRows, listed
from coordinated_bolt.streams.tuple_batch import TupleBatch
from state.values.column_values import column_values, is_unordered
from state.values.own_copy import ATOMS


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One subscription, from the emitter's side.

    Attributes:
        component_id: the subscribing component.
        tasks: its task ids, ascending.
        grouping: how tuples are spread over them.
    """

    component_id: str
    tasks: tuple[int, ...]
    grouping: Grouping


@dataclass(frozen=True, slots=True)
class OutputStream:
    """A declared stream with its subscribers.

    Attributes:
        index: position of the stream among the component's streams; frames use it as the stream's name.
        spec: its declaration.
        subscribers: its subscriptions.
    """

    index: int
    spec: StreamSpec
    subscribers: tuple[Subscriber, ...]


Choosers = list[tuple[Chooser, tuple[int, ...]]]
"""The choosers of a stream, one per subscriber, each with the tasks it chooses from."""
_Output = tuple[int, int, Choosers, StreamRows, list[int] | None]
"""Index, number of fields, choosers, rows and fixed receivers (or None) of a stream, cached at its first emit."""


class Router:
    """The streams of one task, with choosers that live as long as the router.

    Args:
        component_id: the emitting component, for messages.
        streams: stream id -> stream, for all streams the component declares.
        seed: for the choosers' random draws.
    """

    def __init__(self, component_id: str, streams: Mapping[str, OutputStream], seed: int) -> None:
        self._component_id = component_id
        self._streams = streams
        self._seed = seed
        self._outputs: dict[str, _Output] = {}

    def route(self, values: EmittedRow, stream_id: str) -> tuple[int, list[Any], list[int]]:
        """Returns stream index, row and receiving task ids of one tuple.

        Raises:
            ValueError: the tuple does not fit the stream, or the stream is not declared or is direct.
            CodecError: one of the values cannot travel.
        """
        index, width, choosers, rows, always = self._outputs.get(stream_id) or self._output(stream_id)
        row = list(values) if type(values) in ORDINARY else rows.listed(values)  # type: ignore[arg-type]
        if len(row) != width:
            raise rows.refusal(values)
        row = _owned(row, rows)
        if always is not None:
            return index, row, always.copy()
        receivers: list[int] = []
        for chooser, tasks in choosers:
            positions = chooser.choose(row)
            if len(positions) == 1:  # the most frequent case
                receivers.append(tasks[positions[0]])
            else:
                receivers += [tasks[position] for position in positions]
        return index, row, receivers

    def route_all(self, given: Iterable[EmittedRow], stream_id: str) -> tuple[int, list[list[Any]], Choosers]:
        """Returns stream index, rows, and the choosers that split them, each with the tasks it chooses from.

        Raises:
            ValueError, CodecError: as `route`.
        """
        index, width, choosers, stream_rows, _ = self._outputs.get(stream_id) or self._output(stream_id)
        given = listed(self._component_id, given)
        is_ordinary = ORDINARY.issuperset(map(type, given))
        rows = list(map(list if is_ordinary else stream_rows.listed, given))
        if rows and set(map(len, rows)) != {width}:
            raise stream_rows.refusal(next(v for v, row in zip(given, rows, strict=True) if len(row) != width))
        stream_rows.own_all(rows)
        return index, rows, choosers

    def route_batch(self, batch: Any, stream_id: str) -> tuple[int, Columns, Choosers]:
        """Returns stream index, columns, and the choosers that split them, each with the tasks it chooses from.

        Raises:
            ValueError, CodecError: as `route`, of columns; see `columns_given`.
        """
        index, _, choosers, stream_rows, _ = self._outputs.get(stream_id) or self._output(stream_id)
        return index, columns_given(stream_rows, batch), choosers

    def route_direct(self, task_id: int, values: EmittedRow, stream_id: str) -> tuple[int, list[Any]]:
        """Returns stream index and row of one tuple for one task.

        Raises:
            ValueError: the tuple does not fit the stream, or the task does not subscribe to it.
            CodecError: one of the values cannot travel.
        """
        stream = self._streams.get(stream_id)
        if stream is None or not stream.spec.direct:
            raise ValueError(
                f"component {self._component_id!r} has no direct stream {stream_id!r}; declare it with direct=True"
            )
        rows = StreamRows(self._component_id, stream.spec)
        row = rows.listed(values)
        if len(row) != len(stream.spec.fields):
            raise rows.refusal(values)
        if not any(task_id in subscriber.tasks for subscriber in stream.subscribers):
            raise ValueError(
                f"task {task_id!r} does not subscribe to the direct stream {stream_id!r} of {self._component_id!r}; "
                "take its id from context.component_tasks(...)"
            )
        return stream.index, _owned(row, rows)

    def _output(self, stream_id: str) -> _Output:
        stream = self._streams.get(stream_id)
        if stream is None:
            known = ", ".join(sorted(self._streams)) or "none; set output_fields"
            raise ValueError(
                f"component {self._component_id!r} does not declare stream {stream_id!r} (declared: {known})"
            )
        if stream.spec.direct:
            raise ValueError(f"stream {stream_id!r} of {self._component_id!r} is direct; use emit_direct")
        choosers = [
            (s.grouping.chooser(len(s.tasks), stream.spec.fields, self._seed + number), s.tasks)
            for number, s in enumerate(stream.subscribers)
        ]
        rows = StreamRows(self._component_id, stream.spec)
        output = self._outputs[stream_id] = (stream.index, len(stream.spec.fields), choosers, rows, _always(choosers))
        return output


def _always(choosers: Choosers) -> list[int] | None:
    """Returns the receivers of every tuple if all choosers are fixed, else None."""
    receivers: list[int] = []
    for chooser, tasks in choosers:
        positions = chooser.fixed()
        if positions is None:
            return None
        receivers += [tasks[position] for position in positions]
    return receivers


def _owned(row: list[Any], rows: StreamRows) -> list[Any]:
    """Returns the row itself if every value is plain, else a copy; for narrow rows, checking each type is cheapest."""
    try:
        for value in row:
            kind = type(value)
            if kind is str:
                if not value.isascii():
                    value.encode()
            elif kind not in ATOMS:
                return rows.own(row)
    except UnicodeEncodeError:
        return rows.own(row)  # raises an error that names the field
    return row


def columns_given(stream_rows: StreamRows, batch: Any) -> Columns:
    """Returns a batch as columns, in the order of the stream's fields.

    Args:
        stream_rows: checks the values for the stream.
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
    """Returns the columns in the order of the fields; named columns are found by name."""
    if type(batch) in ORDINARY:
        return batch  # type: ignore[no-any-return] # a list or a tuple
    names = list(batch) if isinstance(batch, Mapping) else _arrow_names(batch)
    if names is not None:
        if sorted(map(str, names)) != sorted(stream_rows.fields):
            raise stream_rows.batch_refusal(batch, f"its columns are {', '.join(map(repr, names))}")
        return [batch[field] for field in stream_rows.fields]
    if is_unordered(batch) or not hasattr(batch, "__iter__"):
        raise stream_rows.batch_refusal(batch, f"it is a {type(batch).__name__}; give a list of columns, or a mapping")
    return list(batch)


def _arrow_names(batch: Any) -> list[str] | None:
    """Returns the column names of a table or record batch of pyarrow, which this module does not import."""
    return getattr(getattr(batch, "schema", None), "names", None)


def _values(stream_rows: StreamRows, batch: Any, column: Any) -> list[Any]:
    values = column_values(column)
    if values is None:
        raise stream_rows.batch_refusal(batch, f"one column is a {type(column).__name__}; give lists")
    return values
