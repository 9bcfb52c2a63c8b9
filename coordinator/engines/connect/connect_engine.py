"""The engine on Spark Connect: two lanes, one for processing and one for commits, and queries that carry tags."""

from __future__ import annotations

import itertools
import logging
import queue
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from coordinator.engines.connect.arrow_stages import PackedPlan, nothing_done
from coordinator.engines.connect.connect_session import asked
from coordinator.engines.connect.query_stages import QueryStages
from coordinator.engines.spark.alarm import Deadline
from coordinator.engines.spark.crash_story import blamed, crash_story
from coordinator.engines.spark.lane import Lane
from coordinator.engines.spark.session import is_fair
from coordinator.engines.spark.shipping import dumps
from coordinator.engines.spark.stage import Reading, WaveInput
from coordinator.engines.spark.stage_entry import StageEntry
from coordinator.engines.spark.wave import Wave, at_once
from coordinator.spouts.batch_emitters import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from state.attempt import TransactionAttempt
from state.errors import EngineError
from state.redis_topology.reader import save_redis_url
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch")
CANCEL_MAX_S = 30.0
"""How long a query that was interrupted may take to end; then its server is as good as gone."""
INTERRUPT_EVERY_S = 0.5


class ConnectEngine:
    """Runs waves as queries of a Spark Connect session.

    Args:
        session: of Spark Connect; stays open after `close`.
        plan: what to run.
        redis_url: where committers' reads go; written to a file only its owner can read.
        nonce: of this run; its committers read no state that another run has written.
        message_timeout_s: how long a query may take before user code that does not return is ended; None for ever.
    """

    def __init__(
        self, session: Any, plan: Plan, redis_url: str, nonce: str, message_timeout_s: float | None = None
    ) -> None:
        self._session, self._plan, self._message_timeout_s = session, plan, message_timeout_s
        self._private = tempfile.TemporaryDirectory(prefix="txbatch-run-")
        reading = Reading(save_redis_url(redis_url, Path(self._private.name)), nonce)
        self._entry, self._reading = StageEntry(PackedPlan(dumps(plan), nonce)), reading
        self._waves: dict[int, Wave[Any]] = {}
        self._running: dict[str, int] = {}
        self._query_count = itertools.count(1)
        self._events: queue.SimpleQueue[Event | EngineError] = queue.SimpleQueue()
        names = ("processing", "commit", "cancelling")
        self._processing_lane, self._commit_lane, self._cancel_lane = (Lane(f"txbatch-{name}") for name in names)
        self.overlaps = is_fair(lambda name, default: asked(lambda: session.conf.get(name, default)))
        self.queues = False

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Starts query 1 of a wave."""
        wave_input = WaveInput(wave_id, batches, {scope: dict(values) for scope, values in stored.items()})
        stages = QueryStages(self._session, self._plan)
        wave = self._waves[wave_id] = Wave(self._plan, stages, wave_input, self._entry, self._reading)
        deadline = self._deadline()

        def query() -> Event:
            started_s = time.monotonic()
            return replace(at_once(wave.process(early, deadline)), seconds=time.monotonic() - started_s)

        run = partial(self._run, "processing", wave_id, query, partial(WaveCrashed, wave_id))
        self._processing_lane.submit(run)

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """Starts query 2 of a wave; without commit tasks there is nothing to run."""
        if not self._plan.commit_tasks:
            self._events.put(GroupExecuted(wave_id, attempts, ()))
            return
        wave, deadline = self._waves[wave_id], self._deadline()

        def query() -> Event:
            reports = at_once(wave.commit(attempts, composed=composed, deadline=deadline))
            return GroupExecuted(wave_id, attempts, tuple(reports))

        run = partial(self._run, "commit", wave_id, query, partial(GroupCrashed, wave_id, attempts))
        self._commit_lane.submit(run)

    def cancel(self, wave_id: int) -> None:
        """Interrupts the queries of a wave."""
        for tag in [tag for tag, running in list(self._running.items()) if running == wave_id]:
            self._cancel_lane.submit(partial(self._interrupt, tag))

    def release(self, wave_id: int) -> None:
        """Forgets a wave; Spark keeps nothing of it."""
        self._waves.pop(wave_id, None)

    def next_event(self, timeout_s: float) -> Event | None:
        """Returns the next event, or None after the time.

        Raises:
            EngineError: the server or the session is gone.
        """
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(event, EngineError):
            raise event
        return event

    def close(self) -> None:
        """Interrupts what runs and waits for the lanes."""
        for wave_id in set(self._running.values()):
            self.cancel(wave_id)
        for lane in (self._commit_lane, self._processing_lane, self._cancel_lane):
            lane.close(CANCEL_MAX_S)
        self._private.cleanup()

    def _run(
        self,
        phase: str,
        wave_id: int,
        query: Callable[[], Event],
        crashed: Callable[[str, CrashKind], Event],
    ) -> None:
        """Runs one query on its lane and turns whatever happens into an event."""
        tag = f"txbatch-{id(self)}-{phase}-{wave_id}-{next(self._query_count)}"
        self._running[tag] = wave_id
        self._session.addTag(tag)  # of this thread
        event: Event | EngineError
        try:
            event = query()
        except Exception as error:  # noqa: BLE001 - whatever Spark raises, the coordinator has to know
            _LOG.debug("a query crashed:\n%s", error)
            try:
                story = blamed(crash_story(error), lambda: nothing_done(self._session))
                asked(lambda: self._session.conf.get("spark.sql.session.timeZone"))  # known to every server
                event = crashed(story.reason, story.kind)
            except EngineError as gone:
                event = gone
        self._session.removeTag(tag)
        self._running.pop(tag)
        self._events.put(event)

    def _interrupt(self, tag: str) -> None:
        """Interrupts a query until it has ended: the server may not have heard of it at first."""
        until_s = time.monotonic() + CANCEL_MAX_S
        while tag in self._running and time.monotonic() < until_s:
            try:
                self._session.interruptTag(tag)
            except Exception as error:  # noqa: BLE001 - the query will say it, too
                _LOG.debug("a query was not interrupted: %s", crash_story(error).reason)
            time.sleep(INTERRUPT_EVERY_S)
        if tag in self._running:
            self._events.put(
                EngineError(
                    f"the Spark Connect server has not ended a query within {CANCEL_MAX_S:g} s of its interruption; "
                    "nothing that was committed is lost; look at the server, and run again"
                ).about(Trouble.SPARK)
            )

    def _deadline(self) -> Deadline | None:
        return None if self._message_timeout_s is None else Deadline(time.time(), self._message_timeout_s)
