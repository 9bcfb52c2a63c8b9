"""Asks brokers about a topic (driver): its id, its partitions, and the bounds of their logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from coordinator.sources.kafka.broker_errors import AbsentTopicError, ClientTrouble, failure_of, refused_options
from coordinator.sources.kafka.client_settings import READER_DEFAULTS, ClientSettings
from coordinator.sources.kafka.starting_point import Bounds, StartingPoint
from state.errors import FailedException, SourceError
from state.troubles import Trouble

ASK_TIMEOUT_S = 5.0
"""The longest wait for an answer; the run does nothing else meanwhile."""
ABSENT_S = 30.0
"""A known topic counts as deleted if brokers deny it for this long; just after their start they may deny any topic."""
_CONSUMER_ONLY = ("auto.", "fetch.", "heartbeat.", "max.partition.", "max.poll.", "queued.", "session.", "check.crcs")


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic at one moment.

    Attributes:
        topic_id: the broker's id of the topic.
        bounds: partition -> the bounds of its log; with committed reads, up to the first open transaction.
        away: partition -> why its log is unknown, for partitions whose leader does not answer.
    """

    topic_id: str
    bounds: Mapping[int, Bounds]
    away: Mapping[int, str] = field(default_factory=dict)

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, whether they answer or not."""
        return max((*self.bounds, *self.away), default=-1) + 1

    def of(self, partition: int) -> Bounds:
        """Returns the bounds of one partition.

        Raises:
            FailedException: the partition is away, or not listed at the moment.
        """
        if partition not in self.bounds:
            raise FailedException(self.away.get(partition, f"brokers do not list partition {partition}"))
        return self.bounds[partition]

    def whole(self) -> TopicState:
        """Returns this state if every partition is known.

        Raises:
            FailedException: a partition is away, or none is listed, as just after the topic was created.
        """
        if self.away:
            raise FailedException(self.away[min(self.away)])
        if not self.bounds:
            raise FailedException(f"brokers list no partition yet of the topic with id {self.topic_id}")
        return self


class Topic(Protocol):
    """A topic as a spout's coordinator sees it (driver); a test scripts it."""

    def look(self) -> TopicState:
        """Asks for the state of the topic.

        Raises:
            FailedException: the brokers do not answer, or all partitions are away; worth asking again.
            SourceError: the topic does not exist, or may not be read.
        """

    def topic_id(self) -> str:
        """Asks only for the id; raises the errors of `look`."""

    def offsets_at(self, timestamp_ms: int, partitions: Iterable[int]) -> dict[int, int | None]:
        """Returns partition -> its first offset of that time or later, or None; raises the errors of `look`."""

    def close(self) -> None:
        """Closes its connections."""


def starting_offsets(topic: Topic, name: str, state: TopicState, start: StartingPoint) -> dict[int, int]:
    """Returns the first offsets of the partitions that are not away, for a new topology.

    Raises:
        FailedException: the brokers do not answer.
        SourceError: the starting point names a partition or offset that does not exist.
    """
    at_time = None if start.timestamp_ms is None else topic.offsets_at(start.timestamp_ms, state.bounds)
    return start.first_offsets(name, state.bounds, away=state.away, at_time=at_time)


class BrokerTopic:
    """A topic on real brokers; connects at the first request (driver, and executors for its id).

    Args:
        settings: how brokers are reached.
        name: name of the topic.
        reads_committed: whether open and aborted transactions are left out.
        timeout_s: longest wait for one answer.
        was_there: whether the topic was seen before. Then brokers that do not know it, as just after their start, are
            asked again, for `ABSENT_S`. The first answer sets it.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: ClientSettings,
        name: str,
        *,
        reads_committed: bool,
        timeout_s: float = ASK_TIMEOUT_S,
        was_there: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._name, self._timeout_s, self._was_there = settings, name, timeout_s, was_there
        self._isolation = IsolationLevel.READ_COMMITTED if reads_committed else IsolationLevel.READ_UNCOMMITTED
        self._clock, self._absent_since = clock, float("inf")
        self._client: AdminClient | None = None
        self._trouble = ClientTrouble()

    def look(self) -> TopicState:
        found = self._describe()
        away = {
            each.id: f"partition {each.id} of topic {self._name!r} has no leader at {self._settings.servers}"
            for each in found.partitions
            if each.leader is None
        }
        led = [each.id for each in found.partitions if each.id not in away]
        low = self._offsets(led, OffsetSpec.earliest(), away)  # type: ignore[no-untyped-call] # theirs
        high = self._offsets(low, OffsetSpec.latest(), away)  # type: ignore[no-untyped-call] # theirs
        written = high
        if self._isolation is IsolationLevel.READ_COMMITTED:
            written = self._offsets(high, OffsetSpec.latest(), {}, IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call] # theirs
        bounds = {
            partition: Bounds(low[partition], max(low[partition], end), written.get(partition, end))
            for partition, end in high.items()
        }
        state = TopicState(str(found.topic_id), bounds, away)
        return state if bounds else state.whole()

    def topic_id(self) -> str:
        return str(self._describe().topic_id)

    def offsets_at(self, timestamp_ms: int, partitions: Iterable[int]) -> dict[int, int | None]:
        away: dict[int, str] = {}
        found = self._offsets(partitions, OffsetSpec.for_timestamp(timestamp_ms), away)
        if away:
            raise FailedException(away[min(away)])
        return {partition: None if offset < 0 else offset for partition, offset in found.items()}

    def close(self) -> None:
        self._client = None  # it has no close(); dropping the last reference ends it

    def _describe(self) -> Any:
        answers = self._ask(lambda client: client.describe_topics(TopicCollection([self._name]), **self._within()))
        try:
            found = self._answer(answers[self._name], absent_is_lasting=True)
        except AbsentTopicError as error:
            self._absent_since = min(self._absent_since, self._clock())
            if not self._was_there:
                raise
            if self._clock() - self._absent_since < ABSENT_S:
                raise FailedException(str(error)) from None
            raise SourceError(
                f"topic {self._name!r} was deleted while it was read: brokers {self._settings.servers} have not had "
                f"it for {ABSENT_S:g} s, so the rest of it is lost, and stored offsets mean nothing in a new topic of "
                "that name; drop the topology and start over, or take another topology id"
            ).about(Trouble.INPUT_GONE) from None
        self._was_there, self._absent_since = True, float("inf")
        return found

    def _offsets(
        self,
        partitions: Iterable[int],
        spec: OffsetSpec,
        away: dict[int, str],
        isolation: IsolationLevel | None = None,
    ) -> dict[int, int]:
        """Returns partition -> offset; partitions without an answer are added to `away`."""
        asked = {TopicPartition(self._name, partition): spec for partition in partitions}
        if not asked:
            return {}
        answers = self._ask(
            lambda client: client.list_offsets(
                asked, isolation_level=self._isolation if isolation is None else isolation, **self._within()
            )
        )
        found = {}
        for place, answer in answers.items():
            try:
                found[place.partition] = self._answer(answer).offset
            except FailedException as error:
                away[place.partition] = str(error)
        return found

    def _reason(self, error: KafkaException) -> KafkaError | KafkaException:
        """Returns the reason for an error: after a timeout, the last connection error of the client, if any."""
        inner: KafkaError = error.args[0]
        if self._client is not None and inner.code() == KafkaError._TIMED_OUT:  # noqa: SLF001 - its public name
            self._client.poll(0)  # lets it report errors
            if self._trouble.error is not None:
                return self._trouble.error
        return error

    def _within(self) -> dict[str, float]:
        return {"request_timeout": self._timeout_s}

    def _ask(self, question: Any) -> Any:
        if self._client is None:
            self._trouble.error = None
            options: dict[str, Any] = {**READER_DEFAULTS, **self._settings.resolved(), "error_cb": self._trouble}
            try:
                self._client = AdminClient({k: v for k, v in options.items() if not k.startswith(_CONSUMER_ONLY)})
            except (KafkaException, ValueError, TypeError) as error:
                raise refused_options(error, self._settings) from None
        return question(self._client)

    def _answer(self, answer: Future[Any], *, absent_is_lasting: bool = False) -> Any:
        try:
            return answer.result(timeout=2 * self._timeout_s)
        except KafkaException as error:
            reason, doing = self._reason(error), f"asking for topic {self._name!r}"
            self._client = None  # a new client does not remember brokers that are gone
            raise failure_of(reason, doing, self._settings, absent_is_lasting=absent_is_lasting) from None
        except TimeoutError:
            self._client = None
            raise FailedException(f"topic {self._name!r} was asked for, and the client did not answer") from None
