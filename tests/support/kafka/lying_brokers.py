"""Brokers that change between any two calls: what the client library is given in place of a cluster.

Everything of ours above the library is real. A `Lie` strikes before a call is answered: the log grows, a partition
joins, retention deletes, the topic is made again, a leader goes or comes back; or it alters this one answer alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from coordinator.plain.kafka import kafka_spout
from coordinator.sources.kafka import opaque_spout, partition_reader, topic, transactional_spout, worker_readers
from tests.support.sources.growing_folder import Crash

TOPIC, SERVERS = "t", "lying:9092"
READ_AHEAD = 3
CALL_S = 0.01


class Lie(Enum):
    """What strikes before a call is answered; those after `CRASHES` concern this answer alone."""

    GROWS = "messages arrive"
    JOINS = "a partition joins"
    RETIRES = "retention deletes the older half of a log"
    LOSES_END = "a log loses its last messages"
    IS_REMADE = "the topic is deleted and made again"
    LEADER = "the leader of a partition goes, or comes back"
    CRASHES = "the process that asks dies"
    IS_SILENT = "there is no answer"
    IS_UNKNOWN = "the broker asked does not know the topic"
    LISTS_FEWER = "the broker asked lists one partition fewer"
    IS_BEHIND = "the broker asked knows an earlier end of each log"
    IS_ANOTHER = "a broker of another cluster answers, which has a topic of that name"


BENIGN = (Lie.GROWS, Lie.JOINS, Lie.LEADER, Lie.CRASHES, Lie.IS_SILENT, Lie.LISTS_FEWER, Lie.IS_BEHIND)
"""What no run has to end for."""


@dataclass(frozen=True, slots=True)
class Struck:
    """One lie of a plan: `after` so many calls since the one before, at the partition `place` points to."""

    after: int
    lie: Lie
    place: int = 0


@dataclass
class Log:
    """One partition; `high` is where it ends, `deleted` where retention has ever come to."""

    low: int = 0
    high: int = 0
    has_leader: bool = True


@dataclass
class LyingBrokers:
    """A cluster with one topic, its clock, and the plan of its lies.

    Attributes:
        plan: what strikes, in order.
        logs: partition -> its log.
        made: how often the topic was made, which is in its id and in every message.
        now_s: the time; every call takes some.
        struck: the lies so far.
        retired: (made, partition) -> below that retention has deleted.
    """

    plan: Sequence[Struck]
    logs: list[Log] = field(default_factory=lambda: [Log(high=7), Log(high=4)])
    made: int = 0
    now_s: float = 1000.0
    struck: list[Lie] = field(default_factory=list)
    retired: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._left = list(self.plan)
        self._calls = 0

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return int(self.now_s * 1e9)

    def monotonic_ns(self) -> int:
        return self.time_ns()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Has every client that is made meanwhile speak to these brokers, by their clock."""
        clocks = (transactional_spout, opaque_spout, kafka_spout)
        with ExitStack() as patched:
            patched.enter_context(patch.object(topic, "AdminClient", lambda options: LyingAdmin(self)))
            patched.enter_context(patch.object(partition_reader, "Consumer", lambda options: LyingConsumer(self)))
            for module in clocks:
                patched.enter_context(patch.object(module, "time", self))
            defaults = partition_reader.PartitionReader.__init__.__kwdefaults__
            patched.enter_context(patch.dict(defaults, clock=self.monotonic))
            patched.callback(forget_workers)
            yield

    def has_more(self) -> bool:
        """Whether a lie of the plan has not struck yet."""
        return bool(self._left)

    def settle(self) -> None:
        """No further lie; every partition has a leader, and some time passes."""
        self._left.clear()
        for log in self.logs:
            log.has_leader = True
        self.now_s += 60

    def asked(self) -> Lie | None:
        """Takes what strikes before this call; returns what concerns its answer."""
        self.now_s += CALL_S
        self._calls += 1
        answer = None
        while self._left and self._calls > self._left[0].after:
            due, self._calls = self._left.pop(0), 0
            self.struck.append(due.lie)
            answer = due.lie
            self._change(due.lie, due.place)
        return answer

    def _change(self, lie: Lie, place: int) -> None:
        number = place % len(self.logs)
        log = self.logs[number]
        match lie:
            case Lie.GROWS:
                log.high += 1 + place % 5
            case Lie.JOINS:
                self.logs.append(Log(high=place % 5))
            case Lie.RETIRES:
                log.low = (log.low + log.high + 1) // 2
                self.retired[self.made, number] = log.low
            case Lie.LOSES_END:
                log.high = max(log.low, log.high - 2)
            case Lie.IS_REMADE:
                self.made += 1
                self.logs = [Log(high=3 + (place + number) % 6) for number, _ in enumerate(self.logs)]
            case Lie.LEADER:
                log.has_leader = not log.has_leader
            case Lie.CRASHES:
                raise Crash


def forget_workers() -> None:
    """The process ends: what it has kept of its connections is gone."""
    worker_readers.worker_readers().close()


def failed(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def no_leader() -> KafkaException:
    return failed(KafkaError.LEADER_NOT_AVAILABLE)


class Answer:
    """A future that is done."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def result(self, timeout: float) -> Any:
        if isinstance(self._found, KafkaException):
            raise self._found
        return self._found


class LyingAdmin:
    """In place of an `AdminClient`."""

    def __init__(self, brokers: LyingBrokers) -> None:
        self._brokers = brokers

    def poll(self, timeout: float) -> int:
        return 0

    def describe_topics(self, topics: Any, *, request_timeout: float) -> dict[str, Answer]:
        (name,), lie, logs = topics.topic_names, self._brokers.asked(), self._brokers.logs
        made = self._brokers.made + (1000 if lie is Lie.IS_ANOTHER else 0)
        if lie is Lie.IS_SILENT:
            return {name: Answer(failed(KafkaError._TRANSPORT))}
        if lie is Lie.IS_UNKNOWN:
            return {name: Answer(failed(KafkaError.UNKNOWN_TOPIC_OR_PART))}
        listed = logs[:-1] if lie is Lie.LISTS_FEWER else logs
        partitions = [SimpleNamespace(id=number, leader=log.has_leader or None) for number, log in enumerate(listed)]
        topic_id = f"id{made}" if name == TOPIC else f"id of {name}"
        return {name: Answer(SimpleNamespace(topic_id=topic_id, partitions=partitions))}

    def list_offsets(
        self, asked: dict[TopicPartition, OffsetSpec], *, isolation_level: Any, request_timeout: float
    ) -> dict[TopicPartition, Answer]:
        lie = self._brokers.asked()
        return {place: Answer(self._offset(place.partition, spec, lie)) for place, spec in asked.items()}

    def _offset(self, partition: int, spec: OffsetSpec, lie: Lie | None) -> Any:
        logs = self._brokers.logs
        if lie is Lie.IS_SILENT or partition >= len(logs) or not logs[partition].has_leader:
            return no_leader()
        log, back = logs[partition], 2 if lie is Lie.IS_BEHIND else 0
        found = log.low if spec is OffsetSpec.earliest() else max(log.low, log.high - back)
        return SimpleNamespace(offset=found)


class LyingConsumer:
    """In place of a `Consumer` of one partition; reads some messages ahead, as the real one does."""

    def __init__(self, brokers: LyingBrokers) -> None:
        self._brokers = brokers
        self._ahead: list[Message] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        (place,) = partitions
        self._brokers.asked()
        self._partition, self._at, self._ahead, self._told_end = place.partition, place.offset, [], -1

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        lie = self._brokers.asked()
        if not self._ahead and lie not in (Lie.IS_SILENT, Lie.IS_BEHIND):
            self._fetch()
        taken, self._ahead = self._ahead[:num_messages], self._ahead[num_messages:]
        if not taken:
            self._brokers.now_s += max(0.0, timeout)
        return taken

    def close(self) -> None:
        """Nothing is open."""

    def _fetch(self) -> None:
        made, logs = self._brokers.made, self._brokers.logs
        if self._partition >= len(logs) or not logs[self._partition].has_leader:
            return
        log = logs[self._partition]
        if not log.low <= self._at <= log.high:
            self._ahead = [self._error(KafkaError._AUTO_OFFSET_RESET, self._at)]
            return
        until = min(log.high, self._at + READ_AHEAD)
        for offset in range(self._at, until):
            value = b"%d/%d/%d" % (made, self._partition, offset)
            self._ahead.append(Message(topic=TOPIC, partition=self._partition, offset=offset, value=value))
        self._at = until
        if until == log.high and self._told_end != until:
            self._told_end = until
            self._ahead.append(self._error(KafkaError._PARTITION_EOF, until))

    def _error(self, code: int, offset: int) -> Message:
        return Message(topic=TOPIC, partition=self._partition, offset=offset, error=KafkaError(code))
