"""Reads exact ranges of one partition: every message of a range, and none outside it.

Some offsets of a range hold no message: compaction removed it, it was aborted, or the offset holds a marker of Kafka's
transactions. So a range is complete once a message with its last offset, or a later one, or the end of the log arrives;
the number of messages proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from coordinator.sources.kafka.broker_errors import (
    ClientTrouble,
    failure_of,
    is_lasting,
    is_out_of_range,
    refused_options,
)
from coordinator.sources.kafka.client_settings import READER_DEFAULTS, ClientSettings
from coordinator.sources.kafka.offset_ranges import OffsetRange
from state.errors import FailedException, SourceError
from state.troubles import Trouble

PORTION = 1024
"""Messages handed out at a time; larger portions keep Python's garbage collector busy."""
POLL_S = 0.2
SILENCE_S = 30.0
"""The attempt fails, and is tried again, if a partition gives nothing for this time."""
IN_VAIN_S = 5.0
"""How long a partition that is away may hold up the others."""
READER_GROUP = "txbatch"
"""Readers join no group and commit nothing, but the client requires a name."""


class OutOfRangeError(Exception):
    """The requested offset is not in the log; never leaves this package."""


class Consumes(Protocol):
    """The methods of a consumer that a reader calls."""

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Starts to read partitions from their offsets."""

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Takes messages that have arrived; waits up to `timeout` seconds until there are `num_messages`."""

    def close(self) -> None:
        """Closes the consumer."""


class PartitionReader:
    """Reads one partition, fastest if each range continues the one before (executor; by one task at a time).

    Args:
        consumer: a consumer without an assignment, which reports the end of a partition.
        settings: settings of the consumer, for messages.
        topic: the name of the topic.
        partition: the partition to read.
        trouble: holds the consumer's last error.
        silence_s: how long to wait if nothing arrives.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        consumer: Consumes,
        settings: ClientSettings,
        topic: str,
        partition: int,
        trouble: ClientTrouble,
        *,
        silence_s: float = SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer, self._settings = consumer, settings
        self._topic, self._partition, self._trouble = topic, partition, trouble
        self._silence_s, self._clock = silence_s, clock
        self._at: int | None = None
        self._ahead: list[Message] = []
        self._end = -1
        self._waited_s = 0.0

    def read(self, part: OffsetRange) -> Iterator[list[Message]]:
        """Yields all messages of a range in portions, in the order of their offsets.

        Raises:
            SourceError: the range is gone from the log, or the partition may not be read.
            FailedException: nothing arrived for `silence_s`.
        """
        if not part.count:
            return
        try:
            yield from self._read(part)
        except OutOfRangeError:
            raise SourceError(
                f"offsets {part.first} to {part.next - 1} of partition {self._partition} of topic {self._topic!r} are "
                "not in its log any more; drop the topology; retention or an "
                "operator deleted them after they were cut into a transaction, so it cannot be read again; "
                "instead of dropping it, take another id; keep messages longer than a run may stand still"
            ).about(Trouble.INPUT_GONE) from None

    def messages_from(self, first: int, limit: int, *, wait_s: float) -> list[Message]:
        """Returns messages from an offset on; none if the log ends there, or nothing arrives for `wait_s` seconds.

        Raises:
            OutOfRangeError: the offset is not in the log.
            SourceError: the partition may not be read.
        """
        self._go_to(first)
        deadline = self._clock() + wait_s
        while True:  # bounded by the deadline
            end_before = self._end
            found = self._arrived(limit, deadline - self._clock())
            if found or self._end > end_before or self._clock() >= deadline:
                self._waited_s = 0.0 if found or self._end > end_before else self._waited_s + wait_s
                return found

    def position(self) -> int:
        """Returns the offset where reading continues: after the last message, and offsets without one at the end."""
        assert self._at is not None
        return self._at

    def needs_no_wait(self, offset: int) -> bool:
        """Returns whether nothing is expected at an offset: the log ended there, or has given nothing for long."""
        return self._at == offset and not self._ahead and (self._end >= offset or self._waited_s >= IN_VAIN_S)

    def close(self) -> None:
        """Closes the reader's consumer."""
        self._consumer.close()

    def _read(self, part: OffsetRange) -> Iterator[list[Message]]:
        self._go_to(part.first)
        heard, self._trouble.error = self._clock(), None  # errors from before this read are old
        assert self._at is not None
        while self._at < part.next:
            before = self._at, self._end
            found = self._arrived(min(PORTION, part.next - self._at), POLL_S)
            inside = [message for message in found if (message.offset() or 0) < part.next]
            if len(inside) < len(found):
                self._ahead = found[len(inside) :] + self._ahead
                self._at = part.next
            if inside:
                yield inside
            now = self._clock()
            if (self._at, self._end) != before:
                heard, self._trouble.error = now, None
            else:
                self._require_hope(part, now - heard)

    def _require_hope(self, part: OffsetRange, silent_s: float) -> None:
        """Raises an error after a long silence, or at once if waiting cannot help."""
        doing = f"reading offsets {part.first} to {part.next - 1} of partition {self._partition} of {self._topic!r}"
        error = self._trouble.error
        if silent_s > self._silence_s or (error is not None and is_lasting(error)):
            self._at, self._trouble.error = None, None
            if error is not None:
                raise failure_of(error, doing, self._settings)
            raise FailedException(f"{doing} at {self._settings.servers} brought nothing for {silent_s:g} s")

    def _go_to(self, offset: int) -> None:
        while self._ahead and (self._ahead[0].offset() or 0) < offset:
            self._ahead.pop(0)
        if self._at != offset:
            self._ahead, self._end, self._waited_s = [], -1, 0.0
            self._at = None  # in case the next line raises
            self._consumer.assign([TopicPartition(self._topic, self._partition, offset)])
            self._at = offset

    def _arrived(self, limit: int, wait_s: float) -> list[Message]:
        """Returns messages that have arrived, in order; moves the position after them, and up to the log's end."""
        assert self._at is not None
        if self._ahead:
            taken, self._ahead = self._ahead[:limit], self._ahead[limit:]
        else:
            taken = self._consumer.consume(limit, 0.0) or self._consumer.consume(1, max(0.0, wait_s))
        messages = []
        for message in taken:
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                self._noted(error, message)
        if messages:
            self._at = (messages[-1].offset() or 0) + 1
        if not self._ahead:
            self._at = max(self._at, self._end)
        return messages

    def _noted(self, error: KafkaError, message: Message) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            self._end = max(self._end, message.offset() or 0)
            return
        if is_out_of_range(error):
            self._at = None
            raise OutOfRangeError
        if is_lasting(error):
            self._at = None
            doing = f"reading partition {self._partition} of topic {self._topic!r}"
            raise failure_of(error, doing, self._settings)
        # the client reconnects by itself; if it cannot, the silence is noticed


def make_reader(
    settings: ClientSettings, topic: str, partition: int, *, reads_committed: bool, silence_s: float = SILENCE_S
) -> PartitionReader:
    """Returns a reader with a consumer of its own, which stores no positions and joins no group.

    Args:
        settings: how brokers are reached.
        topic: the name of the topic.
        partition: the partition to read.
        reads_committed: whether messages of open and aborted transactions are left out.
        silence_s: how long it waits if nothing arrives.

    Raises:
        SourceError: the options are wrong, or a secret cannot be read.
    """
    trouble = ClientTrouble()
    options: Mapping[str, str | int | float | bool] = {
        **READER_DEFAULTS,
        **settings.resolved(),
        "group.id": READER_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if reads_committed else "read_uncommitted",
    }
    try:
        consumer = Consumer({**options, "error_cb": trouble})
    except (KafkaException, ValueError, TypeError) as error:
        raise refused_options(error, settings) from None
    return PartitionReader(consumer, settings, topic, partition, trouble, silence_s=silence_s)
