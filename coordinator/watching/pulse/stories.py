"""The story of each transaction, from its first cut to its commit or the end of the run. Pure.

While a run commits, only references are kept; a story becomes text when it is sent, on the sending thread.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator.watching.failure_cause import FailureCause, gist
from coordinator.watching.run_observer import (
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    Observation,
    WaveEnded,
    WaveStarted,
)
from state.attempt import TransactionAttempt
from state.records.transaction_story import STORY_ATTEMPTS_MAX

FAILED_STORIES_MAX = 100
"""Most uncommitted transactions whose stories are sent at the end of a run: the lowest, including the culprit."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


@dataclass(slots=True)
class AttemptTrack:
    """An attempt that a wave has taken; times are by the run's clock.

    Attributes:
        started_s, ended_s: when the wave was started, and when the attempt failed or was dropped.
        failed: the cause in few words; "" while it is under way, or committed.
        reason: the cause in a line.
    """

    attempt: TransactionAttempt
    wave_id: int
    started_s: float
    ended_s: float = 0.0
    failed: str = ""
    reason: str = ""

    def to_dict(self, epoch_s: float, committed_s: float) -> dict[str, Any]:
        """Returns the attempt in its stored form."""
        stored = {
            "attempt_id": f"{self.attempt.attempt_id:016x}",
            "wave": self.wave_id,
            "started_at": _rounded(epoch_s + self.started_s),
            "ended_at": _rounded(epoch_s + (self.ended_s if self.failed else committed_s)),
        }
        return stored | {"failed": self.failed, "reason": self.reason} if self.failed else stored


@dataclass(slots=True)
class Story:
    """One transaction; times are by the run's clock.

    Attributes:
        epoch_s: seconds since the epoch at 0 of the run's clock.
        cut_s: when the run first cut it, or a wave first took it.
        input_bytes: estimated size of its input.
        attempts: the last attempts, ascending.
        attempt_count: the number of all attempts.
        processed_s: when the processing phase of the last attempt ended.
        outcome: the ackers' result.
        group: the group with which it was committed; None before.
        committed_s: when it was committed.
    """

    txid: int
    epoch_s: float
    cut_s: float
    input_bytes: int = 0
    attempts: list[AttemptTrack] = field(default_factory=list)
    attempt_count: int = 0
    processed_s: float | None = None
    outcome: AttemptResult | None = None
    group: GroupCommitted | None = None
    committed_s: float = 0.0

    def current(self, attempt: TransactionAttempt) -> AttemptTrack | None:
        """Returns the track of this attempt if it is under way."""
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.attempt == attempt and not last.failed else None

    def began(self, attempt: TransactionAttempt, wave_id: int, now_s: float) -> None:
        """Adds an attempt; only the last ones are kept."""
        self.outcome = self.processed_s = None
        self.attempt_count += 1
        self.attempts = [*self.attempts[-(STORY_ATTEMPTS_MAX - 1) :], AttemptTrack(attempt, wave_id, now_s)]

    def has_failed(self) -> bool:
        """Returns whether one of its attempts has failed, or was dropped."""
        return any(attempt.failed for attempt in self.attempts)

    def to_json(self) -> str:
        """Returns the stored text; default values are left out."""
        stored = self._without_commit() if self.group is None else self._with(self.group)
        return _ENCODER.encode(stored)

    def _at(self, now_s: float) -> float:
        return _rounded(self.epoch_s + now_s)

    def _without_commit(self) -> dict[str, Any]:
        """Returns the attempts only, since nothing of an uncommitted transaction counts."""
        ended = [attempt for attempt in self.attempts if attempt.failed]
        return {
            "cut_at": self._at(self.cut_s),
            "attempts": [attempt.to_dict(self.epoch_s, 0.0) for attempt in ended],
            "attempt_count": self.attempt_count - (len(self.attempts) - len(ended)),
            "input_bytes": self.input_bytes,
        }

    def _with(self, group: GroupCommitted) -> dict[str, Any]:
        stored: dict[str, Any] = {
            "cut_at": self._at(self.cut_s),
            "processed_at": 0.0 if self.processed_s is None else self._at(self.processed_s),
            "sent_at": self._at(self.committed_s - group.seconds),
            "committed_at": self._at(self.committed_s),
            "attempts": [attempt.to_dict(self.epoch_s, self.committed_s) for attempt in self.attempts],
            "attempt_count": self.attempt_count,
            "first_txid": group.attempts[0].txid,
            "last_txid": group.attempts[-1].txid,
            "input_bytes": self.input_bytes,
            "group_bytes": group.byte_count,
            "tuples": 0 if self.outcome is None else self.outcome.tuple_count,
            "components": self._components(group),
        }
        if group.is_set_aside:
            stored["set_aside"] = True
        if group.republished_txid or group.republished_letters:
            stored["republishes"], stored["republished_letters"] = group.republished_txid, group.republished_letters
        return stored

    def _components(self, group: GroupCommitted) -> dict[str, dict[str, Any]]:
        done: dict[str, dict[str, Any]] = {}
        if self.outcome is not None:
            for component_id, metrics in self.outcome.metrics.items():
                _add(done, component_id, metrics)
        place = self.txid - group.attempts[0].txid
        for report in group.reports:
            if place < len(report.results):
                _add(done, report.component_id, report.results.work(report.component_id, slice(place, place + 1)))
        return done


class Stories:
    """The stories of one run's transactions; notified of all observations on the coordinator's thread.

    Args:
        epoch_s: seconds since the epoch at 0 of the run's clock.
    """

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._open: dict[int, Story] = {}
        self._closed: list[Story] = []

    def note(self, observation: Observation, now_s: float) -> list[Story]:
        """Takes in an observation; returns the transactions that were committed with it."""
        match observation:
            case AttemptsIssued(cuts=cuts):
                for txid, cut_s, byte_count in cuts:
                    self._opened(txid, cut_s).input_bytes = byte_count
            case WaveStarted(wave_id, attempts):
                for attempt in attempts:  # an earlier run may have cut it
                    self._opened(attempt.txid, now_s).began(attempt, wave_id, now_s)
            case WaveEnded(outcomes=outcomes):
                for outcome in outcomes:
                    story = self._open.get(outcome.attempt.txid)
                    if story is not None and story.current(outcome.attempt) is not None:
                        story.outcome, story.processed_s = outcome, now_s
            case AttemptsFailed():
                self._failed(observation, now_s)
            case GroupCommitted(attempts):
                return [self._committed(attempt.txid, observation, now_s) for attempt in attempts]
            case _:
                pass
        return []

    def take(self) -> list[Story]:
        """Returns the transactions committed since the last call, ascending."""
        closed, self._closed = self._closed, []
        return closed

    def take_failed(self, limit: int = FAILED_STORIES_MAX) -> list[Story]:
        """Returns the lowest uncommitted transactions with failed attempts, ascending.

        Called once, when the run has ended: the server takes stories in ascending order and drops those far below.

        Args:
            limit: most transactions to return.
        """
        failed = [story for _, story in sorted(self._open.items()) if story.has_failed()]
        return failed[: min(limit, FAILED_STORIES_MAX)]

    def _opened(self, txid: int, now_s: float) -> Story:
        story = self._open.get(txid)
        if story is None:
            story = self._open[txid] = Story(txid, self._epoch_s, now_s)
        return story

    def _committed(self, txid: int, group: GroupCommitted, now_s: float) -> Story:
        story = self._open.pop(txid, None) or Story(txid, self._epoch_s, now_s)
        story.group, story.committed_s = group, now_s
        self._closed.append(story)
        return story

    def _failed(self, failed: AttemptsFailed, now_s: float) -> None:
        first, reason = failed.attempts[0], gist(failed.reason)
        culprits = {first, *failed.suspects}
        for attempt in failed.attempts:
            story = self._open.get(attempt.txid)
            track = None if story is None else story.current(attempt)
            if track is None:
                continue  # the attempt only waited for a wave
            track.ended_s = now_s
            if attempt in culprits:
                track.failed, track.reason = FailureCause(failed.cause).words, reason
            else:
                track.failed, track.reason = FailureCause.LOWER_FAILED.words, f"txid {first.txid} failed"


def _rounded(seconds: float) -> float:
    """Returns a time in whole milliseconds; `round` to three digits converts to text, which is four times as slow."""
    return round(1000 * seconds) / 1000


def _add(done: dict[str, dict[str, Any]], component_id: str, work: TaskMetrics) -> None:
    """Adds the work of one or several tasks for the transaction."""
    busy_ms = round((sum(work.execute_ns.values()) + work.finish_ns) / 1e5) / 10
    known = done.get(component_id)
    if known is None:
        done[component_id] = {"tuples_in": work.executed, "tuples_out": work.emitted, "busy_ms": busy_ms}
        known = done[component_id]
    else:
        known["tuples_in"] = _sum(known["tuples_in"], work.executed)
        known["tuples_out"] = _sum(known["tuples_out"], work.emitted)
        known["busy_ms"] = round(10 * (known["busy_ms"] + busy_ms)) / 10
    if work.dead_letters:
        known["dead_letters"] = known.get("dead_letters", 0) + work.dead_letters


def _sum(counts: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}} if more else counts
