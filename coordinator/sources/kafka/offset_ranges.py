"""Which offsets belong to a transaction, and how that is stored: a cut of all partitions, or a position in one.

Pure. A range goes from its first offset to the offset after its last. Not every offset holds a message: compaction
removes some messages, and markers of Kafka's own transactions occupy some offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.errors import SourceError
from state.troubles import Trouble
from state.values.whole import is_whole


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Consecutive offsets of one partition.

    Attributes:
        first: the first offset.
        next: the offset after the last; equal to `first` in an empty range.
    """

    first: int
    next: int

    @property
    def count(self) -> int:
        """How many offsets the range has, with or without a message."""
        return self.next - self.first


@dataclass(frozen=True, slots=True)
class OffsetCut:
    """The metadata of a transaction: a range of every partition of the topic, perhaps an empty one.

    Attributes:
        topic_id: the broker's id of the topic; a topic that is deleted and created again has another id.
        ranges: partition -> its range.
        lost: number of offsets before the ranges that were gone from the log and are skipped, by the user's policy.
    """

    topic_id: str
    ranges: Mapping[int, OffsetRange] = field(default_factory=dict)
    lost: int = 0

    @property
    def offset_count(self) -> int:
        """How many offsets all ranges have together."""
        return sum(part.count for part in self.ranges.values())

    def positions(self) -> dict[int, int]:
        """Returns partition -> the offset where the next transaction begins."""
        return {partition: part.next for partition, part in self.ranges.items()}

    def to_plain(self) -> dict[str, Any]:
        """Returns the cut as plain data, to be stored."""
        ranges = {partition: [part.first, part.next] for partition, part in sorted(self.ranges.items())}
        return {"kafka_topic_id": self.topic_id, "ranges": ranges, "lost": self.lost}

    @classmethod
    def from_plain(cls, plain: Any) -> OffsetCut:
        """Restores a cut from `to_plain`.

        Raises:
            SourceError: the data is not the metadata of a Kafka topic.
        """
        match plain:
            case {"kafka_topic_id": str(topic_id), "ranges": dict(stored), "lost": int(lost)}:
                ranges = {partition: _range(stored_range) for partition, stored_range in stored.items()}
                if all(is_whole(partition, 0) for partition in ranges):
                    return cls(topic_id, ranges, lost)
        raise SourceError(
            f"metadata {plain!r:.100} does not describe offsets of a Kafka topic: the topology was run with another "
            "source before; drop it or take another topology id"
        ).about(Trouble.OTHER_SOURCE)


def _range(stored: Any) -> OffsetRange:
    match stored:
        case [int(first), int(after)] if 0 <= first <= after:
            return OffsetRange(first, after)
    raise SourceError(f"stored range {stored!r:.100} is not two ascending offsets; what is stored was altered")


@dataclass(frozen=True, slots=True)
class OpaquePosition:
    """Where the next transaction begins in a partition.

    Attributes:
        topic_id: the brokers' id of the topic.
        at: the offset.
        since_ms: replaces the offset for a partition that was away when the topology began: it begins with its first
            message of this time or later, in milliseconds since the epoch.
    """

    topic_id: str
    at: int = 0
    since_ms: int | None = None

    def to_plain(self) -> list[Any]:
        """Returns the position as plain data, to be stored."""
        return [self.topic_id, self.at] if self.since_ms is None else [self.topic_id, {"since_ms": self.since_ms}]

    @classmethod
    def from_plain(cls, plain: Any) -> OpaquePosition:
        """Restores a position from `to_plain`.

        Raises:
            SourceError: the data is not a position in a Kafka topic.
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


def words_of(metadata: Any) -> list[str]:
    """Returns the offsets that a transaction read, in words, with a line for each partition it read from.

    Args:
        metadata: a cut, or the position where an opaque spout stopped in one partition.

    Raises:
        SourceError: the metadata is not that of a Kafka topic.
    """
    if isinstance(metadata, list):
        position = OpaquePosition.from_plain(metadata)
        if position.since_ms is None:
            return [f"up to and without offset {position.at:,}"]
        return [f"nothing yet; it begins at {position.since_ms:,} ms since the epoch"]
    cut = OffsetCut.from_plain(metadata)
    words = [
        f"partition {partition}: offsets {part.first:,} to {part.next - 1:,}"
        for partition, part in sorted(cut.ranges.items())
        if part.count
    ]
    lost = [f"{cut.lost:,} offsets before these were gone from the log"] if cut.lost else []
    return [*words, *lost] or ["nothing"]


def cut_ranges(positions: Mapping[int, int], ends: Mapping[int, int], offset_limit: int) -> dict[int, OffsetRange]:
    """Takes offsets up to a limit, evenly from the partitions that have them.

    Args:
        positions: partition -> offset to begin at.
        ends: partition -> offset to end at; nothing is taken from a partition without one.
        offset_limit: how many offsets to take at most; at least 1.
    """
    left = {partition: max(0, ends.get(partition, 0) - at) for partition, at in positions.items()}
    taken: dict[int, int] = {}
    budget = offset_limit
    waiting = sorted(left, key=lambda partition: (left[partition], partition))
    for number, partition in enumerate(waiting):  # the shortest first: the others share what it leaves
        share = -(-budget // (len(waiting) - number))
        taken[partition] = min(left[partition], share)
        budget -= taken[partition]
    return {
        partition: OffsetRange(positions[partition], positions[partition] + taken[partition])
        for partition in sorted(positions)
    }


def share_of(ranges: Mapping[int, OffsetRange], task_index: int, task_count: int) -> Iterator[tuple[int, OffsetRange]]:
    """Yields one task's share of a batch's ranges; the shares of all tasks cover the batch without overlap.

    A task keeps its partitions from one transaction to the next, so that it continues where it stopped. With more
    tasks than partitions, the tasks of one partition divide each of its ranges.
    """
    partitions = sorted(ranges)
    for number, partition in enumerate(partitions):
        if task_count > len(partitions):
            readers = range(number, task_count, len(partitions))
        else:
            readers = range(number % task_count, number % task_count + 1)
        if task_index not in readers:
            continue
        whole, part, parts = ranges[partition], readers.index(task_index), len(readers)
        first = whole.first + whole.count * part // parts
        after = whole.first + whole.count * (part + 1) // parts
        if first < after:
            yield partition, OffsetRange(first, after)
