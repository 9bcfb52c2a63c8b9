"""A collector that tells an observer what is emitted with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coordinated_bolt.bolts import BatchOutputCollector
from coordinated_bolt.streams import DEFAULT_STREAM
from coordinated_bolt.task_observer import TaskObserver


class ObservedCollector:
    """Another `BatchOutputCollector`, watched.

    Args:
        collector: emits.
        observer: is told.
    """

    def __init__(self, collector: BatchOutputCollector, observer: TaskObserver) -> None:
        self._collector = collector
        self._observer = observer

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it."""
        receivers = self._collector.emit(values, stream_id)
        self._observer.emitted(stream_id, list(values), receivers)
        return receivers

    def emit_all(self, rows: Iterable[Sequence[Any]], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, as `emit` one by one would."""
        for row in rows:
            self.emit(row, stream_id)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        self._collector.emit_direct(task_id, values, stream_id)
        self._observer.emitted(stream_id, list(values), [task_id])
