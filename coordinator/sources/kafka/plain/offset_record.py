"""How far a partition is, as it is stored between runs.

The text is JSON, like Storm's in ZooKeeper: ``{"topology": {"id", "name"}, "offset", "partition", "broker", "topic"}``,
and ours has the topic's id, by which one that was deleted and made again is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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


class OffsetRecords(Protocol):
    """Where records are kept (where the spout task runs)."""

    def load(self, field: str) -> str | None:
        """The record of a partition, None if there is none."""

    def save(self, texts: Mapping[str, str]) -> None:
        """Replaces the records of partitions, all or none."""

    def close(self) -> None:
        """Closes its connections."""
