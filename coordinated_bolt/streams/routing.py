"""Checks emitted tuples against their stream, and chooses the tasks that receive them.

Every collector uses this module, so an invalid tuple is refused with the same message everywhere, before any part
of it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.columns import Columns
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.given_columns import columns_given
from coordinated_bolt.streams.groupings import Chooser, Grouping
from coordinated_bolt.streams.rows import ORDINARY, StreamRows, listed
from state.values.column_values import is_unordered
from state.values.own_copy import ATOMS


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One subscription as its emitter sees it.

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
"""Index, number of fields, choosers, rows and always the same receivers of a stream, cached at its first emit."""


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

    def route(self, values: Sequence[Any], stream_id: str) -> tuple[int, list[Any], list[int]]:
        """Returns stream index, row and receiving task ids of one tuple.

        Raises:
            ValueError: the tuple does not fit the stream, or the stream is not declared or is direct.
            CodecError: one of the values cannot travel.
        """
        index, width, choosers, rows, always = self._outputs.get(stream_id) or self._output(stream_id)
        try:
            row = list(values)
        except TypeError:
            self._refuse_scalars(stream_id, [values])
            raise
        if len(row) != width or (type(values) not in ORDINARY and is_unordered(values)):
            raise rows.refusal(values)
        row = _owned(row, rows)
        if always is not None:
            return index, row, always.copy()
        receivers: list[int] = []
        for chooser, tasks in choosers:
            positions = chooser.choose(row)
            if len(positions) == 1:  # as for most tuples
                receivers.append(tasks[positions[0]])
            else:
                receivers += [tasks[position] for position in positions]
        return index, row, receivers

    def route_all(self, given: Iterable[Sequence[Any]], stream_id: str) -> tuple[int, list[list[Any]], Choosers]:
        """Returns stream index, rows, and the choosers that split them, each with the tasks it chooses from.

        Raises:
            ValueError, CodecError: as `route`.
        """
        index, width, choosers, stream_rows, _ = self._outputs.get(stream_id) or self._output(stream_id)
        given = listed(self._component_id, given)
        try:
            rows = list(map(list, given))
        except TypeError:
            self._refuse_scalars(stream_id, given)
            raise
        if rows and set(map(len, rows)) != {width}:
            raise stream_rows.refusal(next(v for v, row in zip(given, rows, strict=True) if len(row) != width))
        if not ORDINARY.issuperset(map(type, given)):
            for values in filter(is_unordered, given):
                raise stream_rows.refusal(values)
        stream_rows.own_all(rows)
        return index, rows, choosers

    def route_batch(self, batch: Any, stream_id: str) -> tuple[int, Columns, Choosers]:
        """Returns stream index, columns, and the choosers that split them, each with the tasks it chooses from.

        Raises:
            ValueError, CodecError: as `route`, of columns; see `columns_given`.
        """
        index, _, choosers, stream_rows, _ = self._outputs.get(stream_id) or self._output(stream_id)
        return index, columns_given(stream_rows, batch), choosers

    def route_direct(self, task_id: int, values: Sequence[Any], stream_id: str) -> tuple[int, list[Any]]:
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
        self._refuse_scalars(stream_id, [values])
        row = list(values)
        if len(row) != len(stream.spec.fields) or is_unordered(values):
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

    def _refuse_scalars(self, stream_id: str, given: Sequence[Any]) -> None:
        for values in given:
            if not hasattr(values, "__iter__"):
                raise StreamRows(self._component_id, self._streams[stream_id].spec).refusal(values) from None


def _always(choosers: Choosers) -> list[int] | None:
    """Returns the receivers of every tuple if each chooser has only one answer, else None."""
    receivers: list[int] = []
    for chooser, tasks in choosers:
        positions = chooser.fixed()
        if positions is None:
            return None
        receivers += [tasks[position] for position in positions]
    return receivers


def _owned(row: list[Any], rows: StreamRows) -> list[Any]:
    """Returns the row itself if every value is plain; on narrow rows, checking each type is the cheapest way."""
    try:
        for value in row:
            kind = type(value)
            if kind is str:
                if not value.isascii():
                    value.encode()
            elif kind not in ATOMS:
                return rows.own(row)
    except UnicodeEncodeError:
        return rows.own(row)  # which raises an error that names the field
    return row
