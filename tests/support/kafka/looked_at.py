"""A topic in memory, for the coordinators that look at topics."""

from __future__ import annotations

from coordinator.sources.kafka.starting_point import Bounds
from coordinator.sources.kafka.topic import TopicState
from state.errors import FailedException


class ScriptedTopic:
    """A topic whose logs hold what the test says, and whose partitions are away; counts how often it is looked at."""

    def __init__(self, **highs):
        self.bounds = {int(name[1:]): Bounds(0, high) for name, high in highs.items()}
        self.name, self.looks, self.is_away, self.is_closed = "id", 0, False, False
        self.away: dict[int, str] = {}

    def look(self):
        self.looks += 1
        if self.is_away:
            raise FailedException("no broker answers")
        bounds = {partition: held for partition, held in self.bounds.items() if partition not in self.away}
        return TopicState(self.name, bounds, dict(self.away))

    def topic_id(self):
        return self.look().topic_id

    def offsets_at(self, timestamp_ms, partitions):
        return dict.fromkeys(partitions)

    def close(self):
        self.is_closed = True
