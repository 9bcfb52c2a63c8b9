"""Logs retried transactions and unusually slow waves and commits, in a bounded number of lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from coordinator.watching.failure_cause import TRACEBACK, gist
from coordinator.watching.log_records import fields
from coordinator.watching.run_observer import AttemptRetried, GroupCommitted, Observation, RunEnded, WaveEnded
from state.attempt import TransactionAttempt
from state.printable import counted, one_line

_LOG = logging.getLogger("txbatch")
EVERY_S = 5.0


class BoundedLog:
    """Logs the first warning at once, then at most one every five seconds, with the number of suppressed ones.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next_s = clock()
        self._left_out = 0
        self._last: tuple[str, Mapping[str, Any]] = ("", {})

    def warn(self, message: str, about: Mapping[str, Any]) -> None:
        """Logs or counts a warning; `about` has its fields, see `coordinator.watching.log_records`."""
        self._last = message, about
        if self._clock() < self._next_s:
            self._left_out += 1
            return
        self._next_s = self._clock() + EVERY_S
        self._say()

    def close(self) -> None:
        """Logs the number of suppressed warnings, with the last message, however old; called at the end of the run."""
        if self._left_out:
            message, about = self._last
            _LOG.warning("not shown so far: %s like this one: %s", f"{self._left_out:,}", message, extra=dict(about))
            self._left_out = 0

    def _say(self) -> None:
        message, about = self._last
        more = f" ({self._left_out:,} more like it, earlier, not shown)" if self._left_out else ""
        _LOG.warning("%s%s", message, more, extra=dict(about))
        self._left_out = 0


class RetryLog:
    """Observes a run; logs its first replay at once, later ones as `BoundedLog` allows, and a summary at the end.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._log = BoundedLog(clock)

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case AttemptRetried(attempt, reason, wave_id):
                shown = gist(reason) if TRACEBACK in reason else reason
                about = fields(attempt, wave=wave_id or None, reason=shown)
                self._log.warn(f"attempt {attempt} failed and is replayed: {shown}", about)
            case RunEnded():
                self._log.close()
            case _:
                pass


SLOW_COMMIT_S = 1.0
"""A commit that takes longer is slow: even one of 50,000 changes keeps a server busy for only about 60 ms."""
SLOW_WAVE_S = 5.0
SLOW_WAVE_FACTOR = 3.0
"""A wave is slow if it takes longer than `SLOW_WAVE_S`, and this many times the average of earlier waves."""
COMPONENTS_SHOWN = 3


class SlowLog:
    """Observes a run and logs slow waves and commits; the first wave, which starts the workers, never counts as slow.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._waves, self._commits = BoundedLog(clock), BoundedLog(clock)
        self._wave_count = 0
        self._wave_total_s = 0.0

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case WaveEnded(crash=None):
                self._wave_ended(observation)
            case GroupCommitted(seconds=seconds) if seconds > SLOW_COMMIT_S:
                self._commit_was_slow(observation)
            case RunEnded():
                self._waves.close()
                self._commits.close()
            case _:
                pass

    def _wave_ended(self, wave: WaveEnded) -> None:
        if self._wave_count and wave.seconds > SLOW_WAVE_S:
            usual_s = self._wave_total_s / self._wave_count
            if wave.seconds > SLOW_WAVE_FACTOR * usual_s:
                self._wave_was_slow(wave, usual_s)
        self._wave_count += 1
        self._wave_total_s += wave.seconds

    def _wave_was_slow(self, wave: WaveEnded, usual_s: float) -> None:
        spent = [f"{seconds:.1f} s in {one_line(name)!r}" for name, seconds in wave.task_seconds()[:COMPONENTS_SHOWN]]
        reason = f"its tasks spent {', '.join(spent)}" if spent else "no time of its tasks is known"
        of_txids = f" ({_names(wave.attempts)})" if wave.attempts else ""
        message = (
            f"wave {wave.wave_id}{of_txids} took {wave.seconds:.1f} s, where earlier ones took {usual_s:.1f} s on "
            f"average; {reason}"
        )
        self._waves.warn(message, {**_span(wave.attempts), **fields(wave=wave.wave_id, reason=reason)})

    def _commit_was_slow(self, commit: GroupCommitted) -> None:
        reason = f"{counted(commit.operation_count, 'change')}, {commit.byte_count / 1e6:.1f} MB"
        message = (
            f"the commit of {_names(commit.attempts)} took {commit.seconds:.1f} s ({reason}); look at the server, its "
            "disk and the network in between"
        )
        self._commits.warn(message, {**_span(commit.attempts), **fields(phase="commit", reason=reason)})


def _names(attempts: tuple[TransactionAttempt, ...]) -> str:
    first, last = attempts[0].txid, attempts[-1].txid
    return f"txid {first}" if first == last else f"txids {first}..{last}"


def _span(attempts: tuple[TransactionAttempt, ...]) -> dict[str, int]:
    return {"txid": attempts[0].txid, "last_txid": attempts[-1].txid} if attempts else {}
