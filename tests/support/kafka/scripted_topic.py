"""A topic, a clock and a store in memory, for the plain spout; what tests change, the spout finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinator.plain.kafka.kafka_spout import KafkaSpout
from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.kafka.partition_reader import OutOfRangeError
from coordinator.sources.kafka.starting_point import Bounds
from coordinator.sources.kafka.topic import TopicState
from tests.support.kafka.messages import context


@dataclass(frozen=True, slots=True)
class ScriptedMessage:
    at: int
    content: bytes | None

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes | None:
        return self.content

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return (1, self.at)


@dataclass
class ScriptedLog:
    """One partition: offset -> value; offsets between `low` and `high` without one hold no message."""

    values: dict[int, bytes | None] = field(default_factory=dict)
    low: int = 0
    high: int = 0

    def append(self, *values: bytes | None) -> None:
        for value in values:
            self.values[self.high] = value
            self.high += 1

    def delete_before(self, low: int) -> None:
        self.low = low
        self.values = {at: value for at, value in self.values.items() if at >= low}


class ScriptedReader:
    def __init__(self, log: ScriptedLog) -> None:
        self._log, self._at = log, 0

    def messages_from(self, first: int, limit: int, *, wait_s: float) -> list[ScriptedMessage]:
        if not self._log.low <= first <= self._log.high:
            raise OutOfRangeError
        found = [ScriptedMessage(at, value) for at, value in sorted(self._log.values.items()) if at >= first][:limit]
        self._at = found[-1].at + 1 if len(found) == limit else self._log.high
        return found

    def position(self) -> int:
        return self._at

    def needs_no_wait(self, offset: int) -> bool:
        return offset >= self._log.high


class World:
    """What the spout works with: the topic on its brokers, the store and the clock.

    Attributes:
        logs: partition -> its log.
        stored: field -> record.
        saves: how often records were stored.
        ms: the time.
        unlisted: partitions that brokers do not list just now.
        away: partition -> why its leader does not answer.
    """

    def __init__(self, partitions: int = 1) -> None:
        self.logs = {partition: ScriptedLog() for partition in range(partitions)}
        self.stored: dict[str, str] = {}
        self.saves = self.ms = 0
        self.topic_id = "first"
        self.unlisted: set[int] = set()
        self.away: dict[int, str] = {}

    def look(self) -> TopicState:
        listed = {each: Bounds(log.low, log.high) for each, log in self.logs.items() if each not in self.unlisted}
        return TopicState(self.topic_id, {each: listed[each] for each in listed if each not in self.away}, self.away)

    def offsets_at(self, timestamp_ms: int, partitions: Any) -> dict[int, int | None]:
        return dict.fromkeys(partitions)

    def load(self, field: str) -> str | None:
        return self.stored.get(field)

    def save(self, texts: dict[str, str]) -> None:
        self.saves += 1
        self.stored |= texts

    def close(self) -> None:
        pass


class ScriptedKafkaTopic(KafkaTopic):
    """A topic whose brokers are a world."""

    _world: World

    def __init__(self, world: World, **options: Any) -> None:
        super().__init__("nowhere:9092", "t", **options)
        object.__setattr__(self, "_world", world)

    def connect(self) -> Any:
        return self._world

    def reader(self, topic_id: str, partition: int) -> Any:
        return ScriptedReader(self._world.logs[partition])


class ScriptedSpout(KafkaSpout):
    """A spout whose store and clock are a world's."""

    def __init__(self, world: World, **options: Any) -> None:
        of_topic = {name: options.pop(name) for name in [*options] if name in KafkaTopic.__dataclass_fields__}
        super().__init__(ScriptedKafkaTopic(world, **of_topic), redis="unix:///nowhere", **options)
        self._world = world

    def _offset_records(self, topology_id: str) -> Any:
        return self._world

    def _now_ms(self) -> int:  # type: ignore[override] # the world's
        return self._world.ms


class Emissions:
    """The collector: what was emitted, in order."""

    def __init__(self) -> None:
        self.emitted: list[tuple[list[Any], Any, str]] = []

    def emit(self, values: Any, message_id: Any = None, stream_id: str = "default") -> list[int]:
        self.emitted.append((list(values), message_id, stream_id))
        return [1]

    def emit_all(self, rows: Any, message_ids: Any = (), stream_id: str = "default") -> None:
        for values, message_id in zip(rows, message_ids, strict=True):
            self.emit(values, message_id, stream_id)

    def emit_direct(self, task_id: int, values: Any, message_id: Any = None, stream_id: str = "default") -> None:
        raise AssertionError("no source emits directly")


class Played:
    """A spout on a world, played by hand: task `task_index` of `task_count`."""

    def __init__(self, world: World, task_index: int = 0, task_count: int = 1, **options: Any) -> None:
        self.world = world
        self.collector = Emissions()
        options.setdefault("instance_id", "one")
        self.spout = ScriptedSpout(world, **options)
        self.spout.open({}, context(task_index, task_count), self.collector)

    def ask(self, times: int = 1) -> list[Any]:
        """First values of what the next calls emit."""
        before = len(self.collector.emitted)
        for _ in range(times):
            self.spout.next_tuple()
        return [values[0] for values, _, _ in self.collector.emitted[before:]]

    def ids(self) -> dict[Any, Any]:
        """First value -> the id it was last emitted with."""
        return {values[0]: tuple_id for values, tuple_id, _ in self.collector.emitted}

    def ack(self, *values: Any) -> None:
        for value in values:
            self.spout.ack(self.ids()[value])

    def fail(self, *values: Any) -> None:
        for value in values:
            self.spout.fail(self.ids()[value])

    def completed(self, partition: int = 0) -> int:
        return self.spout.statistics()[partition]["completed_to"]
