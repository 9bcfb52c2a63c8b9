"""A Kafka topic as an opaque source: each attempt reads what is there, and positions are stored with the commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.sources.kafka.client_settings import Option
from coordinator.sources.kafka.kafka_input import READ_COMMITTED, KafkaInput, positive
from coordinator.sources.kafka.offset_ranges import words_of
from coordinator.sources.kafka.partition_reader import PORTION, OutOfRangeError
from coordinator.sources.kafka.record_emission import OnTombstone
from coordinator.sources.kafka.starting_point import OnGone, Start, resumed
from coordinator.sources.kafka.topic import Topic
from coordinator.sources.kafka.topic_view import TopicView, made_again
from coordinator.sources.kafka.transactional_spout import DEFAULT_BYTES, DEFAULT_MESSAGES, LOST_COUNTER
from coordinator.sources.kafka.worker_readers import worker_readers
from coordinator.sources.records.record_format import RecordFormat
from coordinator.sources.records.record_output import OnBadRecord
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedCoordinator,
    OpaquePartitionedEmitter,
)
from state.attempt import TransactionAttempt
from state.errors import FailedException, SourceError

FIRST_WAIT_S = 2.0
"""How long a reader that has just been put somewhere waits for its first message; the log's end is told sooner."""
NEXT_WAIT_S = 0.05


class KafkaOpaqueSpout(IOpaquePartitionedTransactionalSpout):
    """Messages of a topic, exactly once, where a replay need not read the same.

    Nothing is fixed before it is read: an attempt takes what each partition has, by messages and exact bytes, and its
    positions are stored by its commit. So a partition that is away is left out until it is back, and retention may
    delete messages while a transaction is tried again (`on_gone` says what then).

    Args:
        servers: ``bootstrap.servers``: host:port, with commas between.
        topic: the topic's name; it has to exist.
        record_format: makes tuples of values; by default their bytes, as the field ``value``.
        messages_per_partition: messages a transaction takes of each partition at most.
        bytes_per_partition: once a transaction has this many bytes of values of a partition, it takes no more of it.
        continuous: wait for what arrives. Otherwise the run ends once all is read that was there when it started;
            its last transactions may have some that arrived meanwhile.
        origin_fields, start, isolation_level, on_gone, on_bad_record, on_tombstone, options: see `KafkaInput`.

    Raises:
        TopologyError: an argument cannot be used, or a secret is given in plain text.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        record_format: RecordFormat | None = None,
        *,
        messages_per_partition: int | str = DEFAULT_MESSAGES,
        bytes_per_partition: int | str = DEFAULT_BYTES,
        continuous: bool = False,
        origin_fields: Sequence[str] = (),
        start: Start = "earliest",
        isolation_level: str = READ_COMMITTED,
        on_gone: str = OnGone.FAIL,
        on_bad_record: str = OnBadRecord.FAIL,
        on_tombstone: str = OnTombstone.FAIL,
        options: Mapping[str, Option] | None = None,
    ) -> None:
        self._input = KafkaInput(
            servers,
            topic,
            record_format,
            origin_fields=origin_fields,
            start=start,
            isolation_level=isolation_level,
            on_gone=on_gone,
            on_bad_record=on_bad_record,
            on_tombstone=on_tombstone,
            options=options,
        )
        self._messages = positive("messages_per_partition", messages_per_partition)
        self._bytes = positive("bytes_per_partition", bytes_per_partition)
        self._is_continuous = bool(continuous)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self._input.declare(declarer)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedCoordinator:
        return OpaqueTopicCoordinator(
            self._input.broker_topic(),
            self._input.topic,
            messages_per_partition=self._messages,
            is_continuous=self._is_continuous,
            clock=time.monotonic,
        )

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        return OpaqueKafkaEmitter(self._input, context, self._messages, self._bytes)

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        """The topic and the brokers' id of it; where the brokers are does not count.

        Raises:
            FailedException: brokers give no answer.
            SourceError: the topic does not exist, or may not be read.
        """
        topic = self._input.broker_topic()
        try:
            return self._input.fingerprint(topic.topic_id())
        finally:
            topic.close()


class OpaqueTopicCoordinator(OpaquePartitionedCoordinator):
    """Knows the partitions, and whether there is anything to read (driver).

    Args:
        topic: the topic; closed with this.
        name: of the topic, for messages.
        messages_per_partition: what a transaction takes of a partition at most.
        is_continuous: whether to wait for what arrives.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        topic: Topic,
        name: str,
        *,
        messages_per_partition: int,
        is_continuous: bool,
        clock: Callable[[], float],
    ) -> None:
        self._topic, self._name = topic, name
        self._view = TopicView(topic, name, clock)
        self._messages, self._is_continuous = messages_per_partition, is_continuous
        self._ends: Mapping[int, int] | None = None
        self._transactions_left = 1

    def number_of_partitions(self) -> int:
        return max(self._view.look_again(has_work=False).bounds, default=-1) + 1

    def is_ready(self) -> bool:
        return not self._is_continuous or self._transactions_left > 0

    def is_exhausted(self, positions: Mapping[int, Any], pending: int) -> bool:
        ends = self._readable()
        left = 0
        for partition, end in ends.items():
            at = parsed_position(positions[partition])[1] if partition in positions else self._low(partition)
            left = max(left, -(-(end - at) // self._messages))
        self._transactions_left = left - pending
        return not self._is_continuous and left <= pending

    def is_finite(self) -> bool:
        return not self._is_continuous

    def progress(self, positions: Mapping[int, Any]) -> float | None:
        if self._is_continuous:
            return None
        ends = self._readable()
        read = {partition: parsed_position(position)[1] for partition, position in positions.items()}
        whole = sum(end - self._low(partition) for partition, end in ends.items())
        done = sum(
            min(end, read.get(partition, 0)) - self._low(partition)
            for partition, end in ends.items()
            if read.get(partition, 0) > self._low(partition)
        )
        return done / whole if whole else 1.0

    def compare(self, former: FormerInput) -> InputChange | None:
        found = self._view.known().topic_id
        for position in former.positions.values():
            try:
                topic_id, _ = parsed_position(position)
            except SourceError:
                return None
            if topic_id != found:
                return InputChange(impossible=(made_again(self._name, topic_id, found),))
        return InputChange()

    def close(self) -> None:
        self._topic.close()

    def _readable(self) -> Mapping[int, int]:
        if self._is_continuous:
            state = self._view.look_again(has_work=True)
            return {partition: bounds.high for partition, bounds in state.bounds.items()}
        if self._ends is None:
            self._ends = {partition: bounds.high for partition, bounds in self._view.known().bounds.items()}
        return self._ends

    def _low(self, partition: int) -> int:
        return self._view.known().bounds[partition].low


class OpaqueKafkaEmitter(OpaquePartitionedEmitter):
    """Reads what partitions have (executor; one per task and wave).

    Args:
        source: the topic.
        context: the task.
        message_limit: messages of a partition and transaction at most.
        byte_limit: bytes after which no more are taken.
    """

    def __init__(self, source: KafkaInput, context: TopologyContext, message_limit: int, byte_limit: int) -> None:
        self._input, self._context = source, context
        self._message_limit, self._byte_limit = message_limit, byte_limit
        self._topic_id: str | None = None

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        """Emits what a partition has, up to the limits.

        Raises:
            SourceError: the position is gone and the policy is to fail, or the topic was made again.
            FailedException: brokers do not answer where it matters.
        """
        if self._topic_id is None:
            self._topic_id = worker_readers().topic_id(self._input.settings, self._input.topic)
        at = self._first_offset(partition, attempt.txid) if last is None else self._checked(last)
        reader = self._input.reader(self._topic_id, partition)
        message_count = byte_count = 0
        is_again = False
        while message_count < self._message_limit and byte_count < self._byte_limit:
            wait_s = NEXT_WAIT_S if reader.is_at_end(at) else FIRST_WAIT_S
            try:
                limit = min(PORTION, self._message_limit - message_count)
                messages = reader.messages_from(at, limit, wait_s=wait_s)
            except OutOfRangeError:
                if is_again:
                    raise FailedException(
                        f"the log of partition {partition} of topic {self._input.topic!r} keeps moving away from "
                        f"offset {at}; it is tried again"
                    ) from None
                at, is_again = self._continued(partition, at), True
                continue
            at = reader.position()
            if not messages:
                break
            self._input.emission.emit(collector, self._context, partition, messages)
            message_count += len(messages)
            byte_count += sum(len(message.value() or b"") for message in messages)
        return [self._topic_id, at]

    def _checked(self, last: Any) -> int:
        assert self._topic_id is not None
        topic_id, at = parsed_position(last)
        if topic_id != self._topic_id:
            raise SourceError(made_again(self._input.topic, topic_id, self._topic_id))
        return at

    def _first_offset(self, partition: int, txid: int) -> int:
        """Where a partition begins that has no position: one that joined later, with its first message."""
        topic, start = self._input.broker_topic(), self._input.start
        try:
            found = topic.look().bounds
            bounds = found[partition]
            if txid > 1:
                return bounds.low
            start.require_fits(self._input.topic, found)
            asked = start.timestamp_ms
            at_time = None if asked is None else topic.offsets_at(asked, [partition])[partition]
            return start.offset(partition, bounds, at_time)
        finally:
            topic.close()

    def _continued(self, partition: int, at: int) -> int:
        topic = self._input.broker_topic()
        try:
            bounds = topic.look().bounds[partition]
        finally:
            topic.close()
        found = resumed(self._input.topic, partition, at, bounds, self._input.on_gone)
        if found.lost:
            self._context.count(LOST_COUNTER, found.lost)
        return found.at


def parsed_position(position: Any) -> tuple[str, int]:
    """Topic id and offset of a stored position.

    Raises:
        SourceError: it is not a position in a Kafka topic.
    """
    match position:
        case [str(topic_id), int(at)] if at >= 0:
            return topic_id, at
    raise SourceError(
        f"position {position!r:.100} is not one in a Kafka topic: the topology was run with another source before; "
        "drop it or take another topology id"
    )
