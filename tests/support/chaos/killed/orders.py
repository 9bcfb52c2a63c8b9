"""Refuses orders in three places, each kept exactly once; then publishes again what a committer refused, once each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from state.commits.dead_letters import DEAD_LETTERS_STATE, DeadLetter
from state.keys import Keys
from state.redis_admin.topology import RedisTopology
from tests.support.chaos.jobs import Kill, Site, await_true
from tests.support.chaos.killed.case import Case, differences
from tests.support.topologies.orders import refused_in, write_orders

TOPOLOGY_ID = "checked_orders"
LINES = 100
UNLIMITED = 10**9


class Orders(Case):
    """Orders, of which about half are refused."""

    size_of, default_size = "orders", 40_000

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float) -> None:
        super().__init__(folder, size, seed, timeout_s)
        limit = self.limit()
        self.answer = write_orders(folder / "orders.jsonl", size, seed=seed, limit=limit)
        self.site = self._site(limit)
        self.total = -(-size // LINES)

    def limit(self) -> int:
        """Returns what a customer may owe; within reach of most."""
        return self.size // 8

    def wrong(self, client: redis.Redis) -> Iterator[str]:
        yield from differences(self.state(client, "cents"), Counter(self.answer.cents))
        store = RedisTopology(f"unix://{client.connection_pool.connection_kwargs['path']}", TOPOLOGY_ID)
        try:
            letters = list(store.dead_letters.all())
        finally:
            store.close()
        found = refused_in(letters)
        yield from (f"lost: {each}" for each in self.answer.refused - found)
        yield from (f"doubled: {each}" for each in found - self.answer.refused)
        held = client.zcard(Keys(TOPOLOGY_ID).state(DEAD_LETTERS_STATE))
        if held != len(letters):
            yield f"{held} dead letters are stored, and {len(letters)} can be read"
        yield from (f"letters of txid {txid} are not numbered from 0" for txid in misnumbered(letters))

    def _site(self, limit: int, *options: str, command: str = "run") -> Site:
        given = {"input": self.folder / "orders.jsonl", "lines_per_batch": LINES, "limit": limit, "parallelism": 1}
        target = "tests.support.topologies.checked_orders:topology"
        return self.site_of(TOPOLOGY_ID, target, given, *options, command=command)


class RepublishedOrders(Orders):
    """What the committer refused in `Orders`, played in the same folder before, is published with a higher limit."""

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float) -> None:
        super().__init__(folder, size, seed, timeout_s)
        self.site = self._site(UNLIMITED, "--component", "add", command="dead-letters republish")

    def limit(self) -> int:
        return UNLIMITED

    def under_fire(self, kills: int) -> list[Kill]:
        """Kills each run shortly after some of its commits."""
        site, committed, done = self.site, self.total, []
        for _ in range(kills):
            job, target, delay_s = site.start(), committed + self.draw.randint(0, 3), self.draw.uniform(0.0, 0.3)
            await_true(lambda: not job.is_running() or (site.committed() or 0) > target, self.timeout_s)  # noqa: B023
            await_true(lambda: not job.is_running(), delay_s)  # noqa: B023 - called before the next turn
            assert job.is_running(), f"the run had ended before it was killed:\n{job.complaint()}"
            committed = max(committed, site.committed() or 0)
            job.kill()
            done.append(Kill("commits", time.monotonic() - job.started_s, committed, in_vain=False))
        return done

    def finish(self) -> dict[str, Any]:
        said = super().finish()
        self.facts["published by the last run"] = said["republished_letters"]
        return said


def misnumbered(letters: list[DeadLetter]) -> list[int]:
    """Returns the transactions whose letters are not numbered from 0 without a gap."""
    numbers: dict[int, list[int]] = {}
    for letter in letters:
        numbers.setdefault(letter.txid, []).append(letter.number)
    return [txid for txid, found in numbers.items() if found != list(range(len(found)))]
