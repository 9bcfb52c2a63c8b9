"""Where the plain spout begins with a partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.sources.kafka.plain.offset_record import OffsetRecord
from coordinator.sources.kafka.starting_point import Bounds, OnGone, Resumed, resumed
from state.errors import SourceError


@dataclass(frozen=True, slots=True)
class BeginRules:
    """How a run continues what another left.

    Attributes:
        instance_id: of this topology's instance.
        force_from_start: whether what another instance has stored is set aside.
        max_behind: further behind the log's end than this, a run leaves out what lies between; None never does.
        on_gone: what becomes of offsets that are gone.
    """

    instance_id: str
    force_from_start: bool
    max_behind: int | None
    on_gone: OnGone

    def counts(self, record: OffsetRecord | None) -> bool:
        """Whether what is stored of a partition is continued."""
        return record is not None and not (self.force_from_start and record.instance_id != self.instance_id)


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """A partition.

    Attributes:
        topic: its name.
        topic_id: the brokers' id of it.
        partition: the number.
    """

    topic: str
    topic_id: str
    partition: int


def first_offset(place: TopicPlace, bounds: Bounds, *, record: OffsetRecord | None, rules: BeginRules) -> Resumed:
    """The first offset to emit, and how many before it are left out.

    Args:
        place: what is read.
        bounds: what its log holds.
        record: what is stored, where the first run began or how far another one came; None if it joined since.
        rules: how to continue.

    Raises:
        SourceError: the topic is another one, or the offset is gone and the policy is to fail.
    """
    if record is None or not rules.counts(record):
        return Resumed(bounds.low)
    if record.topic_id != place.topic_id:
        raise SourceError(
            f"topic {place.topic!r} was deleted and made again: its id was {record.topic_id} and is {place.topic_id} "
            "now, and offsets of the one mean nothing in the other; give force_from_start=True or another spout_id"
        )
    if rules.max_behind is not None and not record.is_start and bounds.high - record.offset > rules.max_behind:
        return Resumed(bounds.high, bounds.high - record.offset)
    return resumed(place.topic, place.partition, record.offset, bounds, rules.on_gone)
