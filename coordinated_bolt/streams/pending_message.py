"""A message under way in a plain topology, as its spout task remembers it."""

from __future__ import annotations

from typing import Any, NamedTuple


class PendingMessage(NamedTuple):
    """A message that is neither acked nor failed yet.

    Attributes:
        message_id: from the spout.
        values: the values that the spout emitted.
        stream_id: the stream it was emitted on.
        emitted_ns: when it was emitted, on the clock of the spout's task.
    """

    message_id: Any
    values: list[Any]
    stream_id: str
    emitted_ns: int
