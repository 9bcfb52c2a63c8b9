"""A Kafka topic as the spout of a plain topology: at least once, with offsets kept in Redis."""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.spouts import ISpout, SpoutOutputCollector
from coordinated_bolt.streams.declared import (
    DEAD_LETTER_FIELDS,
    DEAD_LETTER_STREAM,
    DEFAULT_STREAM,
    OutputFieldsDeclarer,
)
from coordinator.option_checks import positive, refuse_unknown
from coordinator.plain.kafka.offset_record import OffsetRecords, ResumeRules
from coordinator.plain.kafka.partition_manager import AfterFail, PartitionManager, TupleId
from coordinator.plain.kafka.partition_set import PartitionSet
from coordinator.plain.kafka.retry_manager import RetryRules
from coordinator.sources.kafka.client_settings import FromEnvironment, FromFile
from coordinator.sources.kafka.kafka_topic import KAFKA_SPOUT, KafkaTopic, require_topic
from coordinator.sources.kafka.partition_reader import PORTION, OutOfRangeError
from coordinator.sources.kafka.record_emission import KafkaMessage
from coordinator.sources.records.record_format import BadRecordError
from coordinator.sources.records.record_output import OnBadRecord
from state.errors import SourceError, TopologyError
from state.printable import printable
from state.redis_admin.offset_records import RedisOffsetRecords
from state.redis_client.address import secrets_in
from state.redis_owner.reader import URL_VARIABLE

FETCH_WAIT_S = 0.5
_LOG = logging.getLogger("txbatch.kafka")
Split = Callable[[Sequence[Any]], Iterable[Sequence[Any]]]


class OnGiveUp(StrEnum):
    """What to do with a message that failed on its first try and on every retry; see `KafkaSpout`."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead_letter"


class KafkaSpout(ISpout):
    """Messages of a topic, at least once; task k of n reads the partitions k, k+n, k+2n and so on.

    The offset up to which each partition is done is stored in Redis, every `store_every_ms` and at the end. The next
    run emits all later messages again. A message is done when all tuples made of it are acked; a tuple that fails is
    emitted again, alone, after a growing wait.

    Args:
        topic: which topic is read, and how.
        split: makes several tuples, or none, from the tuple of format and origin fields.
        redis: where offsets are kept: an address without a password, or where to find an address with one.
        spout_id: distinguishes spouts of a topology that read the same topic; by default the component's id.
        retries: how often and how soon failed tuples are emitted again.
        on_give_up: what to do with a message after its last retry has failed. ``"fail"`` stops the run with an error
            that names it, and the next run begins with it; ``"skip"`` leaves it out, counts and logs it;
            ``"dead_letter"`` emits it on the stream ``"dead_letters"``, as place, record and reason, until it is acked.
        max_uncommitted: how many messages of a partition may be emitted after the first one that is not done.
        store_every_ms: how often offsets are stored.
        force_from_start: ignore offsets that another instance of the topology has stored.
        instance_id: names this instance; random if it is None.
        max_behind: if a run starts further behind the log's end than this, it leaves out all messages up to the end,
            counts and logs them; None for no limit.

    Raises:
        TopologyError: an argument cannot be used, or `redis` holds a password.

    Source: storm.kafka.KafkaSpout.
    """

    def __init__(
        self,
        topic: KafkaTopic,
        *,
        split: Split | None = None,
        redis: str | FromEnvironment | FromFile = FromEnvironment(URL_VARIABLE),  # noqa: B008 - frozen
        spout_id: str | None = None,
        retries: RetryRules = RetryRules(),  # noqa: B008 - frozen
        on_give_up: str = OnGiveUp.FAIL,
        max_uncommitted: int = 10_000,
        store_every_ms: int = 2_000,
        force_from_start: bool = False,
        instance_id: str | None = None,
        max_behind: int | None = None,
    ) -> None:
        self._topic = require_topic(topic)
        if self._topic.missing != "fail":
            raise TopologyError(
                f"missing={self._topic.missing!r} of topic {self._topic.name!r} is for transactional topologies; "
                "make the topic before a plain one runs"
            )
        refuse_unknown("on_give_up", on_give_up, OnGiveUp)
        if isinstance(redis, str) and secrets_in(redis):
            raise TopologyError(
                "redis of KafkaSpout holds a password, and a spout is pickled; give FromEnvironment('NAME') or "
                "FromFile('/path') instead of the address"
            )
        self._split, self._redis, self._spout_id = split, redis, spout_id
        self._retries, self._on_give_up = retries, OnGiveUp(on_give_up)
        self._max_uncommitted = positive(KAFKA_SPOUT, "max_uncommitted", max_uncommitted)
        self._store_every_ms = positive(KAFKA_SPOUT, "store_every_ms", store_every_ms)
        self._rules = ResumeRules(
            instance_id=instance_id or secrets.token_hex(8),
            force_from_start=force_from_start,
            max_behind=None if max_behind is None else positive(KAFKA_SPOUT, "max_behind", max_behind),
        )

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        output = self._topic.emission().output
        output.declare(declarer)
        if self._on_give_up is OnGiveUp.DEAD_LETTER and output.on_bad_record is not OnBadRecord.DEAD_LETTER:
            declarer.declare_stream(DEAD_LETTER_STREAM, DEAD_LETTER_FIELDS)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Connects, and finds out where each partition of this task begins.

        Raises:
            SourceError: the topic or a stored offset cannot be used.
            StateUnreachableError: the server that keeps offsets does not answer.
        """
        self._collector, self._emission = collector, self._topic.emission()
        self._messages: dict[tuple[int, int], KafkaMessage] = {}
        self._dead: dict[TupleId, list[Any]] = {}
        self._dead_waiting: deque[TupleId] = deque()
        self.counts: Counter[str] = Counter()
        self._set = PartitionSet(
            self._topic,
            self._offset_records(context.topology_id),
            self._rules,
            spout_id=self._spout_id or context.component_id,
            context=context,
            make=lambda partition, at: PartitionManager(
                partition, at, self._retries, max_uncommitted=self._max_uncommitted
            ),
            counts=self.counts,
            now_ms=self._now_ms(),
        )
        self._set.open()
        self._stored_ms = self._now_ms()

    def next_tuple(self) -> None:
        """Emits the tuples of one message, or nothing."""
        now_ms = self._now_ms()
        if now_ms - self._stored_ms >= self._store_every_ms:
            self._stored_ms = now_ms
            self._set.store()
            self._set.look_again(now_ms)
        if self._dead_waiting:
            self._emit_dead(self._dead_waiting.popleft())
            return
        for manager in self._set.in_turn():
            offset = manager.take()
            if offset is None:
                self._fill(manager, now_ms)
                offset = manager.take()
            if offset is not None:
                self._emit(manager, offset)
                return

    def ack(self, message_id: TupleId) -> None:
        """Marks a tuple as done, and its message with the last tuple."""
        self._dead.pop(message_id, None)
        manager = self._set.manager(message_id.partition)
        if manager is not None and manager.acked(message_id):
            self._messages.pop((message_id.partition, message_id.offset), None)

    def fail(self, message_id: TupleId) -> None:
        """Emits a failed tuple again later, unless it has failed too often.

        Raises:
            SourceError: it has failed too often, and the policy is to fail.
        """
        if message_id in self._dead:
            self._dead_waiting.append(message_id)
            return
        manager = self._set.manager(message_id.partition)
        if manager is None or manager.failed(message_id, self._now_ms()) is not AfterFail.GIVE_UP:
            return
        place = f"{self._topic.name}[{message_id.partition}] at offset {message_id.offset}"
        reason = f"a tuple of it failed {1 + (self._retries.limit or 0)} times"
        if self._on_give_up is OnGiveUp.FAIL:
            self._set.store()
            raise SourceError(
                f"the message at {place} is given up: {reason}; look at what its bolts say, then run again; or give "
                "on_give_up='skip', or 'dead_letter' to emit such messages on a stream of their own"
            )
        self.counts["given_up"] += 1
        _LOG.warning("the message at %s is given up: %s", place, reason)
        if self._on_give_up is OnGiveUp.SKIP:
            self.ack(message_id)
            return
        message = self._messages.get((message_id.partition, message_id.offset))
        self._dead[message_id] = [place, b"" if message is None else message.value() or b"", reason]
        self._dead_waiting.append(message_id)

    def deactivate(self) -> None:
        self._set.store()

    def close(self) -> None:
        """Stores the offset up to which each partition is done, and closes the connections."""
        for partition, counts in self.statistics().items():
            _LOG.info("partition %d of topic %r at the end: %s", partition, self._topic.name, counts)
        try:
            self._set.store()
        finally:
            self._set.close()

    def statistics(self) -> dict[int, dict[str, int]]:
        """Returns partition -> its counts; see `PartitionManager.statistics`."""
        return {each.partition: each.statistics() for each in self._set.managers()}

    def _fill(self, manager: PartitionManager, now_ms: int) -> None:
        start = manager.fetch_from(now_ms)
        if start is None:
            return
        reader = self._set.reader(manager.partition)
        limit = PORTION if start < manager.emitted_to else min(PORTION, manager.room())
        try:
            found = reader.messages_from(start, limit, wait_s=0.0 if reader.needs_no_wait(start) else FETCH_WAIT_S)
        except OutOfRangeError:
            self._set.out_of_range(manager, start)
            self._forget_gone(manager)
            return
        offsets = [message.offset() or 0 for message in found]
        taken = set(manager.fetched(start, offsets, reader.position(), now_ms))
        for offset, message in zip(offsets, found, strict=True):
            if offset in taken:
                self._messages[manager.partition, offset] = message

    def _forget_gone(self, manager: PartitionManager) -> None:
        """Forgets messages and dead letters that a reset has voided."""
        for partition, offset in [*self._messages]:
            if partition == manager.partition and not manager.holds(offset):
                del self._messages[partition, offset]
        for tuple_id in [*self._dead]:
            if tuple_id.partition == manager.partition and not manager.holds(tuple_id.offset):
                del self._dead[tuple_id]

    def _emit(self, manager: PartitionManager, offset: int) -> None:
        message = self._messages[manager.partition, offset]
        if self._on_give_up is not OnGiveUp.DEAD_LETTER:  # otherwise the dead letter may need it
            del self._messages[manager.partition, offset]
        stream_id, rows = self._rows(manager.partition, message)
        before = manager.made_before(offset)
        if before is not None and before != len(rows):
            place = self._emission.place(manager.partition, message)
            raise SourceError(
                f"split made {len(rows)} tuples from the message at {place}, but {before} when it was read before, so "
                "it is unknown which of them failed; let split depend on nothing but its argument"
            )
        ids = manager.emitting(offset, len(rows))
        for tuple_id in ids:
            self._collector.emit(rows[tuple_id.number], tuple_id, stream_id)
        if not rows:
            self._messages.pop((manager.partition, offset), None)

    def _rows(self, partition: int, message: KafkaMessage) -> tuple[str, list[Sequence[Any]]]:
        """Returns the tuples of a message and their stream; follows the policy for a bad message."""
        emission, output = self._emission, self._emission.output
        kept, values = emission.values([message], partition, lambda: self.counts.update(["tombstones"]))
        if not kept:
            return DEFAULT_STREAM, []
        try:
            row = output.row(values[0])
        except BadRecordError as error:
            return self._bad(emission.place(partition, message), values[0], error)
        if output.origin_fields:
            row = [*row, *emission.origin_values(partition, message)]
        return DEFAULT_STREAM, [row] if self._split is None else list(self._split(row))

    def _bad(self, place: str, value: bytes, error: BadRecordError) -> tuple[str, list[Sequence[Any]]]:
        output = self._emission.output
        if refusal := output.refusal(place, error):
            raise refusal
        self.counts["bad_records"] += 1
        is_wanted = output.on_bad_record is OnBadRecord.DEAD_LETTER
        return DEAD_LETTER_STREAM, [[place, value, printable(str(error))]] if is_wanted else []

    def _emit_dead(self, tuple_id: TupleId) -> None:
        values = self._dead.get(tuple_id)
        if values is not None:
            self._collector.emit(values, tuple_id, DEAD_LETTER_STREAM)

    def _offset_records(self, topology_id: str) -> OffsetRecords:
        url = self._redis if isinstance(self._redis, str) else self._redis.read().strip()
        return RedisOffsetRecords(url, topology_id)

    @staticmethod
    def _now_ms() -> int:
        return time.monotonic_ns() // 1_000_000
