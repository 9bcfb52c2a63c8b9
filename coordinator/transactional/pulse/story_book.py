"""Keeps the stories of transactions until they are committed: events and decisions in, stories out. Pure.

While a run commits, only references are kept; a story is put together when it is taken, on the thread that sends it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from committers.task_report import AttemptVerdict
from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator.transactional.engine import GroupExecuted, WaveProcessed
from coordinator.transactional.machine.run_events import (
    BatchCut,
    Decision,
    Dropped,
    Publish,
    Published,
    Refused,
    RunEvent,
    StartWave,
)
from coordinator.transactional.pulse.failure_kinds import VOID
from coordinator.transactional.pulse.gist import gist
from state.attempt import TransactionAttempt
from state.transaction_story import ATTEMPTS_TOLD, AttemptStory, ComponentStory, TransactionStory


@dataclass(slots=True)
class _Open:
    """A transaction that is not committed yet."""

    cut_s: float
    input_bytes: int = 0
    attempts: deque[AttemptStory] = field(default_factory=lambda: deque(maxlen=ATTEMPTS_TOLD))
    attempt_count: int = 0
    current: TransactionAttempt | None = None
    processed_s: float | None = None
    outcome: AttemptOutcome | None = None


@dataclass(frozen=True, slots=True)
class ClosedStory:
    """A committed transaction, and all that its story is put together from.

    Attributes:
        txid: of the transaction.
        told: the story, without what the tasks have done.
        outcome: of its processing phase, None if it was set aside.
        verdicts: (component id, what a commit task said of it).
    """

    txid: int
    told: TransactionStory
    outcome: AttemptOutcome | None
    verdicts: tuple[tuple[str, AttemptVerdict], ...]

    def story(self) -> TransactionStory:
        """Returns the whole story."""
        done: dict[str, TaskMetrics] = {}
        if self.outcome is not None:
            for component_id, metrics in self.outcome.metrics.items():
                done.setdefault(component_id, TaskMetrics()).add(metrics)
        for component_id, verdict in self.verdicts:
            done.setdefault(component_id, TaskMetrics()).add(verdict.metrics)
        components = {component_id: _component(metrics) for component_id, metrics in sorted(done.items())}
        return replace(self.told, components=components)


class StoryBook:
    """The transactions of one run; told of everything on the coordinator's thread.

    Args:
        epoch_s: what to add to the run's clock to get seconds since the epoch.
    """

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s
        self._open: dict[int, _Open] = {}
        self._executed: GroupExecuted | None = None
        self._publishing: tuple[Publish, float] | None = None
        self._closed: list[ClosedStory] = []

    def heard(self, event: RunEvent, now_s: float) -> None:
        """Takes an event, before the machine handles it."""
        match event:
            case BatchCut(txid=txid, byte_count=byte_count):
                self._open.setdefault(txid, _Open(now_s)).input_bytes = byte_count
            case WaveProcessed(outcomes=outcomes):
                for outcome in outcomes:
                    opened = self._open.get(outcome.attempt.txid)
                    if opened is not None and opened.current == outcome.attempt:
                        opened.outcome, opened.processed_s = outcome, now_s
            case GroupExecuted():
                self._executed = event
            case Published(byte_count=byte_count):
                self._published(now_s, byte_count)
            case Refused():
                self._publishing = None

    def decided(self, decision: Decision, now_s: float, kind: str = "") -> None:
        """Takes a decision, before it is carried out.

        Args:
            decision: the decision.
            now_s: the time.
            kind: of the failure, if attempts are dropped.
        """
        match decision:
            case StartWave(wave_id=wave_id, batches=batches):
                started_at = self._at(now_s)
                for batch in batches:
                    opened = self._open.setdefault(batch.attempt.txid, _Open(now_s))
                    opened.current, opened.outcome, opened.processed_s = batch.attempt, None, None
                    opened.attempt_count += 1
                    opened.attempts.append(AttemptStory(_shown(batch.attempt), wave_id, started_at))
            case Publish():
                self._publishing = (decision, now_s)
            case Dropped():
                self._dropped(decision, now_s, kind)

    def take(self) -> list[ClosedStory]:
        """Returns the transactions committed since the last call, ascending."""
        closed, self._closed = self._closed, []
        return closed

    def _dropped(self, dropped: Dropped, now_s: float, kind: str) -> None:
        for attempt in dropped.attempts:
            opened = self._open.get(attempt.txid)
            if opened is None or opened.current != attempt:
                continue  # it only waited for a wave
            first = dropped.attempts[0]
            failed, reason = (kind, gist(dropped.reason)) if attempt == first else (VOID, f"txid {first.txid} failed")
            opened.attempts[-1] = replace(opened.attempts[-1], ended_at=self._at(now_s), failed=failed, reason=reason)
            opened.current = None

    def _published(self, now_s: float, byte_count: int) -> None:
        if self._publishing is None:
            return
        (publish, sent_s), self._publishing = self._publishing, None
        executed, first, last = self._executed, publish.attempts[0].txid, publish.attempts[-1].txid
        reports = () if executed is None or executed.attempts[0] != publish.attempts[0] else executed.reports
        for place, attempt in enumerate(publish.attempts):
            opened = self._open.pop(attempt.txid, None) or _Open(now_s)
            attempts = opened.attempts
            if attempts and opened.current == attempt:
                attempts[-1] = replace(attempts[-1], ended_at=self._at(now_s))
            replay = publish.replay
            told = TransactionStory(
                cut_at=self._at(opened.cut_s),
                processed_at=0.0 if opened.processed_s is None else self._at(opened.processed_s),
                sent_at=self._at(sent_s),
                committed_at=self._at(now_s),
                attempts=tuple(attempts),
                attempt_count=opened.attempt_count,
                first_txid=first,
                last_txid=last,
                input_bytes=opened.input_bytes,
                group_bytes=byte_count,
                tuples=0 if opened.outcome is None else opened.outcome.tuple_count,
                set_aside=publish.poison is not None,
                replay_of=0 if replay is None or replay.letters else replay.txid,
                replayed_letters=0 if replay is None else len(replay.letters),
            )
            verdicts = tuple(
                (each.component_id, each.verdicts[place]) for each in reports if place < len(each.verdicts)
            )
            self._closed.append(ClosedStory(attempt.txid, told, opened.outcome, verdicts))

    def _at(self, now_s: float) -> float:
        return round(self._epoch_s + now_s, 3)


def _component(done: TaskMetrics) -> ComponentStory:
    busy_ns = sum(done.execute_ns.values()) + done.finish_ns
    return ComponentStory(dict(done.executed), dict(done.emitted), round(busy_ns / 1e6, 1), done.dead_letters)


def _shown(attempt: TransactionAttempt) -> str:
    return f"{attempt.attempt_id:016x}"
