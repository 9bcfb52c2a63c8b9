"""Cuts a topic into transactions by the bounds of its logs (driver). Asks brokers only through `Topic`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.kafka.offset_ranges import OffsetCut, cut_ranges
from coordinator.sources.kafka.starting_point import require_within, resumed
from coordinator.sources.kafka.topic import Topic, starting_offsets
from coordinator.sources.kafka.topic_view import TopicView, require_same
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import FailedException, SourceError
from state.troubles import Trouble

SAMPLE_EVERY = 100
"""Transactions between two samples of the size of messages."""


@dataclass(frozen=True, slots=True)
class CuttingRules:
    """How transactions are cut.

    Attributes:
        messages: most offsets per transaction.
        byte_count: approximate limit for the bytes of a transaction's values.
        linger_s: how long a small transaction waits for more messages, in a continuous run.
        is_continuous: whether to wait for new messages, or end where the logs ended at the start.
    """

    messages: int
    byte_count: int
    linger_s: float
    is_continuous: bool


class TopicCoordinator(SpoutCoordinator):
    """The coordinator of `KafkaTransactionalSpout`.

    Args:
        topic: the topic on its brokers; closed with the coordinator.
        source: the topic as it was declared.
        topology_id: for messages.
        rules: how to cut.
        message_bytes: (topic id, partition, offset) -> mean size of the messages there.
        clock: monotonic seconds.
        note_cut: called with each txid that is cut, and partition -> the offset where it ends.
    """

    def __init__(
        self,
        topic: Topic,
        source: KafkaTopic,
        topology_id: str,
        rules: CuttingRules,
        *,
        message_bytes: Callable[[str, int, int], float],
        clock: Callable[[], float],
        note_cut: Callable[[int, Mapping[int, int]], None],
    ) -> None:
        self._topic, self._source, self._name, self._topology_id = topic, source, source.name, topology_id
        self._view = TopicView(topic, source.name, clock, needs_all=True)
        self._rules, self._message_bytes, self._clock, self._note_cut = rules, message_bytes, clock, note_cut
        self._small_since: float | None = None
        self._positions: dict[int, int] = {}
        self._start: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._mean_bytes = 0.0
        self._cuts_to_sample = 0

    def compare(self, former: FormerInput) -> InputChange | None:
        if former.last is None:
            return InputChange() if not former.last_txid else None
        try:
            last = OffsetCut.from_plain(former.last)
        except SourceError:
            return None
        return self._view.compared([last.topic_id])

    def resume(self) -> None:
        last_txid, last = self.run_so_far.last_txid, self.run_so_far.last
        if last is None and last_txid:
            raise SourceError(
                f"topology {self._topology_id!r} has reached txid {last_txid}, but its position in topic "
                f"{self._name!r} is not stored: it was run with another kind of source before; drop it or take another "
                "topology id"
            ).about(Trouble.OTHER_SOURCE)
        state = self._view.look()
        self._ends = {partition: bounds.high for partition, bounds in state.bounds.items()}
        if last is None:
            self._start = starting_offsets(self._topic, self._name, state, self._source.starting_point)
        self._positions = self._after(last)
        for partition, bounds in state.bounds.items():
            require_within(self._name, partition, self._positions[partition], bounds)

    def is_ready(self) -> bool:
        if self._backlog() < self._rules.messages:
            self._look_again()
        backlog = self._backlog()
        if not backlog or not self._rules.is_continuous or backlog >= self._rules.messages:
            self._small_since = None
            return backlog > 0
        now = self._clock()
        if self._small_since is None:
            self._small_since = now
        return now - self._small_since >= self._rules.linger_s

    def initialize_transaction(self, txid: int, previous: Any) -> dict[str, Any]:
        self._positions = self._after(previous)
        self._look_again()
        state, ends, before = self._view.known(), self._readable(), self._positions
        if not self._backlog():
            raise FailedException(f"txid {txid} cannot be cut: topic {self._name!r} holds nothing more")
        at = {
            each: resumed(self._name, each, offset, state.bounds[each], self._source.on_gone)
            if each in state.bounds
            else offset
            for each, offset in before.items()
        }
        ranges = cut_ranges(at, ends, self._offset_limit(at, ends))
        cut = OffsetCut(state.topic_id, ranges, lost=sum(at[each] - offset for each, offset in before.items()))
        self._positions = cut.positions()
        self._small_since = None
        self._note_cut(txid, self._positions)
        return cut.to_plain()

    def is_exhausted(self) -> bool:
        if self._rules.is_continuous:
            return False
        self._positions = self._after(self.run_so_far.last)
        return not self._backlog()

    def is_finite(self) -> bool:
        return not self._rules.is_continuous

    def progress(self) -> float | None:
        if self._rules.is_continuous:
            return None
        low = {partition: bounds.low for partition, bounds in self._view.known().bounds.items()}
        whole = sum(max(0, end - low.get(partition, end)) for partition, end in self._ends.items())
        return 1.0 - self._backlog() / whole if whole else 1.0

    def estimated_bytes(self, metadata: Any) -> int:
        return round(OffsetCut.from_plain(metadata).offset_count * self._mean_bytes)

    def close(self) -> None:
        self._topic.close()

    def _backlog(self) -> int:
        ends = self._readable()
        return sum(max(0, ends.get(partition, 0) - at) for partition, at in self._positions.items())

    def _readable(self) -> Mapping[int, int]:
        """Returns partition -> the offset up to which this run may cut."""
        if not self._rules.is_continuous:
            return self._ends
        return {partition: bounds.high for partition, bounds in self._view.known().bounds.items()}

    def _after(self, last: Any) -> dict[int, int]:
        """Returns the position of each partition after a transaction, including partitions that have joined since."""
        state = self._view.known()
        positions = dict(self._start)
        if last is not None:
            try:
                stored = OffsetCut.from_plain(last)
            except SourceError as error:
                raise SourceError(f"stored metadata of topology {self._topology_id!r}: {error}") from None
            require_same(self._name, stored.topic_id, state.topic_id)
            positions = stored.positions()
        for partition, bounds in state.bounds.items():
            positions.setdefault(partition, bounds.low)
        return positions

    def _offset_limit(self, at: Mapping[int, int], ends: Mapping[int, int]) -> int:
        self._cuts_to_sample -= 1
        if self._cuts_to_sample < 0:
            fullest = max(at, key=lambda partition: ends.get(partition, 0) - at[partition])
            self._mean_bytes = self._message_bytes(self._view.known().topic_id, fullest, at[fullest])
            self._cuts_to_sample = SAMPLE_EVERY
        return max(1, min(self._rules.messages, int(self._rules.byte_count / max(1.0, self._mean_bytes))))

    def _look_again(self) -> None:
        """Asks brokers, unless it did so a moment ago; while they are away, known offsets may still be cut."""
        state = self._view.look_again(has_work=self._backlog() > 0)
        for partition, bounds in state.bounds.items():
            self._positions.setdefault(partition, bounds.low)
        self._view.require_ends(self._positions)
