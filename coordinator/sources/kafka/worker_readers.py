"""The readers of a worker process, kept from wave to wave, because connecting takes longer than reading a batch.

An emitter lives for one wave, a worker for many runs. So readers belong to the process. They are found by their
settings with secrets, topic and partition, and the least recently used ones are closed first.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from coordinator.sources.kafka.client_settings import ClientSettings
from coordinator.sources.kafka.partition_reader import SILENCE_S, PartitionReader, make_reader
from coordinator.sources.kafka.topic import BrokerTopic
from state.codec import digest64

READERS_MAX = 32
"""Each reader holds some threads, sockets and up to ``queued.max.messages.kbytes`` of messages read ahead."""
TOPICS_MAX = 8

_LOG = logging.getLogger("txbatch.kafka")
_Place = TypeVar("_Place")
_Connection = TypeVar("_Connection", PartitionReader, BrokerTopic)


class ReaderPool:
    """The readers and topic connections of a process; used by one task at a time.

    Args:
        make: makes a reader.
        limit: most readers kept.
    """

    def __init__(self, make: Callable[..., PartitionReader] = make_reader, limit: int = READERS_MAX) -> None:
        self._make, self._limit = make, limit
        self._readers: OrderedDict[tuple[int, bool, str, str, int], PartitionReader] = OrderedDict()
        self._topics: OrderedDict[tuple[int, str], BrokerTopic] = OrderedDict()

    def topic_id(self, settings: ClientSettings, topic: str) -> str:
        """Asks brokers for a topic's id, over a connection that is kept (executor, once a batch).

        Raises:
            FailedException: the brokers do not answer.
            SourceError: the topic does not exist or may not be read, or a secret cannot be read.
        """

        def make() -> BrokerTopic:
            return BrokerTopic(settings, topic, reads_committed=True, timeout_s=SILENCE_S, was_there=True)

        return _kept(self._topics, (_made_with(settings), topic), make, limit=TOPICS_MAX).topic_id()

    def reader(
        self, settings: ClientSettings, topic: str, topic_id: str, partition: int, *, reads_committed: bool
    ) -> PartitionReader:
        """Returns the reader of a partition, made if there is none (executor).

        Raises:
            SourceError: the options are wrong, or a secret cannot be read.
        """

        def make() -> PartitionReader:
            return self._make(settings, topic, partition, reads_committed=reads_committed)

        place = (_made_with(settings), reads_committed, topic, topic_id, partition)
        return _kept(self._readers, place, make, limit=self._limit)

    def close(self) -> None:
        """Closes all readers and topics."""
        while self._readers:
            _close(self._readers.popitem()[1])
        while self._topics:
            _close(self._topics.popitem()[1])

    def __len__(self) -> int:
        return len(self._readers)


def worker_readers() -> ReaderPool:
    """Returns the pool of this process; a forked process has its own."""
    return _pool_of(os.getpid())


@cache
def _pool_of(process_id: int) -> ReaderPool:
    pool = ReaderPool()
    atexit.register(_close_in, process_id, pool)
    return pool


def _close_in(process_id: int, pool: ReaderPool) -> None:
    if os.getpid() == process_id:  # a fork inherits the exit handlers
        pool.close()


def _made_with(settings: ClientSettings) -> int:
    """Returns a digest of a client's options, secrets included: a changed secret needs a new client."""
    return digest64(repr(settings.resolved()).encode())


def _kept(
    kept: OrderedDict[_Place, _Connection], place: _Place, make: Callable[[], _Connection], *, limit: int
) -> _Connection:
    """Returns the connection for a key, now the most recently used; makes it, and closes the oldest, if necessary."""
    found = kept.pop(place, None)
    if found is None:
        while len(kept) >= limit:
            _close(kept.popitem(last=False)[1])
        found = make()
    kept[place] = found
    return found


def _close(reader: PartitionReader | BrokerTopic) -> None:
    try:
        reader.close()
    except Exception:  # noqa: BLE001 - dropped without closing, it leaks only sockets
        _LOG.debug("a Kafka reader could not be closed", exc_info=True)
