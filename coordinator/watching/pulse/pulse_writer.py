"""Writes a run's pulse from a separate thread, so that no commit ever waits for it.

The coordinator's thread passes on news about once a second. The writer sends the newest, and without news it only
reports that the process is alive: a driver may be busy in user code, or wait for the server.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from coordinator.watching.pulse.stories import Story
from state.errors import TransactionError
from state.printable import message_of
from state.records.run_pulse import NOW_FIELD, PULSE_EVERY_S, RUN_FIELD, SAMPLE_PREFIX, SAMPLES_KEPT, SEEN_FIELD

STORIES_PER_CALL = 1_000
"""Most stories in one call, so that it takes the server only a few milliseconds."""
STORIES_WAITING = 20_000
"""Most stories waiting to be sent; while the server does not answer, the oldest are dropped."""
CLOSE_TIMEOUT_S = 3.0
_LOG = logging.getLogger("txbatch")


class Sender(Protocol):
    """The used part of `PulseSender`."""

    def send(self, fields: Mapping[str, str], stories: list[tuple[int, str]], *, kept: int) -> bool:
        """Writes fields and stories, and returns whether the run still owns the topology."""


class PulseWriter:
    """Writes one run's pulse; a pulse that fails is logged once and never fails the run.

    Args:
        identity: `RunIdentity` as text; sent with the first pulse.
        wall_clock: seconds since the epoch.
        kept: how many transactions keep a story.
    """

    def __init__(self, sender: Sender, identity: str, *, wall_clock: Callable[[], float], kept: int) -> None:
        self._sender, self._wall_clock, self.kept = sender, wall_clock, kept
        self._news: dict[str, str] = {RUN_FIELD: identity}
        self._stories: deque[Story] = deque(maxlen=STORIES_WAITING)
        self._wake = threading.Condition()
        self._is_closing = self._has_failed = self._is_fenced = False
        self._thread = threading.Thread(target=self._work, name="txbatch-pulse", daemon=True)

    def start(self) -> None:
        """Starts the thread; called once."""
        self._thread.start()

    def take(self, now: str, sample: str, stories: Sequence[Story]) -> None:
        """Takes the current figures, a sample and new stories; returns at once (coordinator's thread).

        Args:
            now: `RunFigures` as text.
            sample: `PulseSample` as text.
            stories: ascending by txid; turned into text on the writer's thread.
        """
        with self._wake:
            place = int(self._wall_clock()) % SAMPLES_KEPT
            self._news |= {NOW_FIELD: now, f"{SAMPLE_PREFIX}{place}": sample}
            self._stories.extend(stories)
            self._wake.notify()

    def close(self) -> None:
        """Sends all remaining news, within `CLOSE_TIMEOUT_S`, and ends the thread."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _work(self) -> None:
        is_closing = False
        while not is_closing:
            with self._wake:
                if not self._is_closing and NOW_FIELD not in self._news:
                    self._wake.wait(PULSE_EVERY_S)
                is_closing = self._is_closing
            self.send_once()
            while is_closing and self._stories and not self._is_fenced and not self._has_failed:
                self.send_once()

    def send_once(self) -> None:
        """Sends the news and as many stories as fit into one call; keeps them if the server does not take them."""
        if self._is_fenced:
            return
        with self._wake:
            news, self._news = self._news, {}
            stories = [self._stories.popleft() for _ in range(min(len(self._stories), STORIES_PER_CALL))]
        try:
            seen = {SEEN_FIELD: f"{self._wall_clock():.3f}"}
            texts = [(each.txid, each.to_json()) for each in stories]
            self._is_fenced = not self._sender.send(news | seen, texts, kept=self.kept)
        except TransactionError as error:
            self._keep(news, stories)
            if not self._has_failed:
                _LOG.warning(
                    "the run's pulse cannot be written, so `txbatch status` shows nothing new until it can; the run "
                    "continues by itself: %s",
                    message_of(error),
                )
            self._has_failed = True
        except Exception:  # noqa: BLE001 - a fault of txbatch, which would recur with these stories: give them up
            _LOG.exception("the run's pulse has a fault; the run continues")
            self._has_failed = True
        else:
            self._has_failed = False

    def _keep(self, news: dict[str, str], stories: list[Story]) -> None:
        with self._wake:
            self._news = news | self._news
            room = STORIES_WAITING - len(self._stories)
            self._stories.extendleft(reversed(stories[len(stories) - min(room, len(stories)) :]))
