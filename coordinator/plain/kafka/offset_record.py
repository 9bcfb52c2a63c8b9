"""How far a partition is, as it is stored between runs, and where the next run begins by that. Pure.

The text is JSON, like Storm's in ZooKeeper: ``{"topology": {"id", "name"}, "offset", "partition", "broker", "topic"}``,
and ours has the topic's id, by which one that was deleted and made again is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from coordinator.sources.kafka.starting_point import Bounds, resumed
from state.errors import SourceError


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """What one run leaves for the next.

    Attributes:
        instance_id: of the topology's instance that wrote it.
        topology_name: its id, as users know it.
        offset: where the next run begins.
        partition, topic, topic_id, broker: what was read, and from where.
        is_start: nothing was read yet: the partition was there when the first run began, and begins here.
    """

    instance_id: str
    topology_name: str
    offset: int
    partition: int
    topic: str
    topic_id: str
    broker: str
    is_start: bool = False

    def to_text(self) -> str:
        """As it is stored."""
        plain = {
            "topology": {"id": self.instance_id, "name": self.topology_name},
            "offset": self.offset,
            "partition": self.partition,
            "broker": self.broker,
            "topic": self.topic,
            "topic_id": self.topic_id,
        }
        return json.dumps(plain | {"is_start": True} if self.is_start else plain)

    @classmethod
    def from_text(cls, text: str) -> OffsetRecord:
        """Inverse of `to_text`.

        Raises:
            SourceError: it is not a record of ours.
        """
        try:
            found: Any = json.loads(text)
        except ValueError:
            found = None
        match found:
            case {
                "topology": {"id": str(instance_id), "name": str(name)},
                "offset": int(offset),
                "partition": int(partition),
                "broker": str(broker),
                "topic": str(topic),
                "topic_id": str(topic_id),
            } if offset >= 0 and partition >= 0:
                return cls(instance_id, name, offset, partition, topic, topic_id, broker, "is_start" in found)
        raise SourceError(
            f"stored offset {text!r:.200} is not a record of a Kafka spout; delete it to start over, or give another "
            "spout_id"
        )


@dataclass(frozen=True, slots=True)
class ResumeRules:
    """How a run continues what another left.

    Attributes:
        instance_id: of this topology's instance.
        force_from_start: whether what another instance has stored is set aside.
        max_behind: further behind the log's end than this, a run leaves out what lies between; None never does.
    """

    instance_id: str
    force_from_start: bool
    max_behind: int | None

    def counts(self, record: OffsetRecord | None) -> bool:
        """Returns whether the stored position of a partition is continued."""
        return record is not None and not (self.force_from_start and record.instance_id != self.instance_id)

    def first_offset(self, record: OffsetRecord, topic_id: str, bounds: Bounds, on_gone: str) -> int:
        """Returns the first offset to emit; those from the stored one up to it are left out.

        Args:
            record: what is stored and counts: where the first run began, or how far another one came.
            topic_id: the brokers' id of the topic.
            bounds: what the log of the partition holds.
            on_gone: what to do about offsets that are gone from it.

        Raises:
            SourceError: the topic is another one, or the offset is gone and the policy is to fail.
        """
        if record.topic_id != topic_id:
            raise SourceError(
                f"topic {record.topic!r} was deleted and made again: its id was {record.topic_id} and is {topic_id} "
                "now, and offsets of the one mean nothing in the other; give force_from_start=True or another spout_id"
            )
        behind = bounds.high - record.offset
        if self.max_behind is not None and not record.is_start and behind > self.max_behind:
            return bounds.high
        return resumed(record.topic, record.partition, record.offset, bounds, on_gone)


class OffsetRecords(Protocol):
    """Where records are kept (where the spout task runs)."""

    def load(self, field: str) -> str | None:
        """Returns the record of a partition, None if there is none."""

    def save(self, texts: Mapping[str, str]) -> None:
        """Replaces the records of partitions, all or none."""

    def close(self) -> None:
        """Closes its connections."""
