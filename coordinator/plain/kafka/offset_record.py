"""The stored offset of a partition, and where the next run begins. Pure.

The text is JSON, like Storm's in ZooKeeper: ``{"topology": {"id", "name"}, "offset", "partition", "broker", "topic"}``.
It also has the topic's id, to recognise a topic that was deleted and created again.
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
    """The record of a partition that one run leaves for the next.

    Attributes:
        instance_id: the topology's instance that wrote it.
        topology_name: the topology id, as users know it.
        offset: where the next run begins.
        partition, topic, topic_id, broker: the partition, its topic and its brokers.
        is_start: whether nothing was read yet: the partition existed when the first run began, and begins here.
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
        """Returns the record as text, to be stored."""
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
        """Restores a record from `to_text`.

        Raises:
            SourceError: the text is not a record of a Kafka spout.
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
    """How a run continues from the offsets of earlier runs.

    Attributes:
        instance_id: this instance of the topology.
        force_from_start: whether offsets of another instance are ignored.
        max_behind: if the offset is further behind the log's end, a run begins at the end; None for no limit.
    """

    instance_id: str
    force_from_start: bool
    max_behind: int | None

    def counts(self, record: OffsetRecord | None) -> bool:
        """Returns whether a run continues from the stored record of a partition."""
        return record is not None and not (self.force_from_start and record.instance_id != self.instance_id)

    def first_offset(self, record: OffsetRecord, topic_id: str, bounds: Bounds, on_gone: str) -> int:
        """Returns the first offset to emit; offsets between the stored one and it are left out.

        Args:
            record: the stored record that counts.
            topic_id: the brokers' id of the topic.
            bounds: bounds of the partition's log.
            on_gone: what to do about offsets that are gone from the log.

        Raises:
            SourceError: the topic was created again, or the offset is gone and the policy is to fail.
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
    """Stores the records of partitions (where the spout task runs)."""

    def load(self, field: str) -> str | None:
        """Returns the record of a partition, None if there is none."""

    def save(self, texts: Mapping[str, str]) -> None:
        """Replaces the records of partitions, all of them or none."""

    def close(self) -> None:
        """Closes its connections."""
