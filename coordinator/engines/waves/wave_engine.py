"""What all engines except the tests' share: waves as jobs on lanes, and the outcome of each job as an event."""

from __future__ import annotations

import logging
import queue
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from coordinator.engines.waves.alarm import Deadline, OverdueError
from coordinator.engines.waves.stage import Reading, WaveInput
from coordinator.engines.waves.wave import Wave, at_once
from coordinator.engines.waves.worker_traceback import CrashStory
from coordinator.spouts.batch import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from state.attempt import Attempts
from state.errors import EngineError
from state.redis_owner.reader import save_redis_url

_LOG = logging.getLogger("txbatch")
PROCESSING, COMMIT = "processing", "commit"
Run = Callable[[str, Callable[[], None]], Event | EngineError]
"""(a name that no other job has, a function that makes Spark use it for the thread's jobs) -> how the job ended."""


class WaveEngine(ABC):
    """Runs the two phases of waves as jobs (driver); each lane is a thread of its own.

    Args:
        plan: the plan to run.
        redis_url: the server that committers read from; written to a file that only its owner can read.
        nonce: the nonce of this run; its committers cannot read state that another run owns.
        message_timeout_s: how long a job may take before user code that does not return is interrupted; None for ever.
    """

    overlaps: bool
    queues: bool

    def __init__(self, plan: Plan, redis_url: str, nonce: str, message_timeout_s: float | None) -> None:
        self._plan, self._message_timeout_s = plan, message_timeout_s
        self._private = tempfile.TemporaryDirectory(prefix="txbatch-run-")
        self._reading = Reading(save_redis_url(redis_url, Path(self._private.name)), nonce)
        self._waves: dict[int, Wave[Any]] = {}
        # not a SimpleQueue: its `get` waits for ever if the handler of a signal outlasts the timeout
        self._events: queue.Queue[Event | EngineError] = queue.Queue()
        self._processed_s = 0.0

    @abstractmethod
    def _wave(self, given: WaveInput) -> Wave[Any]:
        """Makes a wave, which does not run yet."""

    @property
    def _has_processed(self) -> bool:
        return bool(self._processed_s)

    def _is_queued(self) -> bool:
        """Returns whether the next job 1 is queued behind another."""
        return False

    @abstractmethod
    def _submit(self, phase: str, wave_id: int, attempts: Attempts, run: Run) -> None:
        """Runs a phase of a wave on its lane, and puts its outcome among the events."""

    @abstractmethod
    def _crashed(self, name: str, error: BaseException) -> CrashStory:
        """Returns why a job crashed, from the error it raised; called on its lane.

        Raises:
            EngineError: Spark is gone.
        """

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Starts job 1 of a wave."""
        given = WaveInput(wave_id, batches, {scope: dict(values) for scope, values in stored.items()})
        wave, deadline = self._wave(given), self._deadline(is_queued=self._is_queued())
        self._waves[wave_id] = wave

        def job() -> Event:
            started_s = time.monotonic()
            processed = at_once(wave.process(early, deadline))
            began_s, self._processed_s = max(started_s, self._processed_s), time.monotonic()
            return replace(processed, seconds=self._processed_s - began_s)

        run = partial(self._run, job, partial(WaveCrashed, wave_id))
        self._submit(PROCESSING, wave_id, tuple(batch.attempt for batch in batches), run)

    def commit(self, wave_id: int, attempts: Attempts, *, composed: bool) -> None:
        """Starts job 2 of a wave; without commit tasks there is nothing to run."""
        if not self._plan.commit_tasks:
            self._events.put(GroupExecuted(wave_id, attempts, ()))
            return
        wave, deadline = self._waves[wave_id], self._deadline()

        def job() -> Event:
            reports = at_once(wave.commit(attempts, composed=composed, deadline=deadline))
            return GroupExecuted(wave_id, attempts, tuple(reports))

        self._submit(COMMIT, wave_id, attempts, partial(self._run, job, partial(GroupCrashed, wave_id, attempts)))

    def next_event(self, timeout_s: float) -> Event | None:
        """Returns the next event; None if there is none in time.

        Raises:
            EngineError: Spark is gone, or cannot work.
        """
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(event, EngineError):
            raise event
        return event

    def _run(
        self, job: Callable[[], Event], crashed: Callable[[str, CrashKind], Event], name: str, begin: Callable[[], None]
    ) -> Event | EngineError:
        """Runs one job on its lane and turns its outcome, whatever it is, into an event."""
        try:
            begin()
            return job()
        except (Exception, OverdueError) as error:  # noqa: BLE001 - the coordinator has to know of any error
            _LOG.debug("a job crashed:\n%s", error)
            try:
                story = self._crashed(name, error)
            except EngineError as gone:
                return gone
            return crashed(story.reason, story.kind)

    def _deadline(self, *, is_queued: bool = False) -> Deadline | None:
        """Returns the deadline of a job that begins now or, if it is queued, at most a timeout later."""
        timeout_s = self._message_timeout_s
        return None if timeout_s is None else Deadline(time.time() + is_queued * timeout_s, timeout_s)
