"""A Kafka topic as an opaque source: each attempt reads what is there, and positions are stored with the commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.sources.kafka.client_settings import Option
from coordinator.sources.kafka.kafka_input import READ_COMMITTED, KafkaInput, positive
from coordinator.sources.kafka.offset_ranges import words_of
from coordinator.sources.kafka.partition_reader import PORTION, OutOfRangeError
from coordinator.sources.kafka.record_emission import OnTombstone
from coordinator.sources.kafka.starting_point import EARLIEST, OnGone, Start, StartingPoint, resumed
from coordinator.sources.kafka.topic import Topic, TopicState, starting_offsets
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
UNSEEN = 2**63 - 1
"""The end of a log that was away whenever it was asked for."""


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
            start=self._input.start,
            clock=time.monotonic,
            now_ms=lambda: time.time_ns() // 1_000_000,
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
        start: where to begin.
        clock: seconds, monotonic.
        now_ms: milliseconds since the epoch, for partitions that are away when the topology begins.
    """

    def __init__(
        self,
        topic: Topic,
        name: str,
        *,
        messages_per_partition: int,
        is_continuous: bool,
        start: StartingPoint,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self._topic, self._name, self._start, self._now_ms = topic, name, start, now_ms
        self._view = TopicView(topic, name, clock, needs_all=False)
        self._messages, self._is_continuous = messages_per_partition, is_continuous
        self._first_ends: dict[int, int] | None = None
        self._transactions_left = 0

    def first_positions(self, positions: Mapping[int, Any]) -> Mapping[int, Any]:
        """Fixes where the topology begins; a partition that joins later begins with its first message."""
        if positions or self.run_so_far.last_txid:
            return {}
        state = self._view.known()
        found = {
            partition: OpaquePosition(state.topic_id, at)
            for partition, at in starting_offsets(self._topic, self._name, state, self._start).items()
        }
        for partition in state.away:
            if self._start.offsets is not None and partition in self._start.offsets:
                found[partition] = OpaquePosition(state.topic_id, self._start.offsets[partition])
            elif self._start.place != EARLIEST or self._start.timestamp_ms is not None:
                since_ms = self._now_ms() if self._start.timestamp_ms is None else self._start.timestamp_ms
                found[partition] = OpaquePosition(state.topic_id, since_ms=since_ms)
        return {partition: position.to_plain() for partition, position in found.items()}

    def number_of_partitions(self) -> int:
        return self._view.look_again(has_work=False).partition_count

    def is_ready(self) -> bool:
        return self._transactions_left > 0

    def is_exhausted(self, positions: Mapping[int, Any], pending: int) -> bool:
        state = self._looked(pending)
        ends = self._ends(state)
        read = {partition: OpaquePosition.from_plain(position).at for partition, position in positions.items()}
        unread = {partition: end - read.get(partition, self._low(state, partition)) for partition, end in ends.items()}
        fullest = max((count for partition, count in unread.items() if partition in state.bounds), default=0)
        left = -(-fullest // self._messages)
        self._transactions_left = left - pending
        if self._is_continuous or left > pending:
            return False
        missing = [partition for partition in state.away if unread.get(partition, 0) > 0]
        if missing and not pending:
            raise self._view.missing(state.away[min(missing)])
        return not missing

    def is_finite(self) -> bool:
        return not self._is_continuous

    def progress(self, positions: Mapping[int, Any]) -> float | None:
        if self._is_continuous:
            return None
        state = self._view.known()
        ends = {partition: end for partition, end in self._ends(state).items() if partition in state.bounds}
        whole = done = 0
        for partition, end in ends.items():
            low = state.bounds[partition].low
            whole += end - low
            if partition in positions:
                done += max(0, min(end, OpaquePosition.from_plain(positions[partition]).at) - low)
        return done / whole if whole else 1.0

    def compare(self, former: FormerInput) -> InputChange | None:
        found = self._view.look().topic_id
        for position in former.positions.values():
            try:
                topic_id = OpaquePosition.from_plain(position).topic_id
            except SourceError:
                return None
            if topic_id != found:
                return InputChange(impossible=(made_again(self._name, topic_id, found),))
        return InputChange()

    def close(self) -> None:
        self._topic.close()

    @staticmethod
    def _low(state: TopicState, partition: int) -> int:
        return state.bounds[partition].low if partition in state.bounds else 0

    def _looked(self, pending: int) -> TopicState:
        """The topic, as of just now if what it has now matters."""
        if not self._is_continuous and not self._view.known().away:
            return self._view.known()
        return self._view.look_again(has_work=self._transactions_left > 0 or pending > 0)

    def _ends(self, state: TopicState) -> Mapping[int, int]:
        """Partition -> where what this run may read of it ends: now, or in a finite run when it was first seen."""
        ends = {partition: bounds.high for partition, bounds in state.bounds.items()}
        if self._is_continuous:
            return ends
        if self._first_ends is None:
            self._first_ends = dict.fromkeys(state.away, UNSEEN)
            self._first_ends |= ends
        for partition, end in self._first_ends.items():
            if end == UNSEEN:  # without a leader it has received nothing since
                self._first_ends[partition] = ends.get(partition, UNSEEN)
        return self._first_ends


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
        """Emits what a partition has, up to the limits; nothing of one that is away.

        Raises:
            SourceError: the position is gone and the policy is to fail, or the topic was made again.
            FailedException: brokers do not answer where it matters.
        """
        if self._topic_id is None:
            self._topic_id = worker_readers().topic_id(self._input.settings, self._input.topic)
        at = self._begins(partition, last)
        if at is None:
            return last
        reader = self._input.reader(self._topic_id, partition)
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
        return OpaquePosition(self._topic_id, at).to_plain()

    def _begins(self, partition: int, last: Any) -> int | None:
        """The offset to begin with; None if it depends on what the log holds, and the partition is away."""
        since_ms = None
        if last is not None:
            position = OpaquePosition.from_plain(last)
            if position.topic_id != self._topic_id:
                raise SourceError(made_again(self._input.topic, position.topic_id, str(self._topic_id)))
            if position.since_ms is None:
                return position.at
            since_ms = position.since_ms
        topic = self._input.broker_topic()
        try:
            bounds = topic.look().bounds.get(partition)
            if bounds is None:
                return None
            if since_ms is None:
                return bounds.low
            at_time = topic.offsets_at(since_ms, [partition])[partition]
            return bounds.high if at_time is None else at_time
        finally:
            topic.close()

    def _continued(self, partition: int, at: int) -> int:
        topic = self._input.broker_topic()
        try:
            bounds = topic.look().of(partition)
        finally:
            topic.close()
        found = resumed(self._input.topic, partition, at, bounds, self._input.on_gone)
        if found.lost:
            self._context.count(LOST_COUNTER, found.lost)
        return found.at


@dataclass(frozen=True, slots=True)
class OpaquePosition:
    """Where the next transaction begins in a partition.

    Attributes:
        topic_id: the brokers' id of the topic.
        at: the offset.
        since_ms: in place of an offset, for a partition that was away when the topology began: with its first message
            of this time or later, in milliseconds since the epoch.
    """

    topic_id: str
    at: int = 0
    since_ms: int | None = None

    def to_plain(self) -> list[Any]:
        """As it is stored."""
        return [self.topic_id, self.at] if self.since_ms is None else [self.topic_id, {"since_ms": self.since_ms}]

    @classmethod
    def from_plain(cls, plain: Any) -> OpaquePosition:
        """Inverse of `to_plain`.

        Raises:
            SourceError: it is not a position in a Kafka topic.
        """
        match plain:
            case [str(topic_id), int(at)] if at >= 0:
                return cls(topic_id, at)
            case [str(topic_id), {"since_ms": int(since_ms)}]:
                return cls(topic_id, since_ms=since_ms)
        raise SourceError(
            f"position {plain!r:.100} is not one in a Kafka topic: the topology was run with another source before; "
            "drop it or take another topology id"
        )
