"""The control's sink: adds counts to a hash, exactly once per batch id, with one MULTI pipeline.

This is what the documentation of foreachBatch tells users to write: it may be called again with a batch that is
already written, so the batch id is stored in the same transaction as the data, and compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import redis

COUNTS_KEY = "{control}:counts"
LAST_BATCH_KEY = "{control}:last_batch"


class GuardedSink:
    """Writes counts; lives in the driver.

    Args:
        url: address of the server.

    Attributes:
        durations: seconds per write, from the comparison to the reply to EXEC.
    """

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, protocol=2, driver_info=None)
        self.durations: list[float] = []

    def write(self, counts: Iterable[tuple[str, int]], batch_id: int) -> None:
        """Adds the counts of a batch unless they were already added."""
        started = time.perf_counter()
        last = self._client.get(LAST_BATCH_KEY)
        if last is None or int(last) < batch_id:
            with self._client.pipeline(transaction=True) as pipeline:
                for word, count in counts:
                    pipeline.hincrby(COUNTS_KEY, word, count)
                pipeline.set(LAST_BATCH_KEY, batch_id)
                pipeline.execute()
        self.durations.append(time.perf_counter() - started)

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()
