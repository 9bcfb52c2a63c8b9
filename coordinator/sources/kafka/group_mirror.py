"""Tells a consumer group how far a topology is, so that lag tools see it. txbatch never reads it back."""

from __future__ import annotations

import logging

from confluent_kafka import Consumer, KafkaException, TopicPartition

from coordinator.sources.kafka.client_settings import READER_DEFAULTS, ClientSettings
from coordinator.sources.kafka.cut_record import CutRecord
from coordinator.spouts.committing import SpoutCommitter
from state.attempt import TransactionAttempt
from state.printable import one_line

_LOG = logging.getLogger("txbatch")


class GroupMirror(SpoutCommitter):
    """Commits the positions of durable transactions to a consumer group (driver, after each group of commits).

    A broker that is away costs a warning and nothing else: positions are in Redis.

    Args:
        settings: how brokers are reached.
        topic: whose offsets are committed.
        group: the consumer group; it has no members.
        record: where transactions ended.
    """

    def __init__(self, settings: ClientSettings, topic: str, group: str, record: CutRecord) -> None:
        self._settings, self._topic, self._group, self._record = settings, topic, group, record
        self._client: Consumer | None = None
        self._was_refused = False

    def commit(self, attempt: TransactionAttempt) -> None:
        """Nothing yet: `cleanup_before` follows each group of these."""

    def cleanup_before(self, txid: int) -> None:
        """Commits where transaction `txid` ended, if this run cut it."""
        positions = self._record.durable(txid)
        if not positions:
            return
        offsets = [TopicPartition(self._topic, partition, at) for partition, at in sorted(positions.items())]
        try:
            # not waited for: the next one carries everything this one does
            self._connected().commit(offsets=offsets, asynchronous=True)
        except (KafkaException, TypeError, ValueError) as error:  # the latter are of options it does not know
            if not self._was_refused:
                said = one_line(self._settings.without_secrets(str(error)))
                _LOG.warning("group %r cannot be told how far the topology is: %s", self._group, said)
            self._was_refused = True

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _connected(self) -> Consumer:
        if self._client is None:
            options = {**READER_DEFAULTS, **self._settings.resolved(), "group.id": self._group}
            self._client = Consumer({**options, "enable.auto.commit": False})
        return self._client


class NoMirror(SpoutCommitter):
    """For a topology that tells no group."""

    def commit(self, attempt: TransactionAttempt) -> None:
        """Nothing is to be told."""
