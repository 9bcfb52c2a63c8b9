"""The collector handed to bolts and emitters: checks, groups and counts what they emit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.groupings import Chooser, Grouping
from coordinated_bolt.outbox import Outbox
from coordinated_bolt.streams import DEFAULT_STREAM, StreamSpec
from coordinated_bolt.task_hook import EmitInfo, ITaskHook
from state.attempt import TransactionAttempt
from state.codec import digest64

_TEXT = frozenset({str, bytes})  # sequences, but never a row


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One subscription as its emitter sees it.

    Attributes:
        component_id: who subscribes.
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
        index: position of the stream among the component's, as frames name it.
        spec: the stream.
        subscribers: who receives it.
    """

    index: int
    spec: StreamSpec
    subscribers: tuple[Subscriber, ...]


class AttemptCollector:
    """The `BatchOutputCollector` of one attempt on one task.

    Args:
        component_id: whose task emits, for messages.
        task_id: which task.
        attempt: the attempt everything belongs to.
        streams: stream id -> stream, all the component declares.
        outbox: where rows go.
        hooks: told of every emit; the list may still grow.
    """

    def __init__(
        self,
        *,
        component_id: str,
        task_id: int,
        attempt: TransactionAttempt,
        streams: Mapping[str, OutputStream],
        outbox: Outbox,
        hooks: Sequence[ITaskHook] = (),
    ) -> None:
        self._component_id = component_id
        self._task_id = task_id
        self._streams = streams
        self._outbox = outbox
        self._hooks = hooks
        self._seed = digest64(b"%d %d %d" % (attempt.txid, attempt.attempt_id, task_id))
        self._choosers: dict[str, list[tuple[Chooser, tuple[int, ...]]]] = {}
        self.emitted = dict.fromkeys(streams, 0)
        """Stream id -> tuples emitted."""

    @property
    def emitted_count(self) -> int:
        """Tuples emitted on all streams."""
        return sum(self.emitted.values())

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it."""
        stream = self._stream(stream_id)
        row = list(values)
        if len(row) != len(stream.spec.fields) or isinstance(values, (str, bytes)):
            raise self._wrong_length(stream, values)
        receivers = []
        for chooser, tasks in self._choosers.get(stream_id) or self._make_choosers(stream):
            for position in chooser.choose(row):
                task = tasks[position]
                self._outbox.add(task, stream.index, row)
                receivers.append(task)
        self.emitted[stream_id] += 1
        if self._hooks:
            self._tell_hooks(row, stream_id, receivers)
        return receivers

    def emit_all(self, rows: Iterable[Sequence[Any]], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, as `emit` one by one would."""
        stream = self._stream(stream_id)
        given = list(rows)
        lists = list(map(list, given))
        length = len(stream.spec.fields)
        if lists and (set(map(len, lists)) != {length} or not _TEXT.isdisjoint(map(type, given))):
            wrong = (
                row for row, values in zip(given, lists, strict=True) if len(values) != length or type(row) in _TEXT
            )
            raise self._wrong_length(stream, next(wrong))
        if self._hooks:
            for row in lists:
                self.emit(row, stream_id)
            return
        for chooser, tasks in self._choosers.get(stream_id) or self._make_choosers(stream):
            for position, share in chooser.split(lists).items():
                self._outbox.add_all(tasks[position], stream.index, share)
        self.emitted[stream_id] += len(lists)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        stream = self._streams.get(stream_id)
        if stream is None or not stream.spec.direct:
            raise ValueError(f"component {self._component_id!r} has no direct stream {stream_id!r}")
        if len(values) != len(stream.spec.fields) or isinstance(values, (str, bytes)):
            raise self._wrong_length(stream, values)
        if not any(task_id in subscriber.tasks for subscriber in stream.subscribers):
            raise ValueError(
                f"task {task_id!r} does not subscribe to the direct stream {stream_id!r} of {self._component_id!r}; "
                "take its id from context.component_tasks(...)"
            )
        self._outbox.add(task_id, stream.index, list(values))
        self.emitted[stream_id] += 1
        if self._hooks:
            self._tell_hooks(values, stream_id, [task_id])

    def _tell_hooks(self, values: Sequence[Any], stream_id: str, receivers: list[int]) -> None:
        info = EmitInfo(tuple(values), stream_id, self._task_id, tuple(receivers))
        for hook in self._hooks:
            hook.emit(info)

    def _stream(self, stream_id: str) -> OutputStream:
        stream = self._streams.get(stream_id)
        if stream is None:
            known = ", ".join(sorted(self._streams)) or "none; set output_fields"
            raise ValueError(f"component {self._component_id!r} declares no stream {stream_id!r} (declared: {known})")
        if stream.spec.direct:
            raise ValueError(f"stream {stream_id!r} of {self._component_id!r} is direct: use emit_direct")
        return stream

    def _make_choosers(self, stream: OutputStream) -> list[tuple[Chooser, tuple[int, ...]]]:
        choosers = [
            (s.grouping.chooser(len(s.tasks), stream.spec.fields, self._seed + number), s.tasks)
            for number, s in enumerate(stream.subscribers)
        ]
        self._choosers[stream.spec.stream_id] = choosers
        return choosers

    def _wrong_length(self, stream: OutputStream, values: Any) -> ValueError:
        return ValueError(
            f"component {self._component_id!r} emitted {values!r} on stream {stream.spec.stream_id!r}, "
            f"which takes a list of {len(stream.spec.fields)} values: {stream.spec.fields}"
        )
