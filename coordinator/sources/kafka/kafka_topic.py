"""A topic as users declare it once: its brokers, how it is read, and the tuples it becomes."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any

from coordinator.option_checks import refuse_unknown
from coordinator.sources.kafka.broker_errors import AbsentTopicError
from coordinator.sources.kafka.client_settings import ClientSettings, Option
from coordinator.sources.kafka.partition_reader import PartitionReader
from coordinator.sources.kafka.record_emission import ORIGIN_FIELDS, OnTombstone, RecordEmission
from coordinator.sources.kafka.starting_point import OnGone, Start, StartingPoint
from coordinator.sources.kafka.topic import BrokerTopic, Topic
from coordinator.sources.kafka.worker_readers import worker_readers
from coordinator.sources.records.plain_formats import RawBytes
from coordinator.sources.records.record_format import RecordFormat
from coordinator.sources.records.record_output import OnBadRecord, RecordOutput
from state.errors import TopologyError

TOPIC_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
MISSING_PAUSE_S = 1.0
"""Pause between two checks whether a topic exists."""
_LOG = logging.getLogger("txbatch.kafka")
KAFKA_SPOUT = "a Kafka spout"
"""The owner of a wrong parameter, in messages."""


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic for any of the Kafka spouts; one value may serve several. Travels with its spout, without a secret in it.

    Attributes:
        servers: ``bootstrap.servers``: host:port, separated by commas.
        name: name of the topic.
        record_format: makes tuples from the messages' values; by default a value's bytes are the field ``value``.
        origin_fields: which of ``topic``, ``partition``, ``offset``, ``key``, ``headers`` and ``timestamp`` each tuple
            carries after the format's fields.
        start: where a new topology begins: ``"earliest"``, ``"latest"``, a time with its zone, or partition -> offset.
            Partitions that join later begin with their first message.
        isolation_level: ``"read_committed"`` leaves out messages of open and aborted Kafka transactions,
            ``"read_uncommitted"`` takes all messages.
        on_gone: ``"fail"`` stops the run at offsets that were deleted before they were first read, ``"earliest"``
            continues with the oldest message in the log, ``"latest"`` with new messages. Both count lost offsets, as
            "lost_offsets".
        on_bad_record: ``"fail"`` stops the run at a value that is not in the format, ``"skip"`` leaves it out,
            ``"dead_letter"`` emits it on the stream ``"dead_letters"``. Both count it, as "bad_records".
        on_tombstone: ``"fail"`` stops the run at a message without a value, which marks a deleted key on a compacted
            topic; ``"skip"`` leaves it out and counts it, as "tombstones"; ``"empty"`` gives the format an empty value.
        missing: ``"fail"`` ends a run at its start if the topic does not exist, ``"wait"`` waits until it does. Plain
            topologies do not support waiting.
        options: further options of the clients, as librdkafka names them (``security.protocol``,
            ``sasl.username``, ``ssl.ca.location``, …); secrets as `FromEnvironment` or `FromFile`.

    Raises:
        TopologyError: an argument cannot be used, or a secret is given in plain text.
    """

    servers: str
    name: str
    record_format: RecordFormat | None = None
    _: KW_ONLY
    origin_fields: Sequence[str] = ()
    start: Start = "earliest"
    isolation_level: str = READ_COMMITTED
    on_gone: str = OnGone.FAIL
    on_bad_record: str = OnBadRecord.FAIL
    on_tombstone: str = OnTombstone.FAIL
    missing: str = "fail"
    options: Mapping[str, Option] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not TOPIC_NAME.fullmatch(self.name):
            raise TopologyError(
                f"topic {self.name!r} is not a Kafka topic's name; one has 1 to 249 of A-Z a-z 0-9 . _ -"
            )
        if self.options is not None and not isinstance(self.options, Mapping):
            raise TopologyError(f"options of a Kafka spout are a {type(self.options).__name__}; give a mapping")
        refuse_unknown("on_gone", self.on_gone, OnGone)
        refuse_unknown("isolation_level", self.isolation_level, (READ_COMMITTED, READ_UNCOMMITTED))
        refuse_unknown("on_tombstone", self.on_tombstone, OnTombstone)
        refuse_unknown("missing", self.missing, ("fail", "wait"))
        self.settings, self.starting_point, self.emission()  # each refuses what it cannot use

    @property
    def settings(self) -> ClientSettings:
        """How brokers are reached."""
        return ClientSettings(self.servers, dict(self.options or {}))

    @property
    def starting_point(self) -> StartingPoint:
        """Where a new topology begins."""
        return StartingPoint.of(self.start)

    def emission(self) -> RecordEmission:
        """Returns the object that emits the topic's messages as tuples."""
        output = RecordOutput(
            self.record_format or RawBytes(),
            offered=ORIGIN_FIELDS,
            origin_fields=self.origin_fields,
            on_bad_record=self.on_bad_record,
        )
        return RecordEmission(self.name, output, OnTombstone(self.on_tombstone))

    def connect(self) -> Topic:
        """Returns the topic on its brokers; it connects at the first request, and the caller closes it."""
        return BrokerTopic(self.settings, self.name, reads_committed=self._reads_committed)

    def connect_when_there(self) -> Topic:
        """Returns the topic as `connect` does; with `missing` "wait", waits until it exists (driver, once a run).

        Raises:
            FailedException: the brokers do not answer.
            SourceError: the topic may not be read.
        """
        topic, has_said = self.connect(), False
        while self.missing == "wait":
            try:
                topic.topic_id()
                break
            except AbsentTopicError as error:
                if not has_said:
                    _LOG.warning("waiting until topic %r exists: %s", self.name, error)
                has_said = True
                time.sleep(MISSING_PAUSE_S)
        return topic

    def worker_topic_id(self) -> str:
        """Returns the brokers' id of the topic, over a connection that this process keeps (executor).

        Raises:
            FailedException: the brokers do not answer.
            SourceError: the topic does not exist, or may not be read.
        """
        return worker_readers().topic_id(self.settings, self.name)

    def reader(self, topic_id: str, partition: int) -> PartitionReader:
        """Returns the reader of a partition, which this process keeps from wave to wave.

        Raises:
            SourceError: the options are wrong, or a secret cannot be read.
        """
        return worker_readers().reader(
            self.settings, self.name, topic_id, partition, reads_committed=self._reads_committed
        )

    def fingerprint(self) -> str:
        """Returns the topic's name and its id on the brokers, without their addresses.

        Raises:
            FailedException: the brokers do not answer.
            SourceError: the topic does not exist, or may not be read.
        """
        with closing(self.connect()) as topic:
            return f"kafka topic {self.name!r}, id {topic.topic_id()}"

    @property
    def _reads_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED


def require_topic(given: Any) -> KafkaTopic:
    """Returns the topic that a spout was given.

    Raises:
        TopologyError: the argument is not a `KafkaTopic`, but for example the address of brokers.
    """
    if not isinstance(given, KafkaTopic):
        raise TopologyError(f"the topic of a Kafka spout is {given!r:.100}; give a KafkaTopic(servers, name)")
    return given
