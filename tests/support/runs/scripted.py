"""A run in which engine, store and clock follow a script; everything it asks for is written down in order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator import RunOptions, RunStatistics, SpoutCoordinator
from coordinator.run import ProgressCallback
from coordinator.spouts.batch import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.assembly import new_coordinator
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed, WaveProcessed
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.publisher import Publisher
from coordinator.transactional.start.spout_start import SpoutStart
from coordinator.transactional.start.takeover import TakenOver
from coordinator.transactional.surroundings import RunEnvironment
from coordinator.watching.failure_cause import CrashKind
from coordinator.watching.run_observer import Observer, Observers
from state.attempt import TransactionAttempt
from state.codec import unpack
from state.commits.commit import Commit, CommitReply
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet, compose
from state.values.state_kind import StateKind, ValueType
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import Count, LinesCoordinator, build, plan

MAX_WAITS = 2_000
"""A run that asks so often for an event that does not come hangs."""

Line = tuple[Any, ...]
Attempts = tuple[TransactionAttempt, ...]


def validated(machine: RunMachine) -> None:
    """Has every invariant of a machine checked after each event."""
    handle = machine.handle

    def handle_and_validate(event):
        decisions = handle(event)
        machine.validate()
        return decisions

    machine.handle = handle_and_validate  # type: ignore[method-assign] # tests look on


def txids_of(attempts) -> list[int]:
    return [attempt.txid for attempt in attempts]


def failed(kind: FailureKind = FailureKind.FAILED, text: str = "no") -> Failure:
    return Failure(kind, "count", 0, text)


class ScriptedStore(MemoryStore):
    """A store that writes what is asked of it into the run's log."""

    def __init__(self, log: list[Line]) -> None:
        super().__init__()
        self.log = log

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        self.log.append(("store", *entries))
        super().store_metadata(entries, forget)

    def commit(self, commit: Commit) -> CommitReply:
        self.log.append(("publish", txids_of(commit.attempts)))
        return super().commit(commit)


class ScriptedEngine:
    """Does everything well unless the script says otherwise.

    Attributes:
        on_wave: (wave id, attempts) -> event, or None if nothing is to come yet.
        on_group: (wave id, attempts, composed) -> event, or None.
        on_early: the same of a group whose commit phase runs early.
        waits: called one after the other when an event is waited for and none is there.
        now_s: the clock; waiting moves it.
    """

    def __init__(self, log: list[Line], made_of: Plan, *, overlaps: bool = True) -> None:
        self.log = log
        self.plan = made_of
        self.overlaps, self.queues = overlaps, False
        self.events: deque[Event] = deque()
        self.on_wave: Callable[[int, Attempts], Event | None] = self.processed
        self.on_group: Callable[[int, Attempts, bool], Event | None] = self.executed
        self.on_early: Callable[[int, Attempts, bool], GroupExecuted] = self.executed
        self.waits: deque[Callable[[], Any]] = deque()
        self.on_cancel: Callable[[int], Event | None] = lambda wave_id: None
        self.now_s = 0.0
        self.stored: list[dict[str, dict[int, Any]]] = []
        self._wait_count = 0

    def process(
        self, wave_id: int, batches: tuple[Batch, ...], stored: Mapping[str, Mapping[int, Any]], early: EarlyCommit
    ) -> None:
        attempts = tuple(batch.attempt for batch in batches)
        self.log.append(("process", wave_id, txids_of(attempts)))
        if early.groups:
            self.log.append(("early", *map(txids_of, early.groups), *(() if early.composed else ("one by one",))))
        self.stored.append({scope: dict(values) for scope, values in stored.items()})
        assert all(unpack(batch.packed_metadata) == f"lines of {batch.attempt.txid}" for batch in batches)
        event = self.on_wave(wave_id, attempts)
        if isinstance(event, WaveProcessed):
            event = replace(event, executed=self._executed_early(wave_id, early))
        self._tell(event)

    def commit(self, wave_id: int, attempts: Attempts, *, composed: bool) -> None:
        self.log.append(("commit", wave_id, txids_of(attempts), *(() if composed else ("one by one",))))
        self._tell(self.on_group(wave_id, attempts, composed))

    def cancel(self, wave_id: int) -> None:
        self.log.append(("cancel", wave_id))
        self._tell(self.on_cancel(wave_id))

    def release(self, wave_id: int) -> None:
        self.log.append(("release", wave_id))

    def next_event(self, timeout_s: float) -> Event | None:
        if self.events:
            return self.events.popleft()
        self._wait_count += 1
        assert self._wait_count < MAX_WAITS, f"the run hangs; its last steps: {self.log[-20:]}"
        self.now_s += timeout_s
        if self.waits:
            self.waits.popleft()()
        return None

    def close(self) -> None:
        raise AssertionError("the run does not own the engine")

    def _executed_early(self, wave_id: int, early: EarlyCommit) -> tuple[GroupExecuted, ...]:
        """Group after group, up to the first that could not be finished."""
        executed: list[GroupExecuted] = []
        for attempts in early.groups:
            executed.append(self.on_early(wave_id, attempts, early.composed))
            if any(report.results.good_count() < len(attempts) for report in executed[-1].reports):
                break
        return tuple(executed)

    def _tell(self, event: Event | None) -> None:
        if event is not None:
            self.events.append(event)

    def processed(self, wave_id: int, attempts: Attempts, **failures: Failure | None) -> WaveProcessed:
        """Every attempt is processed, but those named `at_<txid>`."""
        outcomes = [
            AttemptResult(
                a,
                failures.get(f"at_{a.txid}"),
                tuple_count=10,
                counters=Counter(lines=10),
                metrics={"lines": TaskMetrics(emitted={"default": 10}, transferred={"default": 10}, batches=1)},
            )
            for a in attempts
        ]
        return WaveProcessed(wave_id, tuple(outcomes))

    def crashed(self, wave_id: int, attempts: Attempts, kind: CrashKind = CrashKind.LOST) -> WaveCrashed:
        return WaveCrashed(wave_id, "a worker died", kind)

    def executed(
        self,
        wave_id: int,
        attempts: Attempts,
        composed: bool,
        *,
        writes: Callable[[int], WriteSet] | None = None,
        reads: bool = False,
        **failures: Failure | None,
    ) -> GroupExecuted:
        """Every commit task finishes every attempt, up to one that is named `at_<txid>`."""
        reports = []
        for task in sorted(self.plan.commit_tasks):
            report = TaskReport(task, self.plan.wirings[task].component_id, composed=composed)
            sets = []
            for attempt in attempts:
                failure = failures.get(f"at_{attempt.txid}")
                read = [["counts", f"read {task}"]] if reads else []
                report.results.append(
                    AttemptResult(
                        attempt,
                        failure,
                        reads=read,
                        counters={"finished": 1},
                        metrics={report.component_id: counted_lines()},
                    )
                )
                if failure is not None:
                    break
                sets.append((writes or counted)(attempt.txid))
            report.write_sets = [compose(sets)] if composed else sets
            reports.append(report)
        return GroupExecuted(wave_id, attempts, tuple(reports))

    def group_crashed(self, wave_id: int, attempts: Attempts, kind: CrashKind = CrashKind.LOST) -> GroupCrashed:
        return GroupCrashed(wave_id, attempts, "an executor is gone", kind)


def counted_lines() -> TaskMetrics:
    """What the committer did for each attempt."""
    run = "lines/default"
    return TaskMetrics(executed={run: 10}, execute_ns={run: 70}, finish_ns=5, batches=1)


def counted(txid: int) -> WriteSet:
    """One field a transaction, so that the state tells what was committed how often."""
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, increments={f"tx{txid}": 1})})


class Run:
    """A coordinator with everything around it scripted; `early_commit` is off unless it is among the options.

    Attributes:
        log: every call of engine and store, in order.
        observers: of the run, from when it is made.
        progress: statistics after every event: (committed, active).
    """

    def __init__(
        self,
        transactions: int = 0,
        *,
        source: SpoutCoordinator | None = None,
        made_of: Plan | None = None,
        overlaps: bool = True,
        currtx: int = 1,
        stored: Mapping[str, Any] | None = None,
        message_timeout_s: float = 60.0,
        observers: Sequence[Observer] = (),
        **options: int,
    ) -> None:
        self.log: list[Line] = []
        self.plan = made_of or plan(build(("count", Count(), ["lines"])))
        self.engine = ScriptedEngine(self.log, self.plan, overlaps=overlaps)
        self.store = ScriptedStore(self.log)
        self.store.metadata = dict(stored or {})
        if currtx > 1:
            self.store.committed.append([currtx - 1])
        self.source = source or LinesCoordinator(transactions)
        given: dict[str, Any] = {"early_commit": False} | options
        self.options = RunOptions(**given)
        self.progress: list[tuple[int, int]] = []
        self.on_progress: Callable[[RunStatistics], None] = lambda s: self.progress.append((s.committed, s.active))
        all_observers: list[Observer] = [ProgressCallback(self._tell_progress), *observers]
        self.observers = Observers(all_observers)
        topology = build(("count", Count(), ["lines"]))
        context, attempt_ids = self.plan.wirings[self.plan.emitter_tasks[0]].context(), count(1)
        start = SpoutStart(topology, context, tries=1, pause=lambda seconds: None)
        start.spout = self.source
        self.coordinator = new_coordinator(
            replace(topology, message_timeout_s=message_timeout_s),
            self.plan,
            self.engine,
            self.options,
            around=RunEnvironment(
                nonce="",
                new_generation="",
                new_attempt_id=attempt_ids.__next__,
                clock=lambda: self.engine.now_s,
                observers=self.observers,
            ),
            start=start,
            publisher=Publisher(self.store, "test", clock=lambda: self.engine.now_s),
            taken=TakenOver(currtx - 1, MetadataLog(self.store.metadata), {}, "", ""),
        )
        self.machine = self.coordinator._machine
        validated(self.machine)

    def _tell_progress(self, statistics: RunStatistics) -> None:
        self.on_progress(statistics)

    def __call__(self) -> list[Line]:
        self.coordinator.run()
        return self.log

    def lines(self, *kinds: str) -> list[Line]:
        """The steps of these kinds, in order."""
        return [line for line in self.log if line[0] in kinds]

    def story(self, *kinds: str) -> str:
        """The steps of these kinds, or all, in order and in words."""
        return "; ".join(" ".join(map(str, line)) for line in self.log if not kinds or line[0] in kinds)

    def committed(self) -> list[list[int]]:
        """The groups that were published."""
        return [txids for txids in self.store.committed if txids[0] >= 1]
