"""Transfers money. Meanwhile an ordinary client sums all balances by one HVALS: the total is never off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import redis

from benchmarks import transfers
from state.keys import Keys
from tests.support.chaos.killed.case import Case, again_and_again, differences

ACCOUNTS, TRANSFERS_PER_BATCH = 50, 50
PAUSE_S, RECONNECT_S = 0.002, 0.02


class Ledger(Case):
    """Transfers between accounts.

    Attributes:
        reads: sums that were taken.
        states: different states among them.
    """

    size_of, default_size = "transfers", 100_000

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float) -> None:
        super().__init__(folder, size, seed, timeout_s)
        self._seed, self._expected = seed, ACCOUNTS * transfers.OPENING_BALANCE
        given = {
            "transfers": size,
            "accounts": ACCOUNTS,
            "transfers_per_batch": TRANSFERS_PER_BATCH,
            "seed": seed,
        }
        self.site = self.site_of("ledger", "benchmarks.transfers:topology", given)
        self.total = -(-size // TRANSFERS_PER_BATCH)
        self.reads = self.states = 0
        self._off: list[int] = []
        self._client: redis.Redis | None = None
        self._last: Any = None

    def meanwhile(self) -> AbstractContextManager[object]:
        return again_and_again(self._look)

    def wrong(self, client: redis.Redis) -> Iterator[str]:
        yield from differences(self.state(client, "balances"), self._truth())
        yield from (f"the total was {total}, and should be {self._expected}" for total in self._off[:10])
        self.facts["atomic reads"] = f"{self.reads:,}, of {self.states:,} different states"

    def _look(self) -> float:
        try:
            self._client = self._client or self.site.client()
            values: Any = self._client.hvals(Keys(self.site.topology_id).state("balances"))
        except redis.RedisError:
            self._client = None
            return RECONNECT_S
        if values:  # something is committed
            self.reads += 1
            self.states += values != self._last
            self._last = values
            total = sum(map(int, values))
            self._off += [total] * (total != self._expected)
        return PAUSE_S

    def _truth(self) -> Counter[str]:
        balances = [transfers.OPENING_BALANCE] * ACCOUNTS
        for number in range(self.size):
            source, target, amount = transfers.transfer(number, ACCOUNTS, self._seed)
            if balances[source] >= amount:
                balances[source] -= amount
                balances[target] += amount
        return Counter({str(account): balance for account, balance in enumerate(balances)})
