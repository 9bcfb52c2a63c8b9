"""Where reading begins, and what to do if the log no longer has a position. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from state.errors import SourceError, TopologyError
from state.values.whole import is_whole

Start: TypeAlias = str | dt.datetime | Mapping[int, int]
"""``"earliest"``, ``"latest"``, a time with its zone (or its ISO text), or partition -> offset."""

EARLIEST, LATEST = "earliest", "latest"
LOST_COUNTER = "lost_offsets"


class OnGone(StrEnum):
    """What to do about offsets that were deleted before they were first read; see `KafkaTopic`."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets that a partition's log holds.

    Attributes:
        low: the first offset that is still there.
        high: the offset after the last one that may be read.
        written: the offset after the last one written; with committed reads, offsets of open Kafka transactions lie
            between `high` and it. Uncommitted reads may have come this far.
    """

    low: int
    high: int
    written: int = 0

    @property
    def end(self) -> int:
        """The highest position that a reader may have reached."""
        return max(self.high, self.written)


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Where the first transaction begins; partitions that join later begin with their first message.

    Attributes:
        place: "earliest" or "latest", if no time and no offsets are given.
        timestamp_ms: begin with the first message of this time or later, in milliseconds since the epoch.
        offsets: partition -> offset; any other partition begins with its first message.
    """

    place: str = EARLIEST
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None

    @classmethod
    def of(cls, given: Start) -> StartingPoint:
        """Parses the user's `Start`.

        Raises:
            TopologyError: the argument is not a `Start`.
        """
        if isinstance(given, str) and given in (EARLIEST, LATEST):
            return cls(given)
        if isinstance(given, str):
            try:
                given = dt.datetime.fromisoformat(given)
            except ValueError:
                raise _unknown(given) from None
        if isinstance(given, dt.datetime):
            if given.tzinfo is None:
                raise TopologyError(f"start={given} has no time zone; give one, as in 2026-01-31T12:00:00+00:00")
            timestamp_ms = round(given.timestamp() * 1000)
            return cls(timestamp_ms=timestamp_ms) if timestamp_ms > 0 else cls()  # no message is from before 1970
        if isinstance(given, Mapping) and all(is_whole(key, 0) and is_whole(at, 0) for key, at in given.items()):
            return cls(offsets=dict(given))
        raise _unknown(given)

    def first_offsets(
        self,
        topic: str,
        bounds: Mapping[int, Bounds],
        *,
        away: Collection[int] = (),
        at_time: Mapping[int, int | None] | None = None,
    ) -> dict[int, int]:
        """Returns the first offset of each partition that exists when the topology first starts.

        Args:
            topic: name of the topic, for messages.
            bounds: the bounds of each log.
            away: further partitions, whose logs cannot be asked.
            at_time: partition -> its first offset of `timestamp_ms` or later; None if there is none yet.

        Raises:
            SourceError: an offset is given for a partition that does not exist, or lies beyond the end of its log.
        """
        given = self.offsets or {}
        for partition, at in sorted(given.items()):
            if partition in away:
                continue
            if partition not in bounds:
                count = len(bounds) + len(away)
                raise SourceError(
                    f"start names partition {partition}, but topic {topic!r} has {count} partitions; leave it out"
                )
            if at > bounds[partition].high:
                raise SourceError(
                    f"start gives offset {at} of partition {partition} of topic {topic!r}, but its log ends at "
                    f"{bounds[partition].high}: give an offset up to there, or 'latest'"
                )
        if self.timestamp_ms is not None:
            first = {each: found for each, found in (at_time or {}).items() if found is not None}
            return {each: first.get(each, held.high) for each, held in bounds.items()}
        if self.place == LATEST:
            return {each: held.high for each, held in bounds.items()}
        return {each: given.get(each, held.low) for each, held in bounds.items()}


def resumed(topic: str, partition: int, at: int, bounds: Bounds, on_gone: str) -> int:
    """Returns the offset where reading of a partition continues; any offsets before it that were not read are lost.

    Raises:
        SourceError: the position is gone from the log and the policy is to fail, or it is beyond the log's end.
    """
    require_within(topic, partition, at, bounds)
    if at >= bounds.low:
        return at
    if on_gone == OnGone.FAIL:
        raise SourceError(
            f"offsets {at} to {bounds.low - 1} of partition {partition} of topic {topic!r} are gone from the log; "
            "set on_gone='earliest'; they were not read yet: the topic keeps messages for a shorter time "
            "than the run lagged; 'earliest' continues with what is left and counts what is lost, 'latest' leaves out "
            "that too"
        )
    return bounds.low if on_gone == OnGone.EARLIEST else bounds.high


def require_within(topic: str, partition: int, at: int, bounds: Bounds) -> None:
    """Refuses a position beyond the end of the log.

    Raises:
        SourceError: the position lies beyond the end.
    """
    if at > bounds.end:
        raise SourceError(
            f"partition {partition} of topic {topic!r} was read to offset {at}, but its log ends at {bounds.end}: it "
            "has lost messages; drop the topology and start over, or take another topology id"
        )


def _unknown(given: object) -> TopologyError:
    return TopologyError(
        f"start={given!r} is not a place to start; give 'earliest', 'latest', a time with its zone such as "
        "'2026-01-31T12:00:00+00:00', or a mapping from partitions to offsets"
    )
