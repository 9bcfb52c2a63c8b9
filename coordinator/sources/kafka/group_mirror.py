"""Tells a consumer group how far a topology is, so that lag tools see it. txbatch never reads it back."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from coordinator.sources.kafka.client_settings import READER_DEFAULTS, ClientSettings
from coordinator.spouts.committing import SpoutCommitter
from state.attempt import TransactionAttempt
from state.printable import one_line

KEPT_MAX = 100_000
"""Transactions remembered; a window is far smaller."""

_LOG = logging.getLogger("txbatch")


class CutRecord:
    """Txid -> where its partitions ended (driver; by the spout's coordinator and its committer on one thread)."""

    def __init__(self) -> None:
        self._after: dict[int, Mapping[int, int]] = {}

    def cut(self, txid: int, positions: Mapping[int, int]) -> None:
        """Notes where a transaction ends."""
        self._after[txid] = dict(positions)
        while len(self._after) > KEPT_MAX:
            del self._after[next(iter(self._after))]

    def durable(self, txid: int) -> Mapping[int, int] | None:
        """Returns where a durable transaction ended; forgets it and those below. None if another run cut it."""
        found = self._after.get(txid)
        self._after = {number: after for number, after in self._after.items() if number > txid}
        return found


class GroupMirror(SpoutCommitter):
    """Commits the positions of durable transactions to a consumer group (driver, after each group of commits).

    A broker that is away costs a warning and nothing else: positions are in Redis.

    Args:
        settings: how brokers are reached.
        topic: whose offsets are committed.
        group: the consumer group, which has no members; None for a topology that tells no group.
        record: where transactions ended.
    """

    def __init__(self, settings: ClientSettings, topic: str, group: str | None, record: CutRecord) -> None:
        self._settings, self._topic, self._group, self._record = settings, topic, group, record
        self._client: Consumer | None = None
        self._was_refused = False

    def commit(self, attempt: TransactionAttempt) -> None:
        """Nothing yet: `cleanup_before` follows each group of these."""

    def cleanup_before(self, txid: int) -> None:
        """Commits where transaction `txid` ended, if this run cut it."""
        positions = self._record.durable(txid)
        if not positions or self._group is None:
            return
        offsets = [TopicPartition(self._topic, partition, at) for partition, at in sorted(positions.items())]
        try:
            # not waited for: the next one carries everything this one does
            self._connected(self._group).commit(offsets=offsets, asynchronous=True)
        except (KafkaException, TypeError, ValueError) as error:  # the latter are of options it does not know
            if not self._was_refused:
                said = one_line(self._settings.without_secrets(str(error)))
                _LOG.warning("group %r cannot be told how far the topology is: %s", self._group, said)
            self._was_refused = True

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _connected(self, group: str) -> Consumer:
        if self._client is None:
            options = {**READER_DEFAULTS, **self._settings.resolved(), "group.id": group, "enable.auto.commit": False}
            self._client = Consumer(options)
        return self._client
