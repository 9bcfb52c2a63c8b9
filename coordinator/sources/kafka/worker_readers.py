"""The readers of a worker process, kept from wave to wave: to connect takes longer than to read a batch.

An emitter lives for one wave, a worker for many. So readers belong to the process, under the settings, topic and
partition they were made for, and the ones least recently used are closed first.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from coordinator.sources.kafka.broker_errors import ClientTrouble
from coordinator.sources.kafka.client_settings import ClientSettings
from coordinator.sources.kafka.partition_reader import SILENCE_S, PartitionReader, make_consumer
from coordinator.sources.kafka.topic import BrokerTopic
from state.codec import digest64

READERS_MAX = 32
"""Each holds some threads, sockets and up to ``queued.max.messages.kbytes`` of messages read ahead."""

TOPICS_MAX = 8

_LOG = logging.getLogger("txbatch")
Place: TypeAlias = tuple[int, str, str, int]
"""Digest of settings and isolation, topic, its id, partition."""


class ReaderPool:
    """Readers by what they read; used by one task at a time.

    Args:
        make: settings, topic, partition, whether only committed messages -> a reader.
        limit: readers kept at most.
    """

    def __init__(
        self, make: Callable[[ClientSettings, str, int, bool], PartitionReader], limit: int = READERS_MAX
    ) -> None:
        self._make, self._limit = make, limit
        self._readers: OrderedDict[Place, PartitionReader] = OrderedDict()
        self._topics: OrderedDict[tuple[int, str], BrokerTopic] = OrderedDict()

    def topic_id(self, settings: ClientSettings, topic: str) -> str:
        """Asks brokers for a topic's id, over a connection that is kept (executor, once a wave).

        Raises:
            FailedException: no answer.
            SourceError: the topic does not exist, or may not be read.
        """
        place = (_digest(settings, reads_committed=True), topic)
        asked = self._topics.pop(place, None)
        if asked is None:
            if len(self._topics) >= TOPICS_MAX:
                self._topics.popitem(last=False)
            asked = BrokerTopic(settings, topic, reads_committed=True, timeout_s=SILENCE_S, was_there=True)
        self._topics[place] = asked
        return asked.topic_id()

    def reader(
        self, settings: ClientSettings, topic: str, topic_id: str, partition: int, *, reads_committed: bool
    ) -> PartitionReader:
        """The reader of a partition, made if there is none (executor).

        Raises:
            SourceError: the options are wrong, or a secret is not there.
        """
        place = (_digest(settings, reads_committed=reads_committed), topic, topic_id, partition)
        found = self._readers.pop(place, None)
        if found is None:
            while len(self._readers) >= self._limit:
                self._close(self._readers.popitem(last=False)[1])
            found = self._make(settings, topic, partition, reads_committed)
        self._readers[place] = found
        return found

    def close(self) -> None:
        """Closes all of them."""
        while self._readers:
            self._close(self._readers.popitem()[1])
        self._topics.clear()

    def __len__(self) -> int:
        return len(self._readers)

    def _close(self, reader: PartitionReader) -> None:
        try:
            reader.close()
        except Exception:  # noqa: BLE001 - what cannot be closed is forgotten; it holds nothing but sockets
            _LOG.debug("a Kafka reader could not be closed", exc_info=True)


def worker_readers() -> ReaderPool:
    """The pool of this process; a forked process has its own."""
    return _pool_of(os.getpid())


@cache
def _pool_of(process_id: int) -> ReaderPool:
    pool = ReaderPool(_make)
    atexit.register(_close_in, process_id, pool)
    return pool


def _close_in(process_id: int, pool: ReaderPool) -> None:
    if os.getpid() == process_id:  # a fork inherits the list of what is to be done at exit
        pool.close()


def _make(settings: ClientSettings, topic: str, partition: int, reads_committed: bool) -> PartitionReader:
    trouble = ClientTrouble()
    consumer = make_consumer(settings, trouble, reads_committed=reads_committed)
    return PartitionReader(consumer, settings, topic, partition, trouble)


def _digest(settings: ClientSettings, *, reads_committed: bool) -> int:
    named = sorted(f"{name}={value!r}" for name, value in settings.options.items())
    return digest64(settings.servers.encode(), *map(str.encode, named), b"%d" % reads_committed)
