"""A message of a plain topology that is under way, as its spout remembers it."""

from __future__ import annotations

from typing import Any, NamedTuple


class PendingMessage(NamedTuple):
    """A message whose end its spout waits for.

    Attributes:
        message_id: as the spout gave it.
        values: as the spout emitted them.
        stream_id: the stream it was emitted on.
        emitted_ns: when, on the clock of the spout's task.
    """

    message_id: Any
    values: list[Any]
    stream_id: str
    emitted_ns: int
