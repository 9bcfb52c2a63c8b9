"""The run machine driven by hand: what it asks of the spout is answered from a script, everything else by the test.

`Driven` is the machine as it is. In `ByHand` one open wave takes every attempt, so that each is acked or failed
alone and any neighbours may share a group, the way Storm's coordinator is told of its attempts.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.batch import Batch
from coordinator.transactional.engine import EarlyCommit, GroupExecuted, WaveProcessed
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.run_events import (
    BatchCut,
    Cut,
    Decision,
    Halt,
    NothingToCut,
    NotifySpout,
    Publish,
    Published,
    Refused,
    RunEvent,
    SpoutNotified,
    StartCommit,
    StartWave,
    StoreMetadata,
    Turn,
)
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.wave_records import WaveRecord, WaveRecords
from coordinator.transactional.options import RunOptions
from coordinator.watching.run_observer import AttemptRetried, AttemptsFailed, AttemptsIssued
from state.attempt import Attempts, TransactionAttempt
from state.codec import pack
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet, compose
from state.errors import StateRefusedError
from state.values.state_kind import StateKind, ValueType
from tests.support.machine.links import linked

TASK = 7
LATER = Failure(FailureKind.FAILED, "count", 0, "no")


def att(txid: int, attempt_id: int) -> TransactionAttempt:
    return TransactionAttempt(txid, attempt_id)


def attempts_in(decisions: list[Decision]) -> dict[int, TransactionAttempt]:
    """Txid -> attempt, of the waves that begin here."""
    waves = [decision for decision in decisions if isinstance(decision, StartWave)]
    return {batch.attempt.txid: batch.attempt for wave in waves for batch in wave.batches}


def emitted(decisions: list[Decision]) -> list[int]:
    """The txids whose processing phase begins here."""
    return list(attempts_in(decisions))


def snapshot(driven: Driven) -> tuple[Any, ...]:
    """Everything a machine knows of its attempts."""
    machine = driven.machine
    parts = machine.currtx, machine._transactions._records, machine._commits.phase, machine._books.waves.size.limit
    return copy.deepcopy(parts)


def wave(
    wave_id: int, *batches: tuple[int, int, Any], stored: Mapping[str, Mapping[int, Any]] | None = None
) -> StartWave:
    """A wave of (txid, attempt id, metadata)."""
    sent = tuple(Batch(att(txid, i), pack(metadata)) for txid, i, metadata in batches)
    return StartWave(wave_id, sent, EarlyCommit(), stored or {})


def store(**metadata: Any) -> StoreMetadata:
    """Metadata by txid: `store(t1=10)`."""
    return StoreMetadata({f"coordinator:{name[1:]}": value for name, value in metadata.items()})


def counted(txid: int, operation_count: int = 1) -> WriteSet:
    """That many changes, none of which another transaction makes."""
    increments: dict[Any, Any] = {f"tx{txid}.{place}": 1 for place in range(operation_count)}
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, increments=increments)})


@dataclass(slots=True)
class ScriptedSource:
    """Answers each cut from a list, then no; what it cuts is another value each time.

    Attributes:
        answers: "yes" or "no", for new transactions and replays alike.
        asked: what it was asked, answered or not.
        takes_s: how long it takes to cut one.
        now_s: the clock.
    """

    answers: list[str] = field(default_factory=list)
    asked: list[Cut] = field(default_factory=list)
    takes_s: float = 0.0
    now_s: float = 0.0
    _serial: Any = field(default_factory=lambda: count(1))

    def __call__(self, cut: Cut) -> BatchCut | NothingToCut:
        self.asked.append(cut)
        if not self.answers or self.answers.pop(0) == "no":
            return NothingToCut(cut.txid, self.now_s)
        self.now_s += self.takes_s
        return BatchCut(cut.txid, f"cut {next(self._serial)} of {cut.txid}", self.now_s)


def ready(times: int = 1000) -> ScriptedSource:
    return ScriptedSource(["yes"] * times)


class Driven:
    """A machine, validated after every event; one commit task, number 7 of component "count".

    Args:
        source: answers what is to be cut.
        metadata: txid -> stored metadata of the spout's coordinator.
        committed_txid: last committed txid.
        plan: changes to the plan.
        options: bounds of the run; window and groups are three wide.

    Attributes:
        group: the attempts whose commit phase was asked for last.
        notified: what was decided for the watch and the log only; left out of what `handle` returns.
    """

    def __init__(
        self,
        source: Callable[[Cut], BatchCut | NothingToCut] | None = None,
        *,
        metadata: Mapping[int, Any] | None = None,
        stored: Mapping[str, Any] | None = None,
        committed_txid: int = 0,
        plan: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.source = source or ready()
        made = RunPlan(frozenset({TASK}), ("count",), **(plan or {}))
        fields = dict(stored or {}) | {f"coordinator:{txid}": value for txid, value in (metadata or {}).items()}
        self.machine = RunMachine(
            made,
            RunOptions(**({"max_spout_pending": 3, "commit_group_max": 3, "early_commit": False} | options)),
            MetadataLog(fields, is_opaque=made.is_opaque, committed_txid=committed_txid),
            committed_txid=committed_txid,
            new_attempt_id=count(1).__next__,
        )
        self.group: Attempts = ()
        self.composed = True
        self.sent: Publish | None = None
        self.notified: list[AttemptsIssued | AttemptsFailed | AttemptRetried] = []

    def handle(self, event: RunEvent) -> list[Decision]:
        """One event; what is decided, as it is. Outcomes begin where those below them end, unless they say where."""
        if isinstance(event, WaveProcessed):
            event = replace(event, outcomes=linked(event.outcomes, self.machine.positions.by_scope()))
        decisions = self.machine.handle(event)
        self.machine.validate()
        done: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, AttemptsIssued | AttemptsFailed | AttemptRetried):
                self.notified.append(decision)
                continue
            done.append(decision)
            if isinstance(decision, StartCommit):
                self.group, self.composed = decision.attempts, decision.composed
            elif isinstance(decision, Publish):
                self.sent = decision
        return done

    def turn(self, now_s: float = 0.0, *, commit_limit: int | None = None) -> list[Decision]:
        """One turn; what the spout is asked is answered, and not returned."""
        decided: list[Decision] = []
        if isinstance(self.source, ScriptedSource):
            self.source.now_s = now_s
        waiting = deque(self.handle(Turn(now_s, commit_limit)))
        while waiting:
            decision = waiting.popleft()
            if isinstance(decision, Cut):
                waiting.extend(self.handle(self.source(decision)))
            else:
                decided.append(decision)
        return decided

    # Waves

    def processed(self, wave_id: int, attempts: Attempts, *failing: int, **more: Any) -> list[Decision]:
        """The ackers have said yes to all but the txids that fail."""
        outcomes = (AttemptResult(a, LATER if a.txid in failing else None, **more) for a in attempts)
        return self.handle(WaveProcessed(wave_id, tuple(outcomes)))

    # Groups

    def reported(
        self,
        *,
        failing: TransactionAttempt | None = None,
        failure: Failure = LATER,
        operations: Mapping[int, int] | None = None,
        reads: bool = False,
    ) -> GroupExecuted:
        """What the commit task says of the group: all is well, up to one that fails."""
        report = TaskReport(TASK, "count", composed=self.composed)
        read = [["counts", "a"]] if reads else []
        for attempt in self.group:
            if attempt == failing:
                report.results.append(AttemptResult(attempt, failure))
                break
            report.results.append(AttemptResult(attempt, reads=read))
            report.write_sets.append(counted(attempt.txid, (operations or {}).get(attempt.txid, 1)))
        if self.composed:
            report.write_sets = [compose(report.write_sets)]
        return GroupExecuted(1, self.group, (report,))

    def executed(self, **said: Any) -> list[Decision]:
        """The commit phase has run; see `reported`."""
        return self.handle(self.reported(**said))

    def published(self, now_s: float = 0.0, **more: Any) -> list[Decision]:
        """The store has committed what was sent."""
        return self.handle(Published(now_s, **more))

    def refused(self, text: str = "not that") -> list[Decision]:
        """The store has refused what was sent."""
        return self.handle(Refused(StateRefusedError(text)))

    def commit(self, **said: Any) -> None:
        """The commit phase has run, and what was good is published and told."""
        *_, publish = self.executed(**said)
        assert publish == self.sent
        assert self.published()[:1] == [NotifySpout(publish.attempts)]
        assert self.handle(SpoutNotified()) == []


def two_processed(**given: Any) -> tuple[Driven, Attempts]:
    """A machine whose first wave, of two attempts, has been processed."""
    driven = Driven(max_spout_pending=4, **given)
    attempts = tuple(attempts_in(driven.turn()).values())
    assert driven.processed(1, attempts) == []
    return driven, attempts


class OpenWave(WaveRecords):
    """One wave, number 1, that takes all that waits and never ends; its attempts are spoken of one by one.

    Attributes:
        speaking_of: the attempts the next report is about.
    """

    speaking_of: Attempts = ()

    def room(self, byte_counts: Any) -> int:
        return len(byte_counts)

    def start(self, attempts: Attempts, now_s: float) -> WaveRecord:
        wave = self._waves.setdefault(1, WaveRecord(1, (), now_s, is_running=False))
        wave.live.update(attempts)
        return wave

    def processed(self, wave_id: int, seconds: float = 0.0) -> WaveRecord:
        return WaveRecord(wave_id, self.speaking_of, 0.0)

    def take_finished(self) -> list[int]:
        return []


class ByHand(Driven):
    """A machine whose attempts are acked and failed one at a time."""

    def __init__(self, source: Callable[[Cut], BatchCut | NothingToCut] | None = None, **given: Any) -> None:
        super().__init__(source, **given)
        self.waves = OpenWave(self.machine._books.waves.size, 60.0)
        self.machine._books.waves = self.waves

    def ack(self, attempt: TransactionAttempt, **more: Any) -> list[Decision]:
        """The processing phase of an attempt has ended well."""
        self.waves.speaking_of = (attempt,)
        return self.processed(1, (attempt,), **more)

    def fail(self, attempt: TransactionAttempt) -> list[Decision]:
        """The processing phase of an attempt has failed."""
        self.waves.speaking_of = (attempt,)
        return self.processed(1, (attempt,), attempt.txid)


def started(source: ScriptedSource | None = None, **given: Any) -> tuple[ByHand, dict[int, TransactionAttempt]]:
    """A machine whose window is under way, and its attempts by txid."""
    by_hand = ByHand(source, **given)
    return by_hand, attempts_in(by_hand.turn())


def acked(source: ScriptedSource | None = None, **given: Any) -> tuple[ByHand, dict[int, TransactionAttempt]]:
    """A machine whose window has been processed, and its attempts by txid."""
    by_hand, attempts = started(source, **given)
    for attempt in attempts.values():
        by_hand.ack(attempt)
    return by_hand, attempts


def halted(decisions: list[Decision], error_class: type[Exception]) -> Any:
    """The error of exactly this class by which the run ends; nothing else has been decided."""
    (halt,) = decisions
    assert isinstance(halt, Halt)
    assert type(halt.error) is error_class
    return halt.error
