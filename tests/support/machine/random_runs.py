"""A world for the run machine: spout, store, engine and clock in one object, everything at random from a seed.

The world keeps its own books of what was cut, stored, started, committed and told, written apart from the machine
and simpler than it: an attempt is alive until the world itself has made it fail. Every decision is checked against
them. First come faults, for as many events as the seed says; then all works, and the run has to end in few turns.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest import mock

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator import RunOptions, RunStatistics
from coordinator.spouts.partition_cut import link_to
from coordinator.transactional.engine import FailedByHand, GroupCrashed, GroupExecuted, WaveCrashed, WaveProcessed
from coordinator.transactional.machine import releases
from coordinator.transactional.machine.commits import Commits
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.run_events import (
    AskBarrier,
    AskForEnd,
    BarrierConfirmed,
    BatchCut,
    CancelWave,
    Cut,
    Decision,
    Done,
    Halt,
    InputState,
    NothingToCut,
    NotifySpout,
    Publish,
    Published,
    Quarantine,
    Refused,
    ReleaseWave,
    Resumed,
    RunEvent,
    SpoutNotified,
    StartCommit,
    StartWave,
    StoreMetadata,
    TimePassed,
    Turn,
)
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_record import TransactionRecord
from coordinator.watching.failure_cause import CrashKind
from coordinator.watching.run_observer import AttemptRetried, AttemptsFailed, AttemptsIssued, WaveStarted
from coordinator.watching.statistics.run_counter import RunCounter
from state.attempt import Attempts, TransactionAttempt
from state.codec import unpack
from state.commits.packed_writes import unpacked
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet, compose
from state.errors import (
    EngineError,
    NotDurableError,
    QuarantineFullError,
    ReplayLimitError,
    StateRefusedError,
    TransactionError,
    UserCodeError,
)
from state.values.state_kind import StateKind, ValueType
from tests.support.machine.links import linked

TASKS = {7: "count", 8: "sum"}
TIMEOUT_S = 10.0
TURNS_TO_END = 100
"""A run without faults that needs more turns has lost something."""
CALLS_S = (0.0, 0.01, 0.3)
"""How long a commit keeps the server busy."""
UNRELEASED_MAX = 5
"""Few enough for a run to be blocked by a barrier that is not confirmed."""


@dataclass(slots=True)
class Wave:
    """One wave as the engine has it."""

    wave_id: int
    attempts: Attempts
    early: tuple[Attempts, ...]
    composed: bool
    started_s: float
    runs: bool = True
    cancelled: bool = False
    is_late: bool = False


@dataclass(slots=True)
class Group:
    """One group in its commit phase, which runs or is sent; `stuck` counts how often it was run again."""

    wave_id: int
    attempts: Attempts
    composed: bool
    started_s: float
    runs: bool = True
    is_late: bool = False
    is_void: bool = False
    stuck: int = 0


@dataclass(slots=True)
class Books:
    """What the world knows, by txid where nothing else is said."""

    committed: int = 0
    cut: dict[int, Any] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)
    alive: dict[int, TransactionAttempt] = field(default_factory=dict)
    fresh: set[int] = field(default_factory=set)
    seen: set[TransactionAttempt] = field(default_factory=set)
    processed: dict[int, AttemptResult] = field(default_factory=dict)
    wave_of: dict[int, int] = field(default_factory=dict)
    failures: Counter[int] = field(default_factory=Counter)
    halts: dict[int, type[TransactionError]] = field(default_factory=dict)
    notes: dict[int, dict[str, str]] = field(default_factory=dict)
    replaced: dict[str, str | None] = field(default_factory=dict)
    replaced_after: int = 0
    issued: dict[int, TransactionAttempt] = field(default_factory=dict)
    receipts: dict[int, TransactionAttempt] = field(default_factory=dict)
    last_group: int = 0
    stored_told: int | None = None
    heard: set[int] = field(default_factory=set)
    own_failures: Counter[int] = field(default_factory=Counter)
    told: dict[int, AttemptResult] = field(default_factory=dict)
    poison: set[int] = field(default_factory=set)
    quarantined: list[int] = field(default_factory=list)


class RandomRun:
    """One run; `play` plays it.

    Args:
        seed: decides everything else.

    Attributes:
        kinds: what happened, to be sure that everything does.
        events: how many events the machine has handled.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        draw = self.random.random
        self.kinds: Counter[str] = Counter()
        self.events = 0
        self.books = Books()
        self.tasks = dict(list(TASKS.items())[: self.random.randint(1, 2)])
        self.plan = RunPlan(
            frozenset(self.tasks),
            ("count", "sum"),
            spout_id="lines",
            is_opaque=draw() < 0.4,
            may_commit_early=draw() < 0.5,
            engine_overlaps=draw() < 0.6,
            message_timeout_s=TIMEOUT_S,
            barrier_timeout_s=TIMEOUT_S,
        )
        self.by_hand = draw() < 0.4
        self.apart = Random(f"{seed} durability")
        self.confirms = self.apart.choice((0.0, 0.02, 0.3, 0.3, 1.0))
        self.window = self.random.choice((1, 2, 3, 4, 6, 8))
        self.options = RunOptions(
            max_spout_pending=self.window,
            commit_group_max=self.random.randint(1, 6),
            commit_operations_max=self.random.choice((4, 8, 1000)),
            max_attempts=self.random.choice((2, 4, 40, 40, 40)),
            durability=self.apart.choice(("memory", "memory", "fsync", "replica")),
        )
        self.queue_random = Random(f"{seed} queues")
        queues = self.queue_random.random() < 0.5 and not self.plan.is_opaque
        is_opaque = self.plan.is_opaque
        self.plan = replace(self.plan, has_partitions=is_opaque, engine_queues=queues)
        self.quarantine_random = Random(f"{seed} quarantine")  # of its own, so that other draws stay as they were
        self.call_random = Random(f"{seed} calls")
        if self.quarantine_random.random() < 0.25:
            attempts = self.quarantine_random.choice((1, 1, 2, 3))
            self.options = replace(self.options, on_poison="quarantine", max_attempts=attempts)
        self.may_halt = draw() < 0.35
        self.badness = self.random.choice((0.1, 0.3, 0.6))
        self.is_faulty = True
        self.says_no = (0.7 if draw() < 0.2 else 0.2) * draw()
        self.total: int | None = None
        self.is_draining = False
        if draw() < 0.3:
            self._begin_at(self.random.randint(1, 5), self.random.randint(0, 6))
        self.now_s = 0.0
        self.ids = iter(range(1, 1 << 30))
        self._restart()

    def _begin_at(self, committed: int, ahead: int) -> None:
        """An earlier run has committed so much and stored more."""
        books = self.books
        books.committed = committed
        books.receipts = {txid: TransactionAttempt(txid, 1 << 50) for txid in range(1, committed + 1)}
        books.last_group = self.apart.randint(1, committed)
        books.stored_told = self.apart.choice((None, books.last_group - 1, 0))
        books.heard = set(range(1, self._unnotified()[0].txid))
        if self.plan.is_opaque:
            self.books.stored["partition.0:1"] = 1
        if self.plan.is_opaque:
            return
        self.books.cut = {txid: f"earlier {txid}" for txid in range(committed, committed + 1 + ahead)}
        self.books.stored |= {f"coordinator:{txid}": metadata for txid, metadata in self.books.cut.items()}

    def _restart(self) -> None:
        """A new run finds what is stored, and nothing else."""
        books = self.books
        metadata = MetadataLog(books.stored, is_opaque=self.plan.is_opaque, committed_txid=books.committed)
        books.replaced = {"a": self.random.choice((None, "replaced"))} if self.random.random() < 0.3 else {}
        metadata.replace_notes(books.replaced)
        if self.plan.is_opaque:
            books.cut.clear()
            books.notes.clear()
        books.replaced_after = max([books.committed, *books.cut])
        level = self.apart.choice((self.options.durability, "memory", "fsync"))  # a restart may ask for another
        self.options = replace(self.options, durability=level)
        self.machine = RunMachine(
            self.plan,
            self.options,
            metadata,
            committed_txid=books.committed,
            new_attempt_id=self.ids.__next__,
            earlier=[TransactionRecord(txid, cut, 0, books.notes.get(txid, {})) for txid, cut in books.cut.items()],
        )
        self.machine._commits.judge_early = self._noted_early  # type: ignore[method-assign]
        if self.plan.is_opaque:
            assert not metadata.coordinator
        else:
            stored = {name for name in books.stored if name.startswith("coordinator:")}
            assert {f"coordinator:{txid}" for txid in books.cut} == stored, "what was cut is stored by now"
        for one in (books.alive, books.processed, books.wave_of, books.failures, books.halts, books.issued):
            one.clear()
        books.own_failures.clear()
        books.told.clear()
        books.poison.clear()
        self.void_count = 0
        self.counter = RunCounter(RunStatistics(), lambda: self.now_s)
        self.wave_max = -(-self.window // 2)
        self.waves: dict[int, Wave] = {}
        self.group: Group | None = None
        self.late: list[RunEvent] = []
        self.to_tell: Attempts = ()
        self.told = self._unnotified()[0].txid - 1 if books.committed else 0
        self.confirmed = 0 if self._waits() else books.committed
        self.barrier: AskBarrier | None = None
        self.told_error: TransactionError | None = None
        self.ran_early: dict[int, GroupExecuted] = {}
        self.closed: dict[int, AttemptResult] = {}  # of the wave that ends
        self.reads_early = False
        self.is_early_off = False
        self.nothing_more = False
        self.input_state: InputState | None = None
        self.ended: Decision | None = None

    # Playing

    def play(self) -> None:
        """Faults first, then none; whatever is wrong raises an AssertionError."""
        with mock.patch.object(releases, "UNRELEASED_MAX", UNRELEASED_MAX):
            self._play()

    def _play(self) -> None:
        self._resume()
        self._step_for(self.random.randint(20, 60))
        self.is_faulty, self.says_no, self.may_halt = False, 0.0, False
        last = max(self.books.cut, default=self.books.committed)
        if not self.books.halts and self.random.random() < 0.7:
            self.total = last + self.random.randint(0, 4)
        else:
            self.is_draining = True
            self.says_no = self.random.choice((0.0, 1.0))  # a spout that is drained may have nothing to replay either
        for _ in range(TURNS_TO_END):
            if self.ended is not None:
                break
            self._confirm()
            self._turn()
            self._engine_works()
            self._feed(TimePassed(self.now_s))
        self._check_end()

    def _resume(self) -> None:
        """The run is told what earlier ones have committed and may not have told."""
        if self.books.committed:
            self.kinds["resumed"] += 1
            self.to_tell = () if self._waits() else self._unnotified()
            self._feed(Resumed(self._unnotified()))

    def _unnotified(self) -> Attempts:
        """What the store says may not have been told: from what it was last told of, or the last group."""
        books = self.books
        first = books.last_group if books.stored_told is None else books.stored_told + 1
        return tuple(books.receipts[txid] for txid in range(first, books.committed + 1))

    def _waits(self) -> bool:
        return self.options.durability != "memory"

    def _confirm(self) -> None:
        """The server has confirmed the barrier that is out, and at times one that is not."""
        barrier, self.barrier = self.barrier, None
        if self.is_faulty and self.apart.random() < 0.1:
            self._feed(BarrierConfirmed(self.books.committed + 5, self.now_s))
        if barrier is None or self.ended is not None:
            return
        self.kinds["confirmed"] += 1
        self.confirmed = barrier.up_to_txid
        self._feed(BarrierConfirmed(barrier.up_to_txid, self.now_s))
        if self.told_error is None:
            assert self.told == self.confirmed, "confirmed and not told"

    def _step_for(self, event_count: int) -> None:
        limit = self.events + event_count
        while self.events < limit and self.ended is None:
            fate = self.random.random()
            if self._waits() and self.apart.random() < self.confirms:
                self._confirm()
            if fate < 0.50:
                self._turn()
            if fate < 0.92:
                self._engine_works()
            elif fate < 0.95:
                self.now_s += self.random.choice((0.1, 11.0))
            elif fate < 0.98:
                self._late_event()
            elif fate > 0.992:
                self.kinds["restart"] += 1
                self._restart()
                self._resume()
            if self.ended is None:
                self._feed(TimePassed(self.now_s))

    def _turn(self) -> None:
        self.nothing_more, self.input_state = False, None
        limit = self.random.randint(0, self.options.commit_group_max) if self.by_hand and self._bad() else None
        self._feed(Turn(self.now_s, limit))
        if self.ended is None:
            self._forget_group_without_future()

    def _late_event(self) -> None:
        if self.late:
            self.kinds["late"] += 1
            self._feed(self.random.choice(self.late))

    def _feed(self, event: RunEvent) -> None:
        """One event, and all that follows from it."""
        waiting = deque(self._handle(event))
        while waiting and self.ended is None:
            answer = self._carry_out(waiting.popleft())
            if answer is not None:
                waiting.extend(self._handle(answer))
        assert not self.to_tell, "published and not told"
        if self.ended is None:
            for wave in self.waves.values():
                if wave.runs:
                    assert wave.cancelled or any(map(self._is_alive, wave.attempts)), "runs for nothing"
                else:
                    assert any(map(self._is_alive, wave.attempts)), "kept for nothing"

    def _handle(self, event: RunEvent) -> list[Decision]:
        self.events += 1
        assert self.events < 2_000, "the machine does not come to rest"
        decisions = self.machine.handle(event)
        self.machine.validate()
        return decisions

    def _noted_early(self) -> Iterator[Any]:
        """What is judged of a group that ran early, and before it the group."""
        phase = self.machine._commits.phase
        if phase is not None and phase.early is not None:
            yield phase.early
        yield from Commits.judge_early(self.machine._commits)

    def _bad(self) -> bool:
        return self.is_faulty and self.random.random() < self.badness

    def _is_alive(self, attempt: TransactionAttempt) -> bool:
        return self.books.alive.get(attempt.txid) == attempt

    def _halt_before(self) -> int:
        return min([*self.books.halts, *self.books.poison], default=1 << 30)

    def _void_from(self, txid: int) -> None:
        """The world has made this attempt fail: it and all later ones are void."""
        books = self.books
        books.poison = {one for one in books.poison if one <= txid}
        self.void_count += sum(one >= txid for one in books.alive)
        for one in [one for one in books.alive if one >= txid]:
            for book in (books.alive, books.processed, books.wave_of):
                book.pop(one, None)

    def _blame(self, txid: int, *, is_own: bool = True) -> None:
        books, limit = self.books, self.options.max_attempts
        books.failures[txid] += 1
        books.own_failures[txid] += is_own
        if not self.options.quarantines:
            if books.failures[txid] >= limit:
                books.halts[txid] = ReplayLimitError
        elif books.failures[txid] - books.own_failures[txid] >= limit:
            books.halts[txid] = ReplayLimitError
        elif books.own_failures[txid] >= limit:
            self._becomes_poison(txid, ReplayLimitError)

    def _becomes_poison(self, txid: int, error: type[TransactionError]) -> None:
        """Set aside, unless nobody has told how far its batch reaches."""
        if self._reach_is_known(txid):
            self.books.poison.add(txid)
        else:
            self.kinds["poison without end"] += 1
            self.books.halts[txid] = error

    def _reach_is_known(self, txid: int) -> bool:
        """Every part that was told of begins where the one below ends now."""
        if not self.plan.is_opaque:
            return True
        if txid not in self.books.told:
            return False
        outcome, below = self.books.told[txid], self._below(txid)
        return all(outcome.began_from[scope] == link_to(below.get(scope)) for scope in outcome.metadata)

    def _below(self, txid: int) -> dict[str, Any]:
        """Scope -> its last position below a transaction, committed or processed."""
        books = self.books
        found: dict[str, tuple[int, Any]] = {}
        for name, value in books.stored.items():
            scope, at = name.rpartition(":")[0], int(name.rpartition(":")[2])
            if scope.startswith("partition.") and at < txid and at >= found.get(scope, (0, None))[0]:
                found[scope] = (at, value)
        cut = {one: outcome for one, outcome in [*self.closed.items(), *books.processed.items()] if one < txid}
        for one in sorted(cut):
            found |= {scope: (one, position) for scope, position in cut[one].metadata.items()}
        return {scope: value for scope, (_, value) in found.items()}

    def _fails(self, attempt: TransactionAttempt, failure: Failure) -> None:
        """An attempt fails by itself, if it is alive."""
        if not self._is_alive(attempt):
            return
        txid, error = attempt.txid, ReplayLimitError
        is_retried = self.options.quarantines and failure.is_of_batch()
        if failure.halts() and not is_retried:
            self.books.halts[txid] = UserCodeError
        else:
            self._blame(txid, is_own=failure.is_of_batch())
            if (
                failure.halts()
                and self.books.halts.get(txid) is error
                and self.books.own_failures[txid] >= self.options.max_attempts
            ):
                self.books.halts[txid] = UserCodeError
        self._void_from(txid)

    def _failure(self) -> Failure:
        halts = self.may_halt and self.random.random() < 0.4
        kind = FailureKind.USER if halts else self.random.choice((FailureKind.FAILED, FailureKind.INCOMPLETE))
        return Failure(kind, "count", 0, "drawn")

    # The engine

    def _engine_works(self) -> None:
        if self.by_hand and self._bad() and self._bad():
            self._fail_one_by_hand()
        if self.ended is not None:
            return
        running = [wave for wave in self.waves.values() if wave.runs]
        if self.group is not None and self.group.runs and (not running or self.random.random() < 0.5):
            self._group_ends(self.group)
        elif running:
            self._wave_ends(self.queue_random.choice(running))
            for queued in self.waves.values():
                queued.started_s = self.now_s if queued.runs else queued.started_s

    def _wave_ends(self, wave: Wave) -> None:
        wave.runs = False
        if (wave.cancelled and (not self.is_faulty or self.random.random() < 0.7)) or (self._bad() and self._bad()):
            self._wave_crashes(wave)
            return
        cut = [self._outcome(attempt) for attempt in wave.attempts]
        outcomes = linked(cut, self.machine.positions.by_scope())
        executed: list[GroupExecuted] = []
        if self.random.random() < 0.8:
            for attempts in wave.early:
                executed.append(GroupExecuted(wave.wave_id, attempts, self._reports(attempts, wave.composed)))
                if self._bad():
                    break
        told = [outcome for outcome in outcomes if not self._goes_missing(outcome)]
        if self._bad():
            self.kinds["stale outcome"] += 1
            stale = TransactionAttempt(wave.attempts[0].txid, 1 << 60)
            told.append(AttemptResult(stale, self._failure() if self.random.random() < 0.5 else None))
        self.random.shuffle(told)
        by_attempt = {outcome.attempt: outcome for outcome in told}
        self._note_told(wave, by_attempt)
        missing = Failure(FailureKind.INCOMPLETE, "", 0, "")
        for attempt in wave.attempts:
            outcome = by_attempt.get(attempt)
            failure = missing if outcome is None else outcome.failure
            if failure is not None:
                self._fails(attempt, failure)
            elif self._is_alive(attempt):
                assert outcome is not None
                self.closed[attempt.txid] = outcome
        self.books.processed |= {txid: one for txid, one in self.closed.items() if self._is_alive(one.attempt)}
        self.closed.clear()
        self.kinds["wave processed"] += 1
        for group in executed:
            if all(map(self._is_alive, group.attempts)):
                self.ran_early[group.attempts[0].txid] = group
                self.reads_early |= any(result.reads for report in group.reports for result in report.results)
        self._feed(WaveProcessed(wave.wave_id, tuple(told), tuple(executed)))

    def _note_told(self, wave: Wave, by_attempt: dict[TransactionAttempt, AttemptResult]) -> None:
        """What emitters have cut is known of attempts that are well, or whose batch is to blame."""
        for attempt in wave.attempts:
            outcome = by_attempt.get(attempt)
            if outcome is None or not self._is_alive(attempt):
                continue
            if outcome.failure is None or outcome.failure.is_of_batch():
                self.books.told[attempt.txid] = outcome

    def _wave_crashes(self, wave: Wave) -> None:
        kind = self._crash_kind()
        is_overdue = wave.is_late or kind is CrashKind.OVERDUE
        self.kinds["wave overdue" if is_overdue else f"wave {kind.value}"] += 1
        if is_overdue:
            self.wave_max = max(1, min(self.wave_max, len(wave.attempts) // 2))
            self.is_early_off = True
        self._crashes(wave.attempts, is_certain=kind is CrashKind.CERTAIN and not is_overdue)
        self._feed(WaveCrashed(wave.wave_id, "drawn", kind))

    def _crash_kind(self) -> CrashKind:
        if not self.is_faulty:
            return CrashKind.LOST
        fate = self.random.random()
        if fate < 0.15:
            return CrashKind.OVERDUE
        return CrashKind.CERTAIN if self.may_halt and fate < 0.3 else CrashKind.LOST

    # Failures by hand

    def _fail_one_by_hand(self) -> None:
        """Fails an attempt whose processing phase has succeeded, and whose commit phase has not begun."""
        committing = () if self.group is None else self.group.attempts
        done = [one for txid, one in self.books.alive.items() if txid in self.books.processed and one not in committing]
        if done:
            self.kinds["failed by hand"] += 1
            event = FailedByHand(self.random.choice(done), self._failure())
            self._fails(event.attempt, event.failure)
            self._feed(event)
            self._forget_group_without_future()
            self.late.append(event)

    def _group_fails_by_hand(self, executed: GroupExecuted) -> FailedByHand:
        """Fails an attempt of a group whose commit phase has run and is not reported."""
        self.kinds["group failed by hand"] += 1
        event = FailedByHand(self.random.choice(executed.attempts), self._failure(), executed)
        self._fails(event.attempt, event.failure)
        self.group = None
        return event

    def _goes_missing(self, outcome: AttemptResult) -> bool:
        lost = self._bad() and self._bad()
        self.kinds["missing outcome"] += lost
        return lost

    def _outcome(self, attempt: TransactionAttempt) -> AttemptResult:
        failure = self._failure() if self._bad() and self._bad() else None
        self.kinds["failed outcome"] += failure is not None
        metadata = {f"partition.{part}": attempt.attempt_id for part in range(2) if self.random.random() < 0.7}
        return AttemptResult(attempt, failure, residue=attempt.attempt_id, metadata=metadata)

    def _crashes(self, attempts: Attempts, *, is_certain: bool) -> None:
        """Only an attempt that was alone is to blame, unless another try would end in the same way."""
        alive = [attempt.txid for attempt in attempts if self._is_alive(attempt)]
        if alive:
            if is_certain:
                self.books.halts[alive[0]] = EngineError
            elif len(attempts) == 1:
                self._blame(alive[0])
            self._void_from(alive[0])

    def _reports(self, attempts: Attempts, composed: bool) -> tuple[TaskReport, ...]:
        """What the commit tasks say; the world reads from it what has failed once it is handed in."""
        reports = []
        is_lost = self._bad() and self._bad() and self._bad()
        fails_at = self.random.randrange(len(attempts)) if self._bad() else -1
        reads = self._bad() and self._bad()
        is_big = self._bad()
        self.kinds["group reads"] += reads
        for task_id, component_id in self.tasks.items():
            report = TaskReport(task_id, component_id, composed=composed)
            for place, attempt in enumerate(attempts):
                edges = attempt.attempt_id if task_id == 7 else 0
                if place == fails_at:
                    if self.random.random() < 0.3:
                        edges ^= 1 << 40
                    else:
                        report.results.append(AttemptResult(attempt, self._failure(), edges=edges))
                        break
                read: list[list[Any]] = [["counts", "shared"]] if reads and task_id == 8 else []
                report.results.append(AttemptResult(attempt, edges=edges, reads=read))
                report.write_sets.append(writes(attempt.txid, task_id, 3 if is_big else 1))
            if composed:
                report.write_sets = [compose(report.write_sets)]
            reports.append(report)
        return tuple(reports[1:] if is_lost else reports)

    def _judge(self, attempts: Attempts, reports: tuple[TaskReport, ...]) -> None:
        """Of a group that is dealt with: the first attempt that some task failed, did not see or misread is void."""
        if len(reports) < len(self.tasks):
            self._fails(attempts[0], Failure(FailureKind.INCOMPLETE, "", 0, ""))
            return
        for place, attempt in enumerate(attempts):
            results = [report.results[place] for report in reports if place < len(report.results)]
            edges = attempt.attempt_id
            for result in results:
                edges ^= result.edges
            failures = [result.failure for result in results if result.failure is not None]
            if failures or edges or len(results) < len(reports):
                self.kinds["group failed"] += 1
                has_read_other = edges and self.plan.may_commit_early and len(results) == len(reports)
                believed = [] if has_read_other else failures
                failure = min(believed, key=lambda failure: failure.kind, default=None)
                self._fails(attempt, failure or Failure(FailureKind.INCOMPLETE, "", 0, ""))
                return

    def _group_ends(self, group: Group) -> None:
        group.runs = False
        event: RunEvent
        if self._bad() and self._bad():
            kind = self._crash_kind()
            self.kinds[f"group {kind.value}"] += 1
            self._crashes(group.attempts, is_certain=kind is CrashKind.CERTAIN and not group.is_late)
            self.group = None
            event = GroupCrashed(group.wave_id, group.attempts, "drawn", kind)
        else:
            self.kinds["group executed"] += 1
            reports = self._reports(group.attempts, group.composed)
            event = GroupExecuted(group.wave_id, group.attempts, reports)
            if self.by_hand and self._bad():
                event = self._group_fails_by_hand(event)
            else:
                self._judge(group.attempts, reports)
        self._feed(event)
        if self.group is group:
            self._forget_group_without_future()
        if not any(map(self._is_alive, group.attempts)):
            self.late.append(event)

    def _forget_group_without_future(self) -> None:
        """A group of which nothing was good is done with; any other is published or run again."""
        if self.group is not None and not self.group.runs:
            assert not any(map(self._is_alive, self.group.attempts)), "nothing followed"
            self.group = None

    def _judge_early(self, group: GroupExecuted) -> None:
        """The machine hears of the group that ran early and is next: what failed in it is void from here on."""
        assert group is self.ran_early.pop(self.books.committed + 1)
        self.kinds["early"] += 1
        assert not self.reads_early, "used though a committer reads"
        assert self.group is None
        self._check_group(group.attempts)
        self._judge(group.attempts, group.reports)
        self.group = Group(group.wave_id, group.attempts, composed=True, started_s=self.now_s, runs=False)

    # What is decided

    def _carry_out(self, decision: Decision) -> RunEvent | None:
        match decision:
            case Cut():
                return self._cut(decision)
            case Quarantine():
                return self._set_aside(decision)
            case Publish():
                return self._publish(decision)
            case AskBarrier():
                self._ask_barrier(decision)
            case NotifySpout(attempts):
                return self._tell(attempts)
            case AskForEnd():
                return self._how_the_input_stands()
            case _:
                self._do(decision)
        return None

    def _do(self, decision: Decision) -> None:
        """What has no answer."""
        match decision:
            case StoreMetadata(entries):
                assert entries, "nothing to store"
                self.books.stored.update(entries)
            case StartWave():
                self._start_wave(decision)
            case StartCommit():
                self._start_commit(decision)
            case GroupExecuted():
                self._judge_early(decision)
            case CancelWave(wave_id):
                self._cancel(wave_id)
            case ReleaseWave(wave_id):
                self._release(wave_id)
            case AttemptsIssued(attempts):
                self._issued(attempts)
            case AttemptsFailed(attempts):
                self.counter(decision)
                self._dropped(attempts)
            case AttemptRetried(attempt):
                assert not self._is_alive(attempt), "replayed while it is well"
            case Done() | Halt():
                self.ended = decision

    def _issued(self, attempts: Attempts) -> None:
        books = self.books
        first = max(books.issued, default=books.committed) + 1
        assert [attempt.txid for attempt in attempts] == list(range(first, first + len(attempts))), "not the lowest"
        books.issued |= {attempt.txid: attempt for attempt in attempts}

    def _dropped(self, attempts: Attempts) -> None:
        issued = self.books.issued
        void = tuple(issued[txid] for txid in sorted(issued) if txid >= attempts[0].txid)
        assert attempts == void, "others than those from the failed one on"
        assert not any(map(self._is_alive, attempts)), "dropped while it is well"
        for attempt in attempts:
            del issued[attempt.txid]

    def _cut(self, cut: Cut) -> BatchCut | NothingToCut:
        books = self.books
        assert not self.nothing_more, "asked again within one turn"
        assert cut.txid not in books.alive
        assert books.committed < cut.txid < min(books.committed + 1 + self.window, self._halt_before())
        assert cut.is_new == (cut.txid not in books.cut)
        assert cut.previous == books.cut.get(cut.txid - 1)
        if not self.plan.is_opaque:
            assert cut.is_new, "cut twice"
            assert cut.txid == max(books.cut, default=books.committed) + 1, "a hole"
        else:
            assert cut.txid == max(books.alive, default=books.committed) + 1 or cut.txid - 1 in books.cut
        ended = cut.is_new and (self.is_draining or (self.total is not None and cut.txid > self.total))
        if ended or self.random.random() < self.says_no:
            self.kinds["nothing to cut"] += 1
            self.nothing_more = True
            return NothingToCut(cut.txid, self.now_s)
        books.fresh.add(cut.txid)
        books.cut[cut.txid] = f"cut {cut.txid} {self.events}"
        books.notes[cut.txid] = {name: f"{cut.txid} {self.events}" for name in "ab" if self.random.random() < 0.2}
        byte_count = self.random.choice((0, 0, 1 << 27))
        return BatchCut(cut.txid, books.cut[cut.txid], self.now_s, byte_count, books.notes[cut.txid])

    def _start_wave(self, start: StartWave) -> None:
        books = self.books
        attempts = tuple(batch.attempt for batch in start.batches)
        self.kinds["wave"] += 1
        assert start.wave_id not in self.waves
        self._check_queue(len(attempts))
        assert self.plan.engine_overlaps or self.group is None, "a wave while a group commits"
        assert 0 < len(attempts) <= self.wave_max, "more than half a window, or than what took too long"
        assert all(books.issued.get(attempt.txid) == attempt for attempt in attempts), "not issued"
        first = max(books.alive, default=books.committed) + 1
        assert [attempt.txid for attempt in attempts] == list(range(first, first + len(attempts))), "not the lowest"
        for batch in start.batches:
            txid = batch.attempt.txid
            assert batch.attempt not in books.seen, "issued before"
            assert txid < self._halt_before(), "beyond the halt"
            assert txid <= books.committed + self.window, "beyond the window"
            assert unpack(batch.packed_metadata) == books.cut[txid]
            if self.plan.is_opaque:
                assert txid in books.fresh, "not cut again"
                books.fresh.discard(txid)
            else:
                assert books.stored.get(f"coordinator:{txid}") == books.cut[txid], "emitted before it was stored"
            books.seen.add(batch.attempt)
            books.alive[txid] = batch.attempt
            books.wave_of[txid] = start.wave_id
        groups = start.early.groups
        assert sum(groups, ()) in ((), attempts), "early groups of other attempts"
        assert all(0 < len(group) <= self.options.commit_group_max for group in groups)
        assert not groups or not (self.reads_early or self.is_early_off), "early, though it may not be"
        self.counter(WaveStarted(start.wave_id, attempts))
        self.waves[start.wave_id] = Wave(start.wave_id, attempts, groups, start.early.composed, self.now_s)

    def _check_queue(self, count: int) -> None:
        """A wave begins when none runs, or full after one that does, if that is wanted."""
        running = [wave for wave in self.waves.values() if wave.runs]
        if running:
            self.kinds["queued"] += 1
            assert self.plan.engine_queues, "two waves in their processing phase"
            assert len(running) == 1, "three waves in their processing phase"
            assert count > 1, "who is to blame for a crash?"
            assert not self.is_early_off, "queued before a commit phase that will be a job"

    def _check_group(self, attempts: Attempts) -> None:
        """It is next, alive, processed, and of one wave."""
        books = self.books
        first = books.committed + 1
        assert attempts
        assert [attempt.txid for attempt in attempts] == list(range(first, first + len(attempts)))
        assert len(attempts) <= self.options.commit_group_max, "a group too large"
        assert all(map(self._is_alive, attempts)), "void"
        assert all(attempt.txid in books.processed for attempt in attempts), "not processed"
        assert len({books.wave_of[attempt.txid] for attempt in attempts}) == 1, "a group over two waves"
        assert attempts[-1].txid < self._halt_before(), "beyond the halt"
        if not self.plan.is_opaque:
            for attempt in attempts:
                for scope, position in books.processed[attempt.txid].metadata.items():
                    assert books.stored.get(f"{scope}:{attempt.txid}") == position, "committed before it was stored"

    def _start_commit(self, start: StartCommit) -> None:
        self._check_group(start.attempts)
        assert start.wave_id == self.books.wave_of[start.attempts[0].txid]
        stuck = 0
        if self.group is not None:
            assert not self.group.runs, "two groups at a time"
            self.kinds["again"] += 1
            stuck = self.group.stuck + 1
            assert start.attempts == self.group.attempts[: len(start.attempts)], "another group"
            assert stuck < 30, "again and again"
        assert self.plan.engine_overlaps or not any(wave.runs for wave in self.waves.values())
        self.group = Group(start.wave_id, start.attempts, start.composed, self.now_s, stuck=stuck)

    def _publish(self, publish: Publish) -> Published | Refused | None:
        books, attempts = self.books, publish.attempts
        assert self.group is not None, "of no group"
        assert not self.group.runs, "published before its commit phase has ended"
        assert attempts == self.group.attempts[: len(attempts)], "no prefix of the group"
        self._check_group(attempts)
        changes = unpacked(publish.write_set.states["counts"]).increments
        places = {(key, txid) for key, txid in (str(name).split("@") for name in changes)}
        expected = {(str(task_id), str(attempt.txid)) for task_id in self.tasks for attempt in attempts}
        assert {(key.split(".")[0], txid) for key, txid in places} == expected, "other changes than its own"
        self.group = None
        if self.may_halt and self.random.random() < 0.15:
            self.kinds["refused"] += 1
            if len(attempts) == 1:
                txid = attempts[0].txid
                if self.options.quarantines:
                    books.failures[txid] += 1
                    books.own_failures[txid] += 1
                    self._becomes_poison(txid, StateRefusedError)
                else:
                    books.halts[txid] = StateRefusedError
                self._void_from(txid)
            return Refused(StateRefusedError("drawn"))
        assert publish.notified_txid == (None if self.told == books.committed else self.told)
        assert attempts[-1].txid - self.told <= max(UNRELEASED_MAX, len(attempts)), "too much that is not released"
        self._store(publish)
        self._is_committed(publish)
        return Published(self.now_s, call_s=self.call_random.choice(CALLS_S))

    def _set_aside(self, publish: Quarantine) -> Published | Refused:
        """The empty commit of poison: next, alone, with everything below it durable, and exactly its batch."""
        books, poison = self.books, publish.poison
        (attempt,) = publish.attempts
        txid = attempt.txid
        assert txid == poison.txid == books.committed + 1, "out of order"
        assert txid in books.poison, "set aside, though it is no poison"
        assert not books.alive, "something is under way above poison"
        assert self.group is None, "a group commits"
        assert poison.batch.metadata == books.cut[txid]
        assert poison.cause.attempt_count == books.own_failures[txid]
        if self.plan.is_opaque:
            assert poison.batch.positions == books.told[txid].metadata
            below = self._below(txid)
            assert poison.batch.starts == {s: below[s] for s in poison.batch.positions if s in below}
        else:
            stored = {n.rpartition(":")[0]: v for n, v in books.stored.items() if n.endswith(f":{txid}")}
            assert poison.batch.positions == {s: v for s, v in stored.items() if s.startswith("partition.")}
        assert publish.notified_txid == (None if self.told == books.committed else self.told)
        if self.may_halt and self.quarantine_random.random() < 0.2:
            self.kinds["not set aside"] += 1
            books.poison.clear()
            books.halts[txid] = QuarantineFullError
            return Refused(QuarantineFullError("t", txid, 10, "drawn"))
        self.kinds["set aside"] += 1
        books.processed[txid] = AttemptResult(attempt, metadata=dict(poison.batch.positions))
        books.alive[txid], books.wave_of[txid] = attempt, 0
        assert publish.notified_txid == (None if self.told == books.committed else self.told)
        self._store(publish)
        books.poison.clear()
        books.quarantined.append(txid)
        self._is_committed(publish)
        return Published(self.now_s)

    def _is_committed(self, publish: Publish | Quarantine) -> None:
        """What was published has to be told: at once, or once a barrier has confirmed it."""
        books, attempts = self.books, publish.attempts
        books.stored_told, books.last_group = publish.notified_txid, attempts[0].txid
        books.receipts |= {attempt.txid: attempt for attempt in attempts}
        if not self._waits():
            self.to_tell, self.confirmed = attempts, books.committed

    def _ask_barrier(self, barrier: AskBarrier) -> None:
        self.kinds["barrier"] += 1
        assert self._waits(), "a barrier at level memory"
        assert self.barrier is None, "two barriers"
        assert barrier == AskBarrier(self.books.committed, self.confirmed)
        assert barrier.up_to_txid > self.confirmed, "a barrier for nothing"
        self.barrier = barrier

    def _store(self, publish: Publish | Quarantine) -> None:
        """What the commit stores and forgets leaves exactly what the next run needs."""
        books, last = self.books, publish.attempts[-1].txid
        expected = {name: value for name, value in books.stored.items() if not _is_below(name, last)}
        for scope in {name.rpartition(":")[0] for name in books.stored}:
            below = [int(name.rpartition(":")[2]) for name in books.stored if name.startswith(f"{scope}:")]
            kept = max((txid for txid in below if txid <= last), default=0)
            if kept:
                expected[f"{scope}:{kept}"] = books.stored[f"{scope}:{kept}"]
        if self.plan.is_opaque:
            self._expect_positions(expected, publish.attempts)
        self._expect_notes(expected, publish.attempts)
        if not self.plan.is_opaque:
            stored = {name: value for name, value in publish.metadata.puts.items() if not name.startswith("note.")}
            assert stored.items() <= books.stored.items(), "stored only with the commit"
        assert publish.metadata.forgets == tuple(dict.fromkeys(publish.metadata.forgets))
        books.stored = {n: v for n, v in books.stored.items() if n not in publish.metadata.forgets}
        books.stored |= publish.metadata.puts
        assert books.stored == expected
        for attempt in publish.attempts:
            books.committed = attempt.txid
            for book in (books.alive, books.processed, books.wave_of, books.issued):
                del book[attempt.txid]
        for txid in [txid for txid in books.cut if txid < last]:
            del books.cut[txid]
        self.kinds["published"] += 1

    def _expect_positions(self, expected: dict[str, Any], attempts: Attempts) -> None:
        """The commit of an opaque spout's attempts stores their positions."""
        for attempt in attempts:
            for scope, position in self.books.processed[attempt.txid].metadata.items():
                for name in [name for name in expected if name.startswith(f"{scope}:")]:
                    del expected[name]
                expected[f"{scope}:{attempt.txid}"] = position

    def _expect_notes(self, expected: dict[str, Any], attempts: Attempts) -> None:
        """The last note of each name takes the place of the one before; those replaced follow what earlier runs cut."""
        notes: dict[str, str | None] = {}
        last = attempts[-1].txid
        for txid in range(min(self.books.replaced_after, attempts[0].txid), last + 1):
            notes |= self.books.notes.pop(txid, {}) if txid >= attempts[0].txid else {}
            if txid == self.books.replaced_after:
                notes |= self.books.replaced
                self.books.replaced = {}
        for name, value in notes.items():
            for stale in [stale for stale in expected if stale.startswith(f"note.{name}:")]:
                del expected[stale]
            if value is not None:
                expected[f"note.{name}:{last}"] = value

    def _tell(self, attempts: Attempts) -> SpoutNotified:
        txids = range(self.told + 1, self.confirmed + 1)
        assert attempts == tuple(self.books.receipts[txid] for txid in txids), "told what is not confirmed, or not all"
        assert not self.to_tell or attempts == self.to_tell
        self.to_tell = ()
        told = self._told()
        if told.error is None:
            self.books.heard |= set(txids)
            self.told = self.confirmed
        return told

    def _told(self) -> SpoutNotified:
        if self.may_halt and self.random.random() < 0.06:
            self.kinds["not told"] += 1
            self.told_error = UserCodeError(component_id="lines", attempt="committed", traceback_text="drawn")
            self.books.halts[self.books.committed + 1] = UserCodeError
            void_count = self.void_count
            self._void_from(self.books.committed + 1)
            self.void_count = void_count  # none of them has failed
            self.books.issued.clear()
            if self.group is not None:
                self.group.is_void = True
        return SpoutNotified(self.told_error)

    def _cancel(self, wave_id: int) -> None:
        self.kinds["cancelled"] += 1
        wave, group = self.waves[wave_id], self.group
        wanted = [attempt for attempt in wave.attempts if self._is_alive(attempt)]
        is_late = wave.runs and self.now_s - wave.started_s > TIMEOUT_S
        group_is_late = (
            group is not None and group.runs and group.wave_id == wave_id and self.now_s - group.started_s > TIMEOUT_S
        )
        is_given_up = group is not None and group.is_void and group.wave_id == wave_id
        assert wave.runs or group_is_late or is_given_up, "nothing runs"
        assert not wanted or is_late or group_is_late, "work that is wanted was cancelled"
        wave.cancelled = wave.runs
        if is_late:
            wave.started_s, wave.is_late = self.now_s, True
        if group is not None and group_is_late:
            group.started_s, group.is_late = self.now_s, True

    def _release(self, wave_id: int) -> None:
        wave = self.waves.pop(wave_id)
        assert not wave.runs, "released while it runs"
        assert not any(map(self._is_alive, wave.attempts)), "released while it is wanted"

    def _how_the_input_stands(self) -> InputState:
        books = self.books
        assert not books.alive, "asked for the end while something is under way"
        last = max(books.cut, default=books.committed)
        is_exhausted = self.total is not None and last >= self.total and books.committed == last
        self.input_state = InputState(is_exhausted=is_exhausted, is_draining=self.is_draining)
        if self.may_halt and self.random.random() < 0.1:
            self.kinds["spout raised"] += 1
            self.input_state = InputState(
                error=UserCodeError(component_id="lines", attempt="is_ready", traceback_text="drawn")
            )
        elif self.may_halt and self.random.random() < (0.5 if books.halts else 0.1):
            self.kinds["drained"] += 1
            self.input_state = InputState(is_draining=True)
        return self.input_state

    # The end

    def _check_end(self) -> None:
        books = self.books
        last = max(books.cut, default=books.committed)
        assert self.counter.statistics.failed_attempts == self.void_count, "others failed than were void"
        if isinstance(self.ended, Done):
            self.kinds["done"] += 1
            state = self.input_state
            assert state is not None
            assert self.confirmed == self.told == books.committed, "done before everything is confirmed and told"
            assert books.heard >= set(range(1, books.committed + 1)), "never told"
            assert state.error is None
            assert state.is_exhausted or state.is_draining
            assert not books.alive
            assert not books.halts, "a drain has hidden an error"
            if not self.plan.is_opaque:
                assert books.committed == last, "cut and left alone"
            if not self.is_faulty and self.total is not None and not state.is_draining:
                assert books.committed == last == max(self.total, last)
            return
        assert isinstance(self.ended, Halt), f"after {TURNS_TO_END} turns committed {books.committed} of {last}"
        self.kinds["halt"] += 1
        if isinstance(self.ended.error, NotDurableError):
            self.kinds["not durable"] += 1
            assert self.barrier is not None, "it was confirmed"
            return
        if self.input_state is not None and self.ended.error is self.input_state.error:
            return
        halt = self._halt_before()
        is_drained = self.input_state is not None and self.input_state.is_draining  # what is lower is not cut again
        if not is_drained:
            assert books.committed + 1 == halt, "halted early or late"
        assert isinstance(self.ended.error, books.halts[halt])


def writes(txid: int, task_id: int, operation_count: int) -> WriteSet:
    """Changes that name task and transaction."""
    increments: dict[Any, Any] = {f"{task_id}.{place}@{txid}": 1 for place in range(operation_count)}
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, increments=increments)})


def _is_below(name: str, txid: int) -> bool:
    return int(name.rpartition(":")[2]) < txid
