"""Sums numbers by key over sources on Spark, and over two Redis Streams that are trimmed on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import redis

from tests.support.chaos.killed.case import Case, differences
from tests.support.chaos.source_jobs import KEYS, TOPOLOGY_ID, amount_of, sums

STEP = 150


class SourceSums(Case):
    """Numbers from one source.

    Args:
        factory: of `source_jobs`.
        parameters: of it; the size and `STEP` stand for themselves in their values.
    """

    size_of, default_size = "numbers", 60_000

    def __init__(
        self, folder: Path, size: int, seed: int, timeout_s: float, *, factory: str, parameters: dict[str, str]
    ) -> None:
        super().__init__(folder, size, seed, timeout_s)
        given = {name: value.format(folder=folder, size=size) for name, value in parameters.items()}
        self.site = self.site_of(TOPOLOGY_ID, f"tests.support.chaos.source_jobs:{factory}", given)
        self.total = -(-size // STEP)

    def wrong(self, client: redis.Redis) -> Iterator[str]:
        yield from differences(self.state(client, "sums"), Counter(sums(self.size)))


def data_frame(folder: Path, size: int, seed: int, timeout_s: float) -> SourceSums:
    """Returns the case of a DataFrame over a JSON file, which is written here."""
    (folder / "numbers.json").write_text("".join(f'{{"id": {number}}}\n' for number in range(size)))
    given = {"path": "{folder}/numbers.json", "width": str(STEP)}
    return SourceSums(folder, size, seed, timeout_s, factory="data_frame", parameters=given)


def batches(folder: Path, size: int, seed: int, timeout_s: float) -> SourceSums:
    """Returns the case of batches that a function makes."""
    given = {"count": "{size}", "rows": str(STEP)}
    return SourceSums(folder, size, seed, timeout_s, factory="batches", parameters=given)


def redis_streams(folder: Path, size: int, seed: int, timeout_s: float, *, url: str) -> SourceSums:
    """Returns the case of two streams of a server, which are filled here."""
    with redis.Redis.from_url(url) as client, client.pipeline(transaction=False) as pipeline:
        for number in range(size):
            pipeline.xadd(f"numbers:{number % 2}", {"key": number % KEYS, "amount": amount_of(number)})
        pipeline.execute()
    given = {"url": url, "take": str(STEP // 2)}
    return SourceSums(folder, size, seed, timeout_s, factory="redis_streams", parameters=given)
