"""A collector that keeps what is emitted, and a format of a user's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordinator.sources import BadRecordError


class Recorder:
    """A collector that keeps what is emitted, with its stream."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, list[Any]]] = []
        self.letters: list[tuple[Any, str]] = []

    def emit(self, values: Any, stream_id: str = "default") -> list[int]:
        self.sent.append((stream_id, list(values)))
        return []

    def emit_all(self, rows: Iterable[Any], stream_id: str = "default") -> None:
        for row in rows:
            self.emit(row, stream_id)

    def emit_batch(self, batch: Any, stream_id: str = "default") -> None:
        self.emit_all(zip(*batch, strict=True), stream_id)

    def dead_letter(self, tup: Any, reason: str) -> None:
        self.letters.append((tup, reason))

    def emit_direct(self, task_id: int, values: Any, stream_id: str = "default") -> None:
        raise AssertionError("nothing is emitted to one task")


def halves(data: bytes) -> list[Any]:
    if len(data) % 2:
        raise BadRecordError("its length is odd")
    middle = len(data) // 2
    return [data[:middle], data[middle:]]
