"""The engine on Spark Connect: two lanes, one for processing and one for commits, and queries that carry tags."""

from __future__ import annotations

import itertools
import logging
import time
from functools import partial
from typing import Any

from coordinator.engines.connect.arrow_stages import PackedPlan, nothing_done
from coordinator.engines.connect.connect_session import asked
from coordinator.engines.connect.query_stages import QueryStages
from coordinator.engines.spark.crash_story import blamed, crash_story
from coordinator.engines.spark.lane import Lane
from coordinator.engines.spark.session import is_fair
from coordinator.engines.spark.shipping import dumps
from coordinator.engines.waves.stage import WaveInput
from coordinator.engines.waves.stage_context import StageContext
from coordinator.engines.waves.wave import Wave
from coordinator.engines.waves.wave_engine import PROCESSING, Run, WaveEngine
from coordinator.engines.waves.worker_traceback import CrashStory
from coordinator.topology.planning.plan import Plan
from state.attempt import Attempts
from state.errors import EngineError
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch.spark")
CANCEL_MAX_S = 30.0
"""How long a query that was interrupted may take to end; then its server is as good as gone."""
INTERRUPT_EVERY_S = 0.5


class ConnectEngine(WaveEngine):
    """Runs waves as queries of a Spark Connect session.

    Args:
        session: a Spark Connect session, which stays open after `close`.
        plan: the plan to run.
        redis_url, nonce, message_timeout_s: see `WaveEngine`.
    """

    def __init__(
        self, session: Any, plan: Plan, redis_url: str, nonce: str, message_timeout_s: float | None = None
    ) -> None:
        super().__init__(plan, redis_url, nonce, message_timeout_s)
        self._session = session
        self._entry = StageContext(PackedPlan(dumps(plan), nonce))
        self._running: dict[str, int] = {}
        self._query_count = itertools.count(1)
        names = ("processing", "commit", "cancelling")
        self._processing_lane, self._commit_lane, self._cancel_lane = (Lane(f"txbatch-{name}") for name in names)
        self.overlaps = is_fair(lambda name, default: asked(lambda: session.conf.get(name, default)))
        self.queues = False

    def _wave(self, given: WaveInput) -> Wave[Any]:
        return Wave(self._plan, QueryStages(self._session, self._plan), given, self._entry, self._reading)

    def _submit(self, phase: str, wave_id: int, attempts: Attempts, run: Run) -> None:
        tag = f"txbatch-{id(self)}-{phase}-{wave_id}-{next(self._query_count)}"

        def query() -> None:
            self._running[tag] = wave_id
            event = run(tag, partial(self._session.addTag, tag))  # of this thread
            self._session.removeTag(tag)
            self._running.pop(tag)
            self._events.put(event)

        (self._processing_lane if phase == PROCESSING else self._commit_lane).submit(query)

    def _crashed(self, name: str, error: BaseException) -> CrashStory:
        story = blamed(crash_story(error), lambda: nothing_done(self._session), has_processed=self._has_processed)
        asked(lambda: self._session.conf.get("spark.sql.session.timeZone"))  # known to every server
        return story

    def cancel(self, wave_id: int) -> None:
        """Interrupts the queries of a wave."""
        for tag in [tag for tag, running in list(self._running.items()) if running == wave_id]:
            self._cancel_lane.submit(partial(self._interrupt, tag))

    def release(self, wave_id: int) -> None:
        """Forgets a wave; Spark keeps nothing of it."""
        self._waves.pop(wave_id, None)

    def close(self) -> None:
        """Interrupts what runs and waits for the lanes."""
        for wave_id in set(self._running.values()):
            self.cancel(wave_id)
        for lane in (self._commit_lane, self._processing_lane, self._cancel_lane):
            lane.close(CANCEL_MAX_S)
        self._private.cleanup()

    def _interrupt(self, tag: str) -> None:
        """Interrupts a query again and again until it has ended: at first, the server may not know of it yet."""
        until_s = time.monotonic() + CANCEL_MAX_S
        while tag in self._running and time.monotonic() < until_s:
            try:
                self._session.interruptTag(tag)
            except Exception as error:  # noqa: BLE001 - the query will raise it, too
                _LOG.debug("a query was not interrupted: %s", crash_story(error).reason)
            time.sleep(INTERRUPT_EVERY_S)
        if tag in self._running:
            self._events.put(
                EngineError(
                    f"the Spark Connect server has not ended a query within {CANCEL_MAX_S:g} s of its interruption; "
                    "nothing that was committed is lost; look at the server, and run again"
                ).about(Trouble.SPARK)
            )
