"""Runs of the forgetful world's topology on a real server, without Spark; its spout writes down what it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, ClassVar

from coordinator import FixedBatchesSpout, ICommitterTransactionalSpout, RunOptions, SpoutCommitter, Topology
from coordinator.transactional.coordinator import Coordinator
from state.redis_owner.store import RedisStore
from tests.support.runs.forgetful_world import BATCHES, CONTROL, COUNTS, TOPOLOGY_ID, folded, topology_on
from tests.support.runs.in_process_engine import assembled_in_process


class Hearing(SpoutCommitter):
    """Writes down the txids it is told of: what upstream no longer has.

    Attributes:
        heard: by all runs of this process.
    """

    heard: ClassVar[list[int]] = []

    def commit(self, attempt: Any) -> None:
        self.heard.append(attempt.txid)


class HeardSpout(FixedBatchesSpout, ICommitterTransactionalSpout):
    def get_committer(self, conf: Any, context: Any) -> SpoutCommitter:
        return Hearing()


def topology() -> Topology:
    """Forty transactions."""
    return topology_on(HeardSpout([[[word] for word in batch] for batch in BATCHES], ["word"]), reads=False)


@contextmanager
def run_on(url: str, *, timeout_s: float = 60.0, **options: Any) -> Iterator[Coordinator]:
    """A run that has not begun."""
    random, built = Random(1), topology()
    nonce = f"{random.getrandbits(96):024x}{time.monotonic_ns() & 0xFFFFFFFF:08x}"
    bounds = RunOptions(**({"max_spout_pending": 4, "commit_group_max": 1} | options))
    store = RedisStore(url, TOPOLOGY_ID, unreachable_timeout_s=timeout_s)
    try:
        store.check_server(bounds.asked_durability())
        generation = "c" * 32
        with assembled_in_process(
            built, store, random, bounds, nonce=nonce, new_generation=generation, clock=time.monotonic
        ) as coordinator:
            yield coordinator
    finally:
        store.close()


def committed_on(client: Any) -> int:
    """The last committed txid."""
    return int(client.hget(CONTROL, "committed") or 0)


def is_a_prefix(client: Any) -> bool:
    """Whether the state is the fold of exactly what is committed."""
    found = {name.decode(): int(count) for name, count in client.hgetall(COUNTS).items()}
    return found == dict(folded()[0][committed_on(client)])
