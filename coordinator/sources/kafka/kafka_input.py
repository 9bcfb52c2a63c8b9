"""What the Kafka spouts have in common: which topic, on which brokers, read how, made into which tuples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.sources.kafka.client_settings import ClientSettings, Option
from coordinator.sources.kafka.partition_reader import PartitionReader
from coordinator.sources.kafka.record_emission import OnTombstone, RecordEmission
from coordinator.sources.kafka.starting_point import OnGone, Start, StartingPoint
from coordinator.sources.kafka.topic import BrokerTopic
from coordinator.sources.kafka.worker_readers import worker_readers
from coordinator.sources.records.record_format import RecordFormat
from coordinator.sources.records.record_output import OnBadRecord
from state.errors import TopologyError

TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


class KafkaInput:
    """One topic as a spout reads it. A spec: part of the spout, shipped with it, without a secret in it.

    The arguments are those the spouts share.

    Args:
        servers: ``bootstrap.servers``: host:port, with commas between.
        topic: the topic's name; it has to exist.
        record_format: makes tuples of values; by default their bytes, as the field ``value``.
        origin_fields: of ``topic``, ``partition``, ``offset``, ``key``, ``headers`` and ``timestamp``, those each
            tuple carries after the format's fields.
        start: where a topology begins that has read nothing yet: ``"earliest"``, ``"latest"``, a time with its zone,
            or partition -> offset. Partitions that join later begin with their first message.
        isolation_level: ``"read_committed"`` leaves out messages of open and aborted Kafka transactions,
            ``"read_uncommitted"`` takes all.
        on_gone: what becomes of offsets deleted before they were first read: ``"fail"``, ``"earliest"`` or
            ``"latest"``; see `OnGone`.
        on_bad_record: what becomes of values that are not in the format: ``"fail"``, ``"skip"`` or
            ``"dead_letter"``; see `OnBadRecord`.
        on_tombstone: what becomes of messages without a value: ``"fail"``, ``"skip"`` or ``"empty"``; see
            `OnTombstone`.
        options: further options of the clients, as librdkafka names them (``security.protocol``,
            ``sasl.username``, ``ssl.ca.location``, …); secrets as `FromEnvironment` or `FromFile`.

    Raises:
        TopologyError: an argument cannot be used, or a secret is given in plain text.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        record_format: RecordFormat | None = None,
        *,
        origin_fields: Sequence[str] = (),
        start: Start = "earliest",
        isolation_level: str = READ_COMMITTED,
        on_gone: str = OnGone.FAIL,
        on_bad_record: str = OnBadRecord.FAIL,
        on_tombstone: str = OnTombstone.FAIL,
        options: Mapping[str, Option] | None = None,
    ) -> None:
        if not isinstance(topic, str) or not TOPIC_NAME.fullmatch(topic):
            raise TopologyError(f"topic {topic!r} is not a Kafka topic's name; one has 1 to 249 of A-Z a-z 0-9 . _ -")
        if options is not None and not isinstance(options, Mapping):
            raise TopologyError(f"options of a Kafka spout are a {type(options).__name__}; give a mapping")
        self.topic = topic
        self.settings = ClientSettings(servers, dict(options or {}))
        self.start = StartingPoint.of(start)
        self.on_gone = OnGone(_one_of("on_gone", on_gone, tuple(OnGone)))
        levels = (READ_COMMITTED, READ_UNCOMMITTED)
        self.reads_committed = _one_of("isolation_level", isolation_level, levels) == READ_COMMITTED
        self.emission = RecordEmission(
            topic,
            record_format,
            origin_fields=origin_fields,
            on_bad_record=on_bad_record,
            on_tombstone=on_tombstone,
        )

    def declare(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the spout's streams (driver, once)."""
        self.emission.output.declare(declarer)

    def broker_topic(self) -> BrokerTopic:
        """Asks brokers of the topic; connects at the first question, and its maker closes it."""
        return BrokerTopic(self.settings, self.topic, reads_committed=self.reads_committed)

    def reader(self, topic_id: str, partition: int) -> PartitionReader:
        """The reader of a partition in this process, which keeps it from wave to wave.

        Raises:
            SourceError: the options are wrong, or a secret is not there.
        """
        return worker_readers().reader(
            self.settings, self.topic, topic_id, partition, reads_committed=self.reads_committed
        )

    def fingerprint(self, topic_id: str) -> str:
        """The line that tells this input from another."""
        return f"kafka topic {self.topic!r}, id {topic_id}"


def positive(name: str, given: Any) -> int:
    """A whole number of at least 1, which the command line gives as text.

    Raises:
        TopologyError: it is something else.
    """
    number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise TopologyError(f"{name}={given!r} of a Kafka spout has to be a whole number of at least 1")
    return number


def _one_of(name: str, given: Any, known: Sequence[str]) -> str:
    if given not in known:
        raise TopologyError(
            f"{name}={given!r} is unknown; choose one of {', '.join(repr(str(each)) for each in known)}"
        )
    return str(given)
