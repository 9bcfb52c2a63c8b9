"""A Kafka topic as a transactional source: the offsets of a transaction are fixed before they are read."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.option_checks import positive
from coordinator.sources.kafka.client_settings import READER_DEFAULTS, ClientSettings
from coordinator.sources.kafka.kafka_topic import KAFKA_SPOUT, KafkaTopic, require_topic
from coordinator.sources.kafka.offset_ranges import OffsetCut, share_of, words_of
from coordinator.sources.kafka.partition_reader import OutOfRangeError
from coordinator.sources.kafka.starting_point import LOST_COUNTER
from coordinator.sources.kafka.topic_coordinator import CuttingRules, TopicCoordinator
from coordinator.sources.kafka.topic_view import require_same
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.errors import FailedException, SourceError, TopologyError
from state.printable import one_line
from state.values.whole import is_whole

SAMPLE_MESSAGES = 100
SAMPLE_WAIT_S = 1.0
DEFAULT_MESSAGES, DEFAULT_BYTES = 10_000, 16 * 1024 * 1024


class KafkaTransactionalSpout(ITransactionalSpout, ICommitterTransactionalSpout):
    """Messages of a topic, exactly once: the driver cuts each transaction's offsets, and a replay reads exactly those.

    Positions are stored in Redis with the transaction. If retention deletes a range before its transaction has
    committed, the run stops with an error that names the range. On a compacted topic, a replay may find fewer messages
    than the attempt before, which has published nothing.

    Args:
        topic: which topic is read, and how.
        messages_per_batch: most offsets per transaction, over all partitions.
        bytes_per_batch: approximate limit for the bytes of a transaction's values; message sizes are sampled.
        continuous: wait for new messages. Otherwise the run ends where the logs ended when it started, and leaves
            partitions that join meanwhile to the next run.
        linger_ms: how long, in a continuous run, a transaction that is not full waits for more messages.
        mirror_group: a consumer group to which positions are committed after each commit, for lag tools; or None.

    Raises:
        TopologyError: an argument cannot be used.
    """

    destruction = ""  # topics keep their messages; a mirrored offset is only shown

    def __init__(
        self,
        topic: KafkaTopic,
        *,
        messages_per_batch: int | str = DEFAULT_MESSAGES,
        bytes_per_batch: int | str = DEFAULT_BYTES,
        continuous: bool = False,
        linger_ms: int = 100,
        mirror_group: str | None = None,
    ) -> None:
        if not is_whole(linger_ms, 0):
            raise TopologyError(f"linger_ms={linger_ms!r} of a Kafka spout has to be a whole number of at least 0")
        if mirror_group is not None and (not isinstance(mirror_group, str) or not mirror_group):
            raise TopologyError(f"mirror_group={mirror_group!r} of a Kafka spout is not a group's name")
        self._topic = require_topic(topic)
        self._rules = CuttingRules(
            messages=positive(KAFKA_SPOUT, "messages_per_batch", messages_per_batch),
            byte_count=positive(KAFKA_SPOUT, "bytes_per_batch", bytes_per_batch),
            linger_s=linger_ms / 1000,
            is_continuous=bool(continuous),
        )
        self.is_endless = self._rules.is_continuous
        self._mirror_group = mirror_group
        self._record = CutRecord()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self._topic.emission().output.declare(declarer)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        return TopicCoordinator(
            self._topic.connect_when_there(),
            self._topic,
            context.topology_id,
            self._rules,
            message_bytes=self._message_bytes,
            clock=time.monotonic,
            note_cut=self._record.cut,
        )

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return KafkaEmitter(self._topic, context)

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        return GroupMirror(self._topic.settings, self._topic.name, self._mirror_group, self._record)

    def describe(self, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        """See `KafkaTopic.fingerprint`."""
        return self._topic.fingerprint()

    def _message_bytes(self, topic_id: str, partition: int, at: int) -> float:
        """Returns the mean size of some messages (driver); 0 if they are gone, which the emitter will report."""
        reader = self._topic.reader(topic_id, partition)
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
        topic: the topic to read.
        context: context of the task.
    """

    def __init__(self, topic: KafkaTopic, context: TopologyContext) -> None:
        self._topic, self._context, self._emission = topic, context, topic.emission()

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Emits the task's share, partition by partition in the order of offsets.

        Raises:
            SourceError: a range is gone from the log, or the topic was created again.
            FailedException: nothing arrives from the brokers.
        """
        cut, context = OffsetCut.from_plain(metadata), self._context
        shares = list(share_of(cut.ranges, context.task_index, context.task_count))
        if cut.lost and context.task_index == 0:
            context.count(LOST_COUNTER, cut.lost)
        try:
            for partition, part in shares:
                for messages in self._topic.reader(cut.topic_id, partition).read(part):
                    self._emission.emit(collector, context, partition, messages)
        except (FailedException, SourceError):
            self._require_topic(cut)  # raises first if the topic was created again
            raise
        if shares:
            self._require_topic(cut)

    def _require_topic(self, cut: OffsetCut) -> None:
        """Refuses a topic that was created again; called after reading, so that no message of the new topic is used."""
        require_same(self._topic.name, cut.topic_id, self._topic.worker_topic_id())


KEPT_MAX = 100_000
"""How many transactions are remembered; a window is far smaller."""

_LOG = logging.getLogger("txbatch.kafka")


class CutRecord:
    """Remembers where each transaction ended (driver; coordinator and committer use it on one thread)."""

    def __init__(self) -> None:
        self._after: dict[int, Mapping[int, int]] = {}

    def cut(self, txid: int, positions: Mapping[int, int]) -> None:
        """Records where a transaction ends: partition -> offset."""
        self._after[txid] = dict(positions)
        while len(self._after) > KEPT_MAX:
            del self._after[next(iter(self._after))]

    def durable(self, txid: int) -> Mapping[int, int] | None:
        """Returns where a durable transaction ended, None if another run cut it; forgets it and all before it."""
        found = self._after.get(txid)
        self._after = {number: after for number, after in self._after.items() if number > txid}
        return found


class GroupMirror(SpoutCommitter):
    """Commits the positions of durable transactions to a consumer group (driver, after each group of commits).

    A broker that is away costs a warning and nothing else: positions are in Redis.

    Args:
        settings: how brokers are reached.
        topic: name of the topic.
        group: the consumer group, which has no members; None to commit nothing.
        record: where transactions ended.
    """

    def __init__(self, settings: ClientSettings, topic: str, group: str | None, record: CutRecord) -> None:
        self._settings, self._topic, self._group, self._record = settings, topic, group, record
        self._client: Consumer | None = None
        self._was_refused = False

    def commit(self, attempt: TransactionAttempt) -> None:
        """Does nothing: `cleanup_before` follows each group of commits."""

    def cleanup_before(self, txid: int) -> None:
        """Commits where transaction `txid` ended, if this run cut it."""
        positions = self._record.durable(txid)
        if not positions or self._group is None:
            return
        offsets = [TopicPartition(self._topic, partition, at) for partition, at in sorted(positions.items())]
        try:
            # not waited for: the next commit includes this one
            self._connected(self._group).commit(offsets=offsets, asynchronous=True)
        except (KafkaException, TypeError, ValueError) as error:  # TypeError and ValueError for unknown options
            if not self._was_refused:
                said = one_line(self._settings.without_secrets(str(error)))
                _LOG.warning("group %r could not be given the topology's position: %s", self._group, said)
            self._was_refused = True

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _connected(self, group: str) -> Consumer:
        if self._client is None:
            options = {**READER_DEFAULTS, **self._settings.resolved(), "group.id": group, "enable.auto.commit": False}
            self._client = Consumer(options)
        return self._client
