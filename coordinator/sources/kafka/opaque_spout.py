"""A Kafka topic as an opaque source: each attempt reads the messages it finds; the commit stores the positions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.option_checks import positive
from coordinator.sources.kafka.kafka_topic import KAFKA_SPOUT, KafkaTopic, require_topic
from coordinator.sources.kafka.offset_ranges import OpaquePosition, words_of
from coordinator.sources.kafka.opaque_coordinator import OpaqueTopicCoordinator
from coordinator.sources.kafka.partition_reader import PORTION, OutOfRangeError
from coordinator.sources.kafka.starting_point import LOST_COUNTER, resumed
from coordinator.sources.kafka.topic_view import require_same
from coordinator.sources.kafka.transactional_spout import DEFAULT_BYTES, DEFAULT_MESSAGES
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaquePartitionedEmitter
from coordinator.spouts.partitioned import PartitionedCoordinator
from state.attempt import TransactionAttempt
from state.errors import FailedException

FIRST_WAIT_S = 2.0
"""How long a reader waits for its first message at a new offset; it notices the log's end sooner."""
NEXT_WAIT_S = 0.05


class KafkaOpaqueSpout(IOpaquePartitionedTransactionalSpout):
    """Messages of a topic, exactly once, where a replay need not read the same messages.

    No range is fixed before it is read: an attempt takes what each partition has, up to limits of messages and bytes,
    and its commit stores the positions. So a partition that is away is left out until it is back, and retention may
    delete messages while a transaction is tried again (see `KafkaTopic.on_gone`).

    Args:
        topic: which topic is read, and how.
        messages_per_partition: how many messages a transaction takes from each partition at most.
        bytes_per_partition: a transaction takes no more from a partition once it has this many bytes of its values.
        continuous: wait for new messages. Otherwise the run ends once it has read the messages that were there when it
            started; its last transactions may also hold some that arrived meanwhile.

    Raises:
        TopologyError: an argument cannot be used.
    """

    def __init__(
        self,
        topic: KafkaTopic,
        *,
        messages_per_partition: int | str = DEFAULT_MESSAGES,
        bytes_per_partition: int | str = DEFAULT_BYTES,
        continuous: bool = False,
    ) -> None:
        self._topic = require_topic(topic)
        self._messages = positive(KAFKA_SPOUT, "messages_per_partition", messages_per_partition)
        self._bytes = positive(KAFKA_SPOUT, "bytes_per_partition", bytes_per_partition)
        self._is_continuous = bool(continuous)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self._topic.emission().output.declare(declarer)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        return OpaqueTopicCoordinator(
            self._topic.connect_when_there(),
            self._topic,
            messages_per_partition=self._messages,
            is_continuous=self._is_continuous,
            clock=time.monotonic,
            now_ms=lambda: time.time_ns() // 1_000_000,
        )

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        return OpaqueKafkaEmitter(self._topic, context, self._messages, self._bytes)

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        """See `KafkaTopic.fingerprint`."""
        return self._topic.fingerprint()


class OpaqueKafkaEmitter(OpaquePartitionedEmitter):
    """Reads the next messages of partitions (executor; one per task and wave).

    Args:
        topic: the topic to read.
        context: context of the task.
        message_limit: most messages per partition and transaction.
        byte_limit: bytes of values after which it takes no more messages.
    """

    def __init__(self, topic: KafkaTopic, context: TopologyContext, message_limit: int, byte_limit: int) -> None:
        self._topic, self._context, self._emission = topic, context, topic.emission()
        self._message_limit, self._byte_limit = message_limit, byte_limit
        self._read_of = ""

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        """Emits the next messages of a partition, up to the limits; none if it is away, or has just joined.

        A partition that has joined only gets its first position stored. If it were read at once, and the topic were
        created again meanwhile, one batch would hold messages of two topics: other tasks have checked theirs by then.

        Raises:
            SourceError: the position is gone and the policy is to fail, or the topic was created again.
            FailedException: the brokers do not answer.
        """
        begins = self._begins(partition, last)
        if begins is None:
            return last
        topic_id, at = begins.topic_id, begins.at
        require_same(self._topic.name, self._read_of or topic_id, topic_id)
        self._read_of = topic_id
        if last is None:
            return begins.to_plain()
        reader = self._topic.reader(topic_id, partition)
        message_count = byte_count = 0
        is_again = False
        while message_count < self._message_limit and byte_count < self._byte_limit:
            wait_s = NEXT_WAIT_S if reader.needs_no_wait(at) else FIRST_WAIT_S
            try:
                limit = min(PORTION, self._message_limit - message_count)
                messages = reader.messages_from(at, limit, wait_s=wait_s)
            except OutOfRangeError:
                if is_again:
                    raise FailedException(
                        f"the log of partition {partition} of topic {self._topic.name!r} keeps losing offset {at} "
                        "before it is read"
                    ) from None
                at, is_again = self._continued(topic_id, partition, at), True
                continue
            at = reader.position()
            if not messages:
                break
            self._emission.emit(collector, self._context, partition, messages)
            message_count += len(messages)
            byte_count += sum(len(message.value() or b"") for message in messages)
        return OpaquePosition(topic_id, at).to_plain()

    def finish_batch(self, attempt: TransactionAttempt) -> None:
        """Makes sure that the messages came from the topic of the positions.

        Raises:
            SourceError: the topic was created again.
            FailedException: the brokers do not answer.
        """
        if self._read_of:  # checked after reading, so that it finds a topic that was created again before or meanwhile
            require_same(self._topic.name, self._read_of, self._topic.worker_topic_id())
            self._read_of = ""

    def _begins(self, partition: int, last: Any) -> OpaquePosition | None:
        """Returns where to begin; None if the log has to be asked, and the partition is away."""
        position = None if last is None else OpaquePosition.from_plain(last)
        if position is not None and position.since_ms is None:
            return position
        with closing(self._topic.connect()) as topic:
            found = topic.look()
            if position is not None:
                require_same(self._topic.name, position.topic_id, found.topic_id)
            bounds = found.bounds.get(partition)
            if bounds is None:
                return None
            if position is None or position.since_ms is None:
                return OpaquePosition(found.topic_id, bounds.low)
            at_time = topic.offsets_at(position.since_ms, [partition])[partition]
            return OpaquePosition(found.topic_id, bounds.high if at_time is None else at_time)

    def _continued(self, topic_id: str, partition: int, at: int) -> int:
        with closing(self._topic.connect()) as topic:
            state = topic.look()
        require_same(self._topic.name, topic_id, state.topic_id)
        found = resumed(self._topic.name, partition, at, state.of(partition), self._topic.on_gone)
        if found > at:
            self._context.count(LOST_COUNTER, found - at)
        return found
