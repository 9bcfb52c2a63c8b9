"""A Kafka topic as a transactional source: which offsets belong to a transaction is fixed before it is read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.sources.kafka.client_settings import Option
from coordinator.sources.kafka.cut_record import CutRecord
from coordinator.sources.kafka.group_mirror import GroupMirror, NoMirror
from coordinator.sources.kafka.kafka_input import READ_COMMITTED, KafkaInput, positive
from coordinator.sources.kafka.offset_ranges import Cut, share_of, words_of
from coordinator.sources.kafka.partition_reader import OutOfRangeError
from coordinator.sources.kafka.record_emission import OnTombstone
from coordinator.sources.kafka.starting_point import OnGone, Start
from coordinator.sources.kafka.topic_coordinator import CuttingRules, TopicCoordinator
from coordinator.sources.kafka.topic_view import made_again
from coordinator.sources.kafka.worker_readers import worker_readers
from coordinator.sources.records.record_format import RecordFormat
from coordinator.sources.records.record_output import OnBadRecord
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.errors import SourceError, TopologyError
from state.troubles import Trouble

LOST_COUNTER = "lost_offsets"
SAMPLE_MESSAGES = 100
SAMPLE_WAIT_S = 1.0
DEFAULT_MESSAGES, DEFAULT_BYTES = 10_000, 16 * 1024 * 1024


class KafkaTransactionalSpout(ITransactionalSpout, ICommitterTransactionalSpout):
    """Messages of a topic, exactly once: the driver cuts each transaction's offsets, a replay reads exactly these.

    Positions live in Redis with the transaction. A range that retention deletes before its transaction has committed
    stops the run with an error that names it. On a compacted topic a replay may find fewer messages than the attempt
    before, which has published nothing.

    Args:
        servers: ``bootstrap.servers``: host:port, with commas between.
        topic: the topic's name; it has to exist.
        record_format: makes tuples of values; by default their bytes, as the field ``value``.
        messages_per_batch: offsets of a transaction at most, over all partitions.
        bytes_per_batch: bytes of a transaction's values at most, about: sizes are sampled, not known.
        continuous: wait for what arrives. Otherwise the run ends at what was there when it started; partitions that
            join meanwhile are left to the next run.
        linger_ms: how long, in a continuous run, less than a full transaction waits for more.
        mirror_group: a consumer group that is told how far the topology is, after each commit, for lag tools;
            None for none.
        origin_fields, start, isolation_level, on_gone, on_bad_record, on_tombstone, options: see `KafkaInput`.

    Raises:
        TopologyError: an argument cannot be used, or a secret is given in plain text.
    """

    destruction = ""  # topics keep what was read; a mirrored offset is for show

    def __init__(
        self,
        servers: str,
        topic: str,
        record_format: RecordFormat | None = None,
        *,
        messages_per_batch: int | str = DEFAULT_MESSAGES,
        bytes_per_batch: int | str = DEFAULT_BYTES,
        continuous: bool = False,
        linger_ms: int = 100,
        mirror_group: str | None = None,
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
        if isinstance(linger_ms, bool) or not isinstance(linger_ms, int) or linger_ms < 0:
            raise TopologyError(f"linger_ms={linger_ms!r} of a Kafka spout has to be a whole number of at least 0")
        if mirror_group is not None and (not isinstance(mirror_group, str) or not mirror_group):
            raise TopologyError(f"mirror_group={mirror_group!r} of a Kafka spout is not a group's name")
        self._rules = CuttingRules(
            messages=positive("messages_per_batch", messages_per_batch),
            byte_count=positive("bytes_per_batch", bytes_per_batch),
            linger_s=linger_ms / 1000,
            is_continuous=bool(continuous),
            start=self._input.start,
            on_gone=self._input.on_gone,
        )
        self._mirror_group = mirror_group
        self._record = CutRecord()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self._input.declare(declarer)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        return TopicCoordinator(
            self._input.broker_topic(),
            self._input.topic,
            context.topology_id,
            self._rules,
            message_bytes=self._message_bytes,
            clock=time.monotonic,
            record=self._record,
        )

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return KafkaEmitter(self._input, context)

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        if self._mirror_group is None:
            return NoMirror()
        return GroupMirror(self._input.settings, self._input.topic, self._mirror_group, self._record)

    def describe(self, metadata: Any) -> Sequence[str]:
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

    def _message_bytes(self, topic_id: str, partition: int, at: int) -> float:
        """Mean size of some messages (driver); 0 if they are gone, which the emitter will report."""
        reader = self._input.reader(topic_id, partition)
        try:
            found = reader.messages_from(at, SAMPLE_MESSAGES, wait_s=SAMPLE_WAIT_S)
        except OutOfRangeError:
            return 0.0
        return sum(len(message.value() or b"") for message in found) / max(1, len(found))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_record": CutRecord()}  # the driver's own


class KafkaEmitter(SpoutEmitter):
    """Reads a task's share of each batch (executor; one per task and wave).

    Args:
        source: the topic.
        context: the task.
    """

    def __init__(self, source: KafkaInput, context: TopologyContext) -> None:
        self._input, self._context = source, context
        self._topic_id: str | None = None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Emits the task's share, partition by partition in the order of offsets.

        Raises:
            SourceError: a range is gone from the log, or the topic was made again.
            FailedException: brokers give nothing.
        """
        cut, context = Cut.from_plain(metadata), self._context
        shares = list(share_of(cut.ranges, context.task_index, context.task_count))
        if shares:
            self._require(cut.topic_id)
        if cut.lost and context.task_index == 0:
            context.count(LOST_COUNTER, cut.lost)
        for partition, part in shares:
            for messages in self._input.reader(cut.topic_id, partition).read(part):
                self._input.emission.emit(collector, context, partition, messages)

    def _require(self, topic_id: str) -> None:
        """Refuses a topic that has taken the place of the one that was cut; asked once a wave."""
        if self._topic_id is None:
            self._topic_id = worker_readers().topic_id(self._input.settings, self._input.topic)
        if self._topic_id != topic_id:
            raise SourceError(made_again(self._input.topic, topic_id, self._topic_id)).about(Trouble.INPUT_GONE)
