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


def first_offset(
    place: TopicPlace, bounds: Bounds, *, start: int, record: OffsetRecord | None, rules: BeginRules
) -> Resumed:
    """The first offset to emit, and how many before it are left out.

    Args:
        place: what is read.
        bounds: what its log holds.
        start: where it begins if nothing is stored.
        record: what is stored.
        rules: how to continue.

    Raises:
        SourceError: the topic is another one, or the offset is gone and the policy is to fail.
    """
    is_forced = record is not None and rules.force_from_start and record.instance_id != rules.instance_id
    if record is None or is_forced:
        return resumed(place.topic, place.partition, start, bounds, rules.on_gone)
    if record.topic_id != place.topic_id:
        raise SourceError(
            f"topic {place.topic!r} was deleted and made again: its id was {record.topic_id} and is {place.topic_id} "
            "now, and offsets of the one mean nothing in the other; give force_from_start=True or another spout_id"
        )
    if rules.max_behind is not None and bounds.high - record.offset > rules.max_behind:
        return Resumed(bounds.high, bounds.high - record.offset)
    return resumed(place.topic, place.partition, record.offset, bounds, rules.on_gone)
