"""Makes tuples of messages: the format reads the value, and origin fields carry the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.records.record_output import RecordOutput
from state.errors import SourceError

ORIGIN_FIELDS = ("topic", "partition", "offset", "key", "headers", "timestamp")
"""The parts of a message that a tuple can carry: headers are a list of (name, bytes or None), the timestamp is in
milliseconds since the epoch, or None."""
TOMBSTONES_COUNTER = "tombstones"
NO_TIMESTAMP = 0


class KafkaMessage(Protocol):
    """The methods of a client's message that we call."""

    def offset(self) -> int | None:
        """Returns the offset."""

    def key(self) -> bytes | None:
        """Returns the key, or None."""

    def value(self) -> bytes | None:
        """Returns the value; None is a tombstone, which means that the key is deleted."""

    def headers(self) -> Any:
        """Returns the headers, or None."""

    def timestamp(self) -> tuple[int, int]:
        """Returns type and milliseconds of the timestamp."""


class OnTombstone(StrEnum):
    """What to do with a message without a value; see `KafkaTopic`."""

    FAIL = "fail"
    SKIP = "skip"
    EMPTY = "empty"


class RecordEmission:
    """Emits messages as tuples.

    Args:
        topic: name of the topic, for origins and error messages.
        output: emits records; it offers `ORIGIN_FIELDS`.
        on_tombstone: what to do with messages without a value.
    """

    def __init__(self, topic: str, output: RecordOutput, on_tombstone: OnTombstone) -> None:
        self._topic, self.output, self._on_tombstone = topic, output, on_tombstone

    def emit(
        self,
        collector: BatchOutputCollector,
        context: TopologyContext,
        partition: int,
        messages: Sequence[KafkaMessage],
    ) -> None:
        """Emits one portion of a partition's messages (executor).

        Raises:
            SourceError: a message is bad or has no value, and the policy is to fail.
        """
        kept, values = self.values(messages, partition, lambda: context.count(TOMBSTONES_COUNTER))
        self.output.emit(
            collector,
            context,
            values,
            origin=lambda index: self.origin(partition, kept[index]),
            place=lambda index: self.place(partition, kept[index]),
        )

    def values(
        self, messages: Sequence[KafkaMessage], partition: int, count_tombstone: Callable[[], None]
    ) -> tuple[Sequence[KafkaMessage], list[bytes]]:
        """Returns the messages to emit and their values, following the policy for messages without one.

        Raises:
            SourceError: a message has no value, and the policy is to fail.
        """
        found = [message.value() for message in messages]
        if None not in found:
            return messages, found  # type: ignore[return-value] # no None is left
        kept, values = [], []
        for message, value in zip(messages, found, strict=True):
            if value is None and self._on_tombstone is OnTombstone.FAIL:
                raise SourceError(
                    f"the message at {self.place(partition, message)} has no value, which on a compacted topic says "
                    "that its key is deleted; give on_tombstone='skip' to leave out such messages, or 'empty' to "
                    "emit them with an empty value, their key as an origin field"
                )
            if value is None and self._on_tombstone is OnTombstone.SKIP:
                count_tombstone()
                continue
            kept.append(message)
            values.append(value or b"")
        return kept, values

    def origin(self, partition: int, message: KafkaMessage) -> tuple[Any, ...]:
        """Returns the values of all `ORIGIN_FIELDS` of one message."""
        kind, timestamp_ms = message.timestamp()
        return (
            self._topic,
            partition,
            message.offset(),
            message.key(),
            [] if (headers := message.headers()) is None else [tuple(header) for header in headers],
            None if kind == NO_TIMESTAMP else timestamp_ms,
        )

    def origin_values(self, partition: int, message: KafkaMessage) -> list[Any]:
        """Returns the values of the chosen origin fields of one message."""
        offered = dict(zip(ORIGIN_FIELDS, self.origin(partition, message), strict=True))
        return [offered[name] for name in self.output.origin_fields]

    def place(self, partition: int, message: KafkaMessage) -> str:
        """Returns where a message is, in words."""
        return f"{self._topic}[{partition}] at offset {message.offset()}"
