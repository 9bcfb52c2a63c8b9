"""Times waves and commits from outside, with subclasses of engine and store that replace them for one run.

txbatch itself has no instrumentation for this. The subclasses read the clock once per wave and twice per commit,
which is far less than what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from coordinator import server_choice
from coordinator.engines.spark import spark_engine as engine_module
from coordinator.engines.spark.spark_engine import SparkEngine
from coordinator.spouts.batch import Batch
from coordinator.transactional.engine import EarlyCommit
from state.attempt import TransactionAttempt
from state.commits.commit import Commit, CommitReply
from state.redis_owner.store import RedisStore


class Stopwatch:
    """The times of one run, in seconds.

    Attributes:
        latencies: per committed transaction, from the issue of its wave to the durable commit.
        commits: per commit call: packing the arguments, the server's work and reading the answer.
        commit_times: (clock, transactions) of every commit.
    """

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.commits: list[float] = []
        self.commit_times: list[tuple[float, int]] = []
        self._issued: dict[TransactionAttempt, float] = {}

    def issued(self, batches: tuple[Batch, ...]) -> None:
        """Notes that a wave is about to start."""
        now = time.perf_counter()
        for batch in batches:
            self._issued[batch.attempt] = now

    def committed(self, commit: Commit, started: float) -> None:
        """Notes that a commit was answered."""
        now = time.perf_counter()
        self.commits.append(now - started)
        self.commit_times.append((now, len(commit.attempts)))
        self.latencies += [now - self._issued.pop(attempt) for attempt in commit.attempts]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Makes `coordinator.run` use an engine and a store that this stopwatch times."""
        stopwatch = self

        class TimedEngine(SparkEngine):
            def process(
                self,
                wave_id: int,
                batches: tuple[Batch, ...],
                stored: Mapping[str, Mapping[int, Any]],
                early: EarlyCommit,
            ) -> None:
                stopwatch.issued(batches)
                super().process(wave_id, batches, stored, early)

        class TimedStore(RedisStore):
            def commit(self, commit: Commit) -> CommitReply:
                started = time.perf_counter()
                reply = super().commit(commit)
                stopwatch.committed(commit, started)
                return reply

        # a run imports its engine when it starts, and has imported its store before
        with (
            patch.object(engine_module, "SparkEngine", TimedEngine),
            patch.object(server_choice, "RedisStore", TimedStore),
        ):
            yield
