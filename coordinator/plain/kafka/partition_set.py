"""The partitions of one task of the plain Kafka spout: opens them, finds new ones, and stores their offsets."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator

from coordinated_bolt.components.context import TopologyContext
from coordinator.plain.kafka.offset_record import OffsetRecord, OffsetRecords, ResumeRules
from coordinator.plain.kafka.partition_manager import PartitionManager
from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.kafka.partition_reader import PartitionReader
from coordinator.sources.kafka.starting_point import LOST_COUNTER, Bounds, OnGone, resumed
from coordinator.sources.kafka.topic import TopicState, starting_offsets
from state.errors import FailedException, SourceError, TopologyError

LOOK_EVERY_MS = 10_000
"""How often brokers are asked for new partitions."""

_LOG = logging.getLogger("txbatch.kafka")


class PartitionSet:
    """The partitions k, k+n, … of task k of n (where the spout task runs).

    Args:
        source: the topic.
        records: stores the offsets; closed with the set.
        rules: how to continue from the offsets of earlier runs.
        spout_id: part of the records' names.
        context: context of the task.
        make: (partition, offset) -> the partition's manager.
        counts: counts lost offsets.
        now_ms: current time.
    """

    def __init__(
        self,
        source: KafkaTopic,
        records: OffsetRecords,
        rules: ResumeRules,
        *,
        spout_id: str,
        context: TopologyContext,
        make: Callable[[int, int], PartitionManager],
        counts: Counter[str],
        now_ms: int,
    ) -> None:
        self._source, self._records, self._rules = source, records, rules
        self._spout_id, self._context, self._make, self._counts = spout_id, context, make, counts
        self._topic = source.connect()
        self._topic_id = ""
        self._managers: dict[int, PartitionManager] = {}
        self._turns: deque[PartitionManager] = deque()
        self._held_up: dict[int, int | None] = {}
        self._told: dict[int, int] = {}
        self._looked_ms = now_ms

    def open(self) -> None:
        """Finds out where each partition begins.

        The first task of the first run stores a record for the partitions of all tasks, in one step. So a partition
        that joins later is recognised by its missing record, however far the tasks are.

        Raises:
            SourceError: the topic, an offset or a stored record cannot be used, or the brokers do not answer.
        """
        try:
            state = self._topic.look().whole()
            self._topic_id = state.topic_id
            records = {partition: self._load(partition) for partition in state.bounds}
            if not any(map(self._rules.counts, records.values())):
                starts = starting_offsets(self._topic, self._source.name, state, self._source.starting_point)
                begun = [self._record(partition, at, is_start=True) for partition, at in starts.items()]
                self._save(*begun)
                records = {record.partition: record for record in begun}
        except FailedException as error:
            raise SourceError(f"the spout cannot begin: {error}") from None
        for partition in self._own(state):
            self._begin(partition, state.bounds[partition], records[partition])

    def look_again(self, now_ms: int) -> None:
        """Adds new partitions; asks only at intervals, and later if brokers are away.

        Raises:
            SourceError: the topic was created again.
        """
        if now_ms - self._looked_ms < LOOK_EVERY_MS:
            return
        self._looked_ms = now_ms
        try:
            state = self._topic.look()
        except FailedException as error:
            _LOG.info("the spout looks for new partitions later: %s", error)
            return
        self._require_same(state)
        for partition in self._own(state):
            if partition not in self._managers:
                self._begin(partition, state.bounds[partition], self._load(partition))

    def out_of_range(self, manager: PartitionManager, start: int) -> None:
        """Handles an offset that is not in the log: skips and counts lost messages, by the user's policy.

        Raises:
            SourceError: the policy is to fail, or the topic was created again.
        """
        topic, partition = self._source.name, manager.partition
        try:
            state = self._topic.look()
            self._require_same(state)
            bounds = state.of(partition)
        except FailedException as error:
            _LOG.info("partition %d of topic %r is asked for later: %s", partition, topic, error)
            return
        if bounds.low <= start <= bounds.end:
            return  # it was only for a moment
        if self._source.on_gone == OnGone.FAIL:
            self.store()
        if start > bounds.end:
            if self._source.on_gone == OnGone.FAIL:
                raise SourceError(
                    f"partition {partition} of topic {topic!r} was read to offset {start}, but its log ends at "
                    f"{bounds.end}: it has lost messages; any other on_gone than 'fail' continues at that end"
                )
            manager.restart(bounds.end)
            _LOG.warning("partition %d of topic %r ends at %d, before %d", partition, topic, bounds.end, start)
            return
        to = resumed(topic, partition, start, bounds, self._source.on_gone)
        self._count_lost(partition, manager.reset(to))

    def in_turn(self) -> Iterator[PartitionManager]:
        """Yields every partition's manager once, starting after the last one that the caller took before."""
        for _ in range(len(self._turns)):
            manager = self._turns[0]
            self._turns.rotate(-1)
            yield manager

    def manager(self, partition: int) -> PartitionManager | None:
        """Returns a partition's manager."""
        return self._managers.get(partition)

    def managers(self) -> list[PartitionManager]:
        """Returns the managers of all partitions."""
        return list(self._managers.values())

    def reader(self, partition: int) -> PartitionReader:
        """Returns a partition's reader."""
        return self._source.reader(self._topic_id, partition)

    def store(self) -> None:
        """Stores the offsets of partitions that have advanced.

        Raises:
            StateRefusedError, StateUnreachableError: the server cannot be used, or does not answer.
        """
        for partition, manager in self._managers.items():
            offset = manager.to_commit()
            if offset is not None:
                self._save(self._record(partition, offset))
                manager.committed(offset)
            self._say_if_held_up(manager)

    def close(self) -> None:
        """Closes the connections."""
        self._topic.close()
        self._records.close()

    def _require_same(self, state: TopicState) -> None:
        if state.topic_id != self._topic_id:
            raise SourceError(
                f"topic {self._source.name!r} was deleted and made again while it was read; give "
                "force_from_start=True or another spout_id"
            )

    def _own(self, state: TopicState) -> list[int]:
        owned = partitions_of(self._context.task_index, self._context.task_count, max(state.bounds, default=-1) + 1)
        return [partition for partition in owned if partition in state.bounds]

    def _begin(self, partition: int, bounds: Bounds, record: OffsetRecord | None) -> None:
        at = bounds.low  # the partition is new, or its record is ignored
        if record is not None and self._rules.counts(record):
            at = self._rules.first_offset(record, self._topic_id, bounds, self._source.on_gone)
            self._count_lost(partition, at - record.offset)
        manager = self._managers[partition] = self._make(partition, at)
        self._turns.append(manager)
        self._save(self._record(partition, at))

    def _say_if_held_up(self, manager: PartitionManager) -> None:
        """Logs, once, a message that has blocked a partition from one store to the next."""
        partition, offset = manager.partition, manager.held_up_by()
        if offset is not None and offset == self._held_up.get(partition) != self._told.get(partition):
            self._told[partition] = offset
            _LOG.warning(
                "partition %d of topic %r waits: as many messages as max_uncommitted allows are out, the lowest at "
                "offset %d; look for a bolt that neither acks nor fails it",
                partition,
                self._source.name,
                offset,
            )
        self._held_up[partition] = offset

    def _count_lost(self, partition: int, lost: int) -> None:
        if lost:
            self._counts[LOST_COUNTER] += lost
            _LOG.warning("%d offsets of partition %d of topic %r are left out", lost, partition, self._source.name)

    def _field(self, partition: int) -> str:
        return f"{self._spout_id}:{self._source.name}:{partition}"

    def _load(self, partition: int) -> OffsetRecord | None:
        text = self._records.load(self._field(partition))
        return None if text is None else OffsetRecord.from_text(text)

    def _record(self, partition: int, offset: int, *, is_start: bool = False) -> OffsetRecord:
        return OffsetRecord(
            instance_id=self._rules.instance_id,
            topology_name=self._context.topology_id,
            offset=offset,
            partition=partition,
            topic=self._source.name,
            topic_id=self._topic_id,
            broker=self._source.servers,
            is_start=is_start,
        )

    def _save(self, *records: OffsetRecord) -> None:
        self._records.save({self._field(record.partition): record.to_text() for record in records})


def partitions_of(task_index: int, task_count: int, partition_count: int) -> range:
    """Returns the partitions that task k of n reads: k, k+n, k+2n and so on.

    Raises:
        TopologyError: the component does not have that task.
    """
    if not 0 <= task_index < task_count:
        raise TopologyError(f"task {task_index} cannot read partitions: the component has {task_count} tasks, from 0")
    return range(task_index, partition_count, task_count)
