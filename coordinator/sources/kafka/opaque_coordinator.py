"""Where an opaque Kafka source begins, when it has more to read, and when it has ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.kafka.offset_ranges import OpaquePosition
from coordinator.sources.kafka.starting_point import EARLIEST
from coordinator.sources.kafka.topic import Topic, TopicState, starting_offsets
from coordinator.sources.kafka.topic_view import TopicView
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.run_so_far import FormerInput, InputChange
from state.errors import SourceError

UNSEEN = 2**63 - 1
"""Stands for the end of a log that has been away so far."""


class OpaqueTopicCoordinator(PartitionedCoordinator):
    """Knows the partitions, and whether there is anything to read (driver).

    Args:
        topic: the topic on its brokers; closed with the coordinator.
        source: the topic as it was declared.
        messages_per_partition: how many messages a transaction takes from a partition at most.
        is_continuous: whether to wait for new messages.
        clock: monotonic seconds.
        now_ms: milliseconds since the epoch, for partitions that are away when the topology begins.
    """

    def __init__(
        self,
        topic: Topic,
        source: KafkaTopic,
        *,
        messages_per_partition: int,
        is_continuous: bool,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self._topic, self._source, self._now_ms = topic, source, now_ms
        self._view = TopicView(topic, source.name, clock, needs_all=False)
        self._messages, self._is_continuous = messages_per_partition, is_continuous
        self._first_ends: dict[int, int] | None = None
        self._transactions_left = 0

    def first_positions(self) -> Mapping[int, Any]:
        """Fixes where the topology begins; a partition that joins later begins with its first message."""
        if self.run_so_far.positions or self.run_so_far.last_txid:
            return {}
        state, start = self._view.known(), self._source.starting_point
        found = {
            partition: OpaquePosition(state.topic_id, at)
            for partition, at in starting_offsets(self._topic, self._source.name, state, start).items()
        }
        for partition in state.away:
            if start.offsets is not None and partition in start.offsets:
                found[partition] = OpaquePosition(state.topic_id, start.offsets[partition])
            elif start.place != EARLIEST or start.timestamp_ms is not None:
                since_ms = self._now_ms() if start.timestamp_ms is None else start.timestamp_ms
                found[partition] = OpaquePosition(state.topic_id, since_ms=since_ms)
        return {partition: position.to_plain() for partition, position in found.items()}

    def number_of_partitions(self) -> int:
        return self._view.look_again(has_work=False).partition_count

    def is_ready(self) -> bool:
        return self._transactions_left > 0

    def is_exhausted(self) -> bool:
        positions, ahead = self.run_so_far.positions, self.run_so_far.ahead
        read = {partition: OpaquePosition.from_plain(position).at for partition, position in positions.items()}
        state = self._view.known()
        if self._is_continuous or state.away or any(self._unread(state, read).values()):
            state = self._view.look_again(has_work=self._transactions_left > 0 or ahead > 0)
            self._view.require_ends(read)
        unread = self._unread(state, read)
        there = {
            partition: min(unread.get(partition, 0), bounds.high - read.get(partition, bounds.low))
            for partition, bounds in state.bounds.items()
        }
        missing = {each: self._reason(state, each) for each, count in unread.items() if count and not there.get(each)}
        self._view.note_unreadable(missing)
        left = -(-max(there.values(), default=0) // self._messages)
        self._transactions_left = left - ahead
        if self._is_continuous or left > ahead:
            return False
        if missing and not ahead:
            raise self._view.missing()
        return not missing

    def is_finite(self) -> bool:
        return not self._is_continuous

    def progress(self) -> float | None:
        if self._is_continuous:
            return None
        state, positions = self._view.known(), self.run_so_far.positions
        ends = {partition: end for partition, end in self._ends(state).items() if partition in state.bounds}
        whole = done = 0
        for partition, end in ends.items():
            low = state.bounds[partition].low
            whole += end - low
            if partition in positions:
                done += max(0, min(end, OpaquePosition.from_plain(positions[partition]).at) - low)
        return done / whole if whole else 1.0

    def compare(self, former: FormerInput) -> InputChange | None:
        try:
            topic_ids = [OpaquePosition.from_plain(position).topic_id for position in former.positions.values()]
        except SourceError:
            return None
        return self._view.compared(topic_ids)

    def close(self) -> None:
        self._topic.close()

    @staticmethod
    def _low(state: TopicState, partition: int) -> int:
        return state.bounds[partition].low if partition in state.bounds else 0

    def _unread(self, state: TopicState, read: Mapping[int, int]) -> dict[int, int]:
        """Returns partition -> how many offsets this run has left to read, up to the end that `_ends` returns."""
        ends = self._ends(state)
        return {each: max(0, end - read.get(each, self._low(state, each))) for each, end in ends.items()}

    def _reason(self, state: TopicState, partition: int) -> str:
        """Returns why a partition cannot be read."""
        if partition not in state.bounds:
            return state.away.get(partition, f"brokers do not list partition {partition}")
        return (
            f"partition {partition} of topic {self._source.name!r} ended at {self._ends(state)[partition]} when the "
            f"run began, and ends at {state.bounds[partition].high} now: it has lost messages that were not read"
        )

    def _ends(self, state: TopicState) -> Mapping[int, int]:
        """Returns partition -> where this run stops reading: its current end, or in a finite run the first one seen."""
        ends = {partition: bounds.high for partition, bounds in state.bounds.items()}
        if self._is_continuous:
            return ends
        if self._first_ends is None:
            self._first_ends = dict.fromkeys(state.away, UNSEEN)
            self._first_ends |= ends
        for partition, end in self._first_ends.items():
            if end == UNSEEN:  # without a leader, it has received nothing meanwhile
                self._first_ends[partition] = ends.get(partition, UNSEEN)
        return self._first_ends
