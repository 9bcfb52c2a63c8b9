"""Keeps the stories of transactions until they are committed, or the run ends: observations in, stories out. Pure.

While a run commits, only references are kept; a story is put together when it is taken, on the thread that sends it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator.gist import gist
from coordinator.run_observer import (
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    Observation,
    WaveEnded,
    WaveStarted,
)
from coordinator.transactional.failure_cause import FailureCause
from state.attempt import TransactionAttempt
from state.records.transaction_story import ATTEMPTS_TOLD, TransactionStory, story_of

FAILED_TOLD = 100
"""Most transactions without a commit that are told when the run ends: the lowest ones, among which is the culprit."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True)
class _Try:
    """An attempt; times on the run's clock."""

    attempt: TransactionAttempt
    wave_id: int
    started_s: float
    ended_s: float = 0.0
    failed: str = ""
    reason: str = ""
    is_current: bool = True


@dataclass(slots=True)
class _Open:
    """A transaction that is not committed yet."""

    cut_s: float
    input_bytes: int = 0
    tries: list[_Try] = field(default_factory=list)
    attempt_count: int = 0
    processed_s: float | None = None
    outcome: AttemptResult | None = None

    def is_current(self, attempt: TransactionAttempt) -> bool:
        """Returns whether this attempt is under way."""
        return bool(self.tries) and self.tries[-1].is_current and self.tries[-1].attempt == attempt

    def began(self, attempt: _Try) -> None:
        """Adds an attempt; of many, the last ones are kept."""
        self.outcome = self.processed_s = None
        self.attempt_count += 1
        self.tries.append(attempt)
        if len(self.tries) > ATTEMPTS_TOLD:
            del self.tries[0]


@dataclass(slots=True)
class _Group:
    """What was committed together."""

    committed: GroupCommitted
    committed_s: float
    epoch_s: float

    def at(self, now_s: float) -> float:
        return round(self.epoch_s + now_s, 3)


@dataclass(slots=True)
class ClosedStory:
    """A committed transaction, and all that its story is put together from.

    Attributes:
        txid: of the transaction.
        opened: what happened before its commit.
        group: what it was committed with.
        place: its place there.
    """

    txid: int
    opened: _Open
    group: _Group
    place: int

    def to_json(self) -> str:
        """Returns the story as the text that is stored; what has its usual value is left out."""
        opened, group, committed = self.opened, self.group, self.group.committed
        told: dict[str, Any] = {
            "cut_at": group.at(opened.cut_s),
            "processed_at": 0.0 if opened.processed_s is None else group.at(opened.processed_s),
            "sent_at": group.at(group.committed_s - committed.seconds),
            "committed_at": group.at(group.committed_s),
            "attempts": [self._attempt(each) for each in opened.tries],
            "attempt_count": opened.attempt_count,
            "first_txid": committed.attempts[0].txid,
            "last_txid": committed.attempts[-1].txid,
            "input_bytes": opened.input_bytes,
            "group_bytes": committed.byte_count,
            "tuples": 0 if opened.outcome is None else opened.outcome.tuple_count,
            "components": self._components(),
        }
        if committed.is_set_aside:
            told["set_aside"] = True
        if committed.replayed_txid or committed.replayed_letters:
            told["replay_of"], told["replayed_letters"] = committed.replayed_txid, committed.replayed_letters
        return _ENCODER.encode(told)

    def story(self) -> TransactionStory:
        """Returns the story as a reader will have it."""
        story = story_of(self.to_json())
        assert story is not None
        return story

    def _attempt(self, each: _Try) -> dict[str, Any]:
        ended_s = self.group.committed_s if each.is_current else each.ended_s
        return _told_try(each, self.group.epoch_s, ended_s)

    def _components(self) -> dict[str, dict[str, Any]]:
        told: dict[str, dict[str, Any]] = {}
        if self.opened.outcome is not None:
            for component_id, metrics in self.opened.outcome.metrics.items():
                _add(told, component_id, metrics)
        for report in self.group.committed.reports:
            if self.place < len(report.results):
                for component_id, metrics in report.results[self.place].metrics.items():
                    _add(told, component_id, metrics)
        return told


@dataclass(slots=True)
class FailedStory:
    """A transaction that the run has attempted and not committed; put together when the run has ended.

    Attributes:
        txid: of the transaction.
        opened: what happened to it.
        epoch_s: what to add to the run's clock to get seconds since the epoch.
    """

    txid: int
    opened: _Open
    epoch_s: float

    def to_json(self) -> str:
        """Returns the story as the text that is stored: it has no commit, and no counts, as nothing of it counts."""
        tries = self.opened.tries
        return _ENCODER.encode(
            {
                "cut_at": round(self.epoch_s + self.opened.cut_s, 3),
                "attempts": [_told_try(each, self.epoch_s, each.ended_s) for each in tries if not each.is_current],
                "attempt_count": self.opened.attempt_count - (1 if tries[-1].is_current else 0),
                "input_bytes": self.opened.input_bytes,
            }
        )

    def story(self) -> TransactionStory:
        """Returns the story as a reader will have it."""
        story = story_of(self.to_json())
        assert story is not None
        return story


Story = ClosedStory | FailedStory


class StoryBook:
    """The transactions of one run; told of everything on the coordinator's thread.

    Args:
        epoch_s: what to add to the run's clock to get seconds since the epoch.
    """

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._open: dict[int, _Open] = {}
        self._closed: list[ClosedStory] = []

    def note(self, observation: Observation, now_s: float) -> None:
        """Takes what was observed just now."""
        match observation:
            case AttemptsIssued(cuts=cuts):
                for txid, cut_s, byte_count in cuts:
                    self._opened(txid, cut_s).input_bytes = byte_count
            case WaveStarted(wave_id, attempts):
                for attempt in attempts:
                    self._opened(attempt.txid, now_s).began(_Try(attempt, wave_id, now_s))
            case WaveEnded(outcomes=outcomes):
                for outcome in outcomes:
                    opened = self._open.get(outcome.attempt.txid)
                    if opened is not None and opened.is_current(outcome.attempt):
                        opened.outcome, opened.processed_s = outcome, now_s
            case AttemptsFailed():
                self._failed(observation, now_s)
            case GroupCommitted(attempts):
                group = _Group(observation, now_s, self._epoch_s)
                for place, attempt in enumerate(attempts):
                    opened = self._open.pop(attempt.txid, None) or _Open(now_s)
                    self._closed.append(ClosedStory(attempt.txid, opened, group, place))
            case _:
                pass

    def take(self) -> list[ClosedStory]:
        """Returns the transactions committed since the last call, ascending."""
        closed, self._closed = self._closed, []
        return closed

    def take_failed(self, limit: int = FAILED_TOLD) -> list[FailedStory]:
        """Returns the lowest transactions of which attempts failed and none was committed, ascending.

        Called once, when the run has ended: the server takes stories in ascending order and lets go of those far below.

        Args:
            limit: most of them.
        """
        failed = [
            txid for txid, opened in sorted(self._open.items()) if any(not each.is_current for each in opened.tries)
        ]
        return [FailedStory(txid, self._open[txid], self._epoch_s) for txid in failed[: min(limit, FAILED_TOLD)]]

    def _opened(self, txid: int, now_s: float) -> _Open:
        opened = self._open.get(txid)
        if opened is None:
            opened = self._open[txid] = _Open(now_s)
        return opened

    def _failed(self, failed: AttemptsFailed, now_s: float) -> None:
        first, reason = failed.attempts[0], gist(failed.reason)
        culprits = {first, *failed.suspects}
        for attempt in failed.attempts:
            opened = self._open.get(attempt.txid)
            if opened is None or not opened.is_current(attempt):
                continue  # it only waited for a wave
            last = opened.tries[-1]
            last.ended_s, last.is_current = now_s, False
            if attempt in culprits:
                last.failed, last.reason = FailureCause(failed.cause).words, reason
            else:
                last.failed, last.reason = FailureCause.LOWER_FAILED.words, f"txid {first.txid} failed"


def _told_try(each: _Try, epoch_s: float, ended_s: float) -> dict[str, Any]:
    told = {
        "attempt_id": f"{each.attempt.attempt_id:016x}",
        "wave": each.wave_id,
        "started_at": round(epoch_s + each.started_s, 3),
        "ended_at": round(epoch_s + ended_s, 3),
    }
    return told | {"failed": each.failed, "reason": each.reason} if each.failed else told


def _add(told: dict[str, dict[str, Any]], component_id: str, done: TaskMetrics) -> None:
    """Adds what a task, or several, did for the transaction."""
    busy_ms = round((sum(done.execute_ns.values()) + done.finish_ns) / 1e6, 1)
    known = told.get(component_id)
    if known is None:
        told[component_id] = {"tuples_in": done.executed, "tuples_out": done.emitted, "busy_ms": busy_ms}
        known = told[component_id]
    else:
        known["tuples_in"] = _sum(known["tuples_in"], done.executed)
        known["tuples_out"] = _sum(known["tuples_out"], done.emitted)
        known["busy_ms"] = round(known["busy_ms"] + busy_ms, 1)
    if done.dead_letters:
        known["dead_letters"] = known.get("dead_letters", 0) + done.dead_letters


def _sum(counts: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + more.get(name, 0) for name in (*counts, *(n for n in more if n not in counts))}
