"""Logs what may happen a thousand times a second in a bounded number of lines, and counts the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

_LOG = logging.getLogger("txbatch")
EVERY_S = 5.0


class BoundedLog:
    """Logs the first warning at once, then at most one in five seconds, with the number left out.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next_s = clock()
        self._left_out = 0
        self._last: tuple[str, Mapping[str, Any]] = ("", {})

    def warn(self, message: str, about: Mapping[str, Any]) -> None:
        """Logs or counts a warning; `about` has its fields, see `coordinator.watching.log_fields`."""
        self._last = message, about
        if self._clock() < self._next_s:
            self._left_out += 1
            return
        self._next_s = self._clock() + EVERY_S
        self._say()

    def close(self) -> None:
        """Logs the number left out, with the last message, which may be long past; called at the end of the run."""
        if self._left_out:
            message, about = self._last
            _LOG.warning("not shown so far: %s like this one: %s", f"{self._left_out:,}", message, extra=dict(about))
            self._left_out = 0

    def _say(self) -> None:
        message, about = self._last
        more = f" ({self._left_out:,} more like it, earlier, not shown)" if self._left_out else ""
        _LOG.warning("%s%s", message, more, extra=dict(about))
        self._left_out = 0
