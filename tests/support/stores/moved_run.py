"""Commits to a server that moves meanwhile, with books of its own: what an owner does, without an engine."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import redis

from state.commits.commit import CommitStatus
from state.errors import StateRefusedError
from state.records.durability import Durability, DurabilityLevel
from state.redis_client.connection import RedisConnection, connect, texts_by_name
from state.redis_owner.store import RedisStore
from tests.support.stores.builders import acquire, attempt, commit_of, counts
from tests.support.stores.moving_servers import POLL_S, WAIT_S

TOPOLOGY_ID = "moved"
KEY = f"{{{TOPOLOGY_ID}}}:counts"
BEFORE = 150
"""Commits before the strike."""
AFTER = 150
PARTS = 7


@dataclass(slots=True)
class Moved:
    """What a run has met.

    Attributes:
        committed: the last txid.
        confirmed: the last one whose durability was confirmed.
        away_s: the longest time between two commits.
        left: kind of error -> how often it made the run look for its server.
        regressed: how often it was stopped because the server had lost writes, and was started again.
        lost: transactions that it lost then, and committed again.
        moves: how often it found the server elsewhere.
    """

    committed: int = 0
    confirmed: int = 0
    away_s: float = 0.0
    left: Counter[str] = field(default_factory=Counter)
    regressed: int = 0
    lost: int = 0
    moves: int = 0

    def __str__(self) -> str:
        left = ", ".join(f"{count} {name}" for name, count in sorted(self.left.items())) or "nothing"
        return (
            f"away {self.away_s:.2f} s, left its place for {left}, regressed {self.regressed}, "
            f"lost {self.lost} of {self.committed}, confirmed {self.confirmed}"
        )


class MovedRun:
    """An owner that commits one transaction after the other until a strike has ended; used once.

    Args:
        url: of the server.
        level: of durability.
        replicas: that have to confirm.
    """

    def __init__(self, url: str, level: DurabilityLevel = DurabilityLevel.MEMORY, *, replicas: int = 1) -> None:
        self._url, self._asked = url, Durability(level, replicas)
        self._found = Moved()
        self._store = self._started()
        self._asked_txid = 0

    def through(self, *strikes: Callable[[], object]) -> Moved:
        """Commits before, during and after each strike, and returns what was met; everything is counted exactly."""
        for _ in range(BEFORE):
            self._commit_next()
        for strike in strikes:
            self._commit_during(strike)
        self._store.confirm()
        self._found.moves += self._store._connection.moves
        self._store.close()
        self._check()
        return self._found

    def _commit_during(self, strike: Callable[[], object]) -> None:
        last_s, left = time.monotonic(), AFTER
        with ThreadPoolExecutor(1) as pool:
            struck = pool.submit(strike)
            while left:
                left -= struck.done()
                self._commit_next()
                self._found.away_s, last_s = max(self._found.away_s, time.monotonic() - last_s), time.monotonic()
            struck.result()

    def _started(self) -> RedisStore:
        store = RedisStore(self._url, TOPOLOGY_ID)
        client: Any = store._connection.client
        leave = client.leave

        def counted(error: redis.RedisError) -> None:
            self._found.left[type(error).__name__] += 1
            leave(error)

        client.leave = counted
        deadline = time.monotonic() + WAIT_S
        while True:  # so soon after a failover there may be too few replicas
            try:
                store.check_server(self._asked)
                break
            except StateRefusedError as error:
                if "replicas" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S)
        committed = acquire(store, secrets.token_hex(16)).committed_txid
        self._found.lost += max(0, self._found.committed - committed)
        self._found.committed = committed
        assert committed >= self._found.confirmed, "what was confirmed is lost"
        return store

    def _commit_next(self) -> None:
        txid = self._found.committed + 1
        try:
            self._store.store_metadata({f"coordinator:{txid}": [txid]}, [f"coordinator:{txid - 1}"])
            changes = counts(all=1, **{f"part{txid % PARTS}": 1})
            reply = self._store.commit(commit_of(changes, attempt(txid, secrets.randbits(60))))
            if reply.status is CommitStatus.REGRESSED:
                raise StateRefusedError(f"REGRESSED: {reply.detail}")
            assert reply.status in (CommitStatus.OK, CommitStatus.ALREADY), reply
            self._found.committed = txid
            self._ask()
        except StateRefusedError as error:
            if "REGRESSED" not in str(error):
                raise
            self._found.regressed += 1
            self._found.moves += self._store._connection.moves
            self._store.close()
            self._store, self._asked_txid = self._started(), 0

    def _ask(self) -> None:
        if self._asked.level is DurabilityLevel.MEMORY:
            return
        if not self._asked_txid:
            self._store.ask_barrier(self._found.confirmed)
            self._asked_txid = self._found.committed
        elif self._store.barrier_answer():
            self._found.confirmed, self._asked_txid = self._asked_txid, 0

    def _check(self) -> None:
        with connect(self._url, key=KEY) as client:
            found = texts_by_name(RedisConnection(client, "there", timeout_s=30.0).call("HGETALL", KEY))
        committed = self._found.committed
        expected = Counter(f"part{txid % PARTS}" for txid in range(1, committed + 1)) + Counter(all=committed)
        assert {name: int(text) for name, text in found.items()} == expected
