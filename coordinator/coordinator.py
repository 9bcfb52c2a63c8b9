"""Drives one run: the state machine decides, the engine works, the store publishes.

Nothing is decided here that `transactions`, `group_commit` or `group_size` could decide. One thread:
every event of the engine is handled to its end before the next.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from committers import Again, Group, GroupSize, Publish, SlotReport, decide_group
from coordinated_bolt import AttemptOutcome, Failure
from coordinator.attempt_watch import AttemptWatch
from coordinator.crash_causes import CrashCauses
from coordinator.early_groups import EarlyGroups
from coordinator.engine import (
    CrashKind,
    Engine,
    Event,
    GroupCrashed,
    GroupExecuted,
    PhaseEnded,
    WaveCrashed,
    WaveProcessed,
)
from coordinator.guarded_committer import GuardedCommitter
from coordinator.guarded_source import GuardedSource
from coordinator.metadata_log import MetadataLog
from coordinator.options import RunOptions
from coordinator.plan import Plan
from coordinator.publisher import Publisher, RefusedGroup
from coordinator.replay_log import ReplayLog
from coordinator.run_summary import RunStatistics, work_of
from coordinator.spouts.committing import SpoutCommitter
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from coordinator.transactions import EmitBatch, Phase, StartCommit, StoreMetadata, TransactionCoordinator
from coordinator.waves import WaveBook, complete_outcomes
from state import EngineError, ReplayLimitError, ServerWatch, StateRefusedError, TransactionAttempt, TransactionError

_LOG = logging.getLogger("txbatch")
BUSY_WAIT_S = 0.5
IDLE_WAIT_S = 0.05


class Coordinator:
    """One run of one topology, from the first uncommitted txid until the input ends or it is drained.

    Args:
        plan: the plan.
        source: the spout's coordinator.
        engine: runs waves.
        publisher: stores and commits, as the owner of the topology.
        machine: the state machine, at the first uncommitted txid.
        metadata: stored metadata.
        options: bounds.
        clock: seconds, monotonic.
        on_progress: called after every event with the statistics.
        message_timeout_s: how long a wave may take, in each of its phases.
        committer: the spout's committer, if it has one.
        last_group: what earlier runs committed last, to be told to the committer again.
        notices: what is different from the run before, for `statistics`.
        watch: told of every attempt, and may hold its phases.
        server_watch: looks at the server again while the run lasts.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        source: SpoutCoordinator,
        engine: Engine,
        publisher: Publisher,
        machine: TransactionCoordinator,
        metadata: MetadataLog,
        options: RunOptions,
        clock: Callable[[], float],
        on_progress: Callable[[RunStatistics], None],
        message_timeout_s: float,
        committer: SpoutCommitter | None = None,
        last_group: tuple[TransactionAttempt, ...] = (),
        notices: tuple[str, ...] = (),
        watch: AttemptWatch | None = None,
        server_watch: ServerWatch | None = None,
    ) -> None:
        self._plan, self._engine, self._publisher, self._machine = plan, engine, publisher, machine
        spout_id = plan.wirings[plan.emitter_tasks[0]].component_id
        run_so_far = RunSoFar(machine.last_txid(), machine.last_metadata(), machine.currtx - 1)
        self._source = GuardedSource(source, spout_id, run_so_far)
        self._committer = GuardedCommitter(committer, spout_id)
        self._last_group = last_group
        self._watch = watch or AttemptWatch()
        self._metadata = metadata
        self._options = options
        self._clock = clock
        self._on_progress = on_progress
        self._waves = WaveBook(options.window(), message_timeout_s, self._source.estimated_bytes)
        self._size = GroupSize(options.commit_group_max, options.commit_operations_max)
        self._early = EarlyGroups(is_on=options.early_commit and plan.has_flat_commit_phase())
        self._composed = True
        self._group: tuple[TransactionAttempt, ...] = ()
        self._group_started_s = 0.0
        self._message_timeout_s = message_timeout_s
        self._asked = 0
        self._failures: Counter[int] = Counter()
        self._causes = CrashCauses(message_timeout_s)
        self._error: TransactionError | None = None
        self._server_watch = server_watch
        self._replays = ReplayLog(clock)
        self.statistics = RunStatistics(last_txid=machine.currtx - 1, notices=notices)

    def drain(self) -> None:
        """Takes no new transactions; the run ends when those under way are committed. Any thread."""
        self._source.draining = True

    def deactivate(self) -> None:
        """Takes no new transactions until `activate`; those under way are committed, the run goes on. Any thread."""
        self._source.active = False

    def activate(self) -> None:
        """Ends what `deactivate` began. Any thread."""
        self._source.active = True

    def run(self) -> RunStatistics:
        """Runs to the end of the input, or of the drain.

        Raises:
            UserCodeError, SourceError, StateRefusedError: lower txids are committed, this one halts.
            ReplayLimitError, TransactionTooLargeError: the same.
            FencedError: a newer run owns the topology.
            StateUnreachableError: the store did not answer.
        """
        while not self.turn():
            pass  # bounded by the input; a continuous one ends by drain
        return self.statistics

    def close(self) -> None:
        """Says what was left out of the log; called once, however the run has ended."""
        self._replays.close()

    def turn(self) -> bool:
        """One turn of `run`: carries out what is due and handles at most one event; True once the run is done.

        Raises:
            TransactionError: as `run`.
        """
        self._tell(self._last_group)
        self._last_group = ()
        if self._error is not None and self._machine.halted():
            self._confirm_ownership(self._error)
            raise self._error
        self._look_at_server()
        self._source.tell_activity()
        executed = self._carry_out()
        if self._is_done():
            self._publisher.confirm()  # "done" means that the server holds it all, not only that it once answered so
            self._note_absence()
            return True
        event = executed or self._engine.next_event(IDLE_WAIT_S if self._machine.is_idle() else BUSY_WAIT_S)
        if event is not None:
            self._handle(event)
            self._report_progress()
        self._cancel_overdue()
        return False

    def _look_at_server(self) -> None:
        if self._server_watch is not None:
            self._server_watch.look()
            self._note_absence()

    def _note_absence(self) -> None:
        if self._server_watch is not None:
            self.statistics.server_away_count = self._server_watch.away_count
            self.statistics.server_away_s = self._server_watch.away_s

    def _confirm_ownership(self, error: TransactionError) -> None:
        """Makes sure that the topology is still ours before the run ends with an error that may follow from its loss.

        A committer that reads learns first that the state was dropped, or belongs to a newer run, and can only fail.
        """
        if isinstance(error, (StateRefusedError, ReplayLimitError)):
            try:
                self._publisher.confirm()
            except TransactionError as lost:
                raise lost from error

    def _is_done(self) -> bool:
        if not self._machine.is_idle() or self._waves.has_running():
            return False
        if self._source.error is not None:
            raise self._source.error
        if not self._source.active and not self._source.draining:
            return False
        if self._source.is_exhausted(self._machine.last_metadata()):
            return True
        self.statistics.is_interrupted = self._source.draining and self._source.is_finite()
        return self._source.draining

    def _cancel_overdue(self) -> None:
        """Gives up what takes longer than the message timeout, in either phase."""
        now_s = self._clock()
        for wave_id in self._waves.overdue(now_s):
            _LOG.warning("wave %d exceeds the message timeout and is cancelled", wave_id)
            self._causes.cancelled(wave_id)
            self._engine.cancel(wave_id)
        if self._group and now_s - self._group_started_s > self._message_timeout_s:
            _LOG.warning("the commit phase of %d attempts exceeds the message timeout, is cancelled", len(self._group))
            self._group_started_s = now_s  # named once per timeout
            wave_id = self._waves.wave_of(self._group[0])
            self._causes.cancelled(wave_id)
            self._engine.cancel(wave_id)

    def _report_progress(self) -> None:
        self.statistics.active = self._waves.active_count()
        self.statistics.fraction = self._source.progress(self._machine.last_metadata())
        try:
            self._on_progress(self.statistics)
        except Exception:  # noqa: BLE001 - who only listens does not end a run
            _LOG.exception("who listens to the progress raised")

    def _carry_out(self) -> GroupExecuted | None:
        """Carries out what the machine decides, and starts a wave when the engine is free.

        Returns:
            A group to commit whose commit phase has run early; to be handled at once.
        """
        executed = None
        self._source.committed_txid = self._machine.currtx - 1
        commit_limit = self._early.limit(self._machine.currtx, self._size.limit())
        commit_limit = self._watch.commit_limit(self._machine.currtx, commit_limit)
        for decision in self._machine.sync(self._source, commit_limit=commit_limit):
            if isinstance(decision, StoreMetadata):
                self._publisher.store_metadata(self._metadata.coordinator_entries(decision.entries))
            elif isinstance(decision, EmitBatch):
                self._watch.issued(decision.attempt)
                self._waves.add(decision.attempt, decision.metadata)
            elif isinstance(decision, StartCommit):
                self._asked = len(decision.attempts)
                executed = self._early.take(decision.attempts)
                if executed is None:
                    self._start_commit(decision.attempts, composed=self._composed)
        may_overlap = self._engine.overlaps or not (self._group or executed)
        if may_overlap and not self._waves.is_processing():
            self._start_wave()
        return executed

    def _start_wave(self) -> None:
        wave = self._waves.next_wave(self._clock())
        if wave is not None:
            self.statistics.started(len(wave.batches), self._clock())
            attempts = tuple(batch.attempt for batch in wave.batches)
            early = self._early.plan(attempts, self._size.limit(), composed=self._composed)
            self._engine.process(wave.wave_id, wave.batches, self._metadata.partitions, early)

    def _start_commit(self, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        self._group, self._group_started_s = attempts, self._clock()
        self._engine.commit(self._waves.wave_of(attempts[0]), attempts, composed=composed)

    def _handle(self, event: Event) -> None:
        if isinstance(event, (WaveProcessed, GroupExecuted)):
            self._causes.ended(event.wave_id)
        if isinstance(event, WaveProcessed):
            self._wave_processed(event)
        elif isinstance(event, WaveCrashed):
            self._wave_crashed(event)
        elif isinstance(event, GroupExecuted):
            if self._watch.holds_commit(event):
                self._group_started_s = self._clock()  # who holds it looks after the message timeout
            else:
                self._group_executed(event)
        elif isinstance(event, PhaseEnded):
            self._phase_ended(event)
        elif isinstance(event, GroupCrashed):
            self._group_crashed(event)
        for wave_id in self._waves.take_finished():
            self._causes.ended(wave_id)
            self._engine.release(wave_id)

    def _wave_processed(self, event: WaveProcessed) -> None:
        outcomes = complete_outcomes(self._waves.processed(event.wave_id), event.outcomes)
        self._store_cut_metadata(outcomes)
        for outcome in outcomes:
            if not self._machine.is_current(outcome.attempt):
                self.statistics.failed_outcomes([outcome])
                continue
            if outcome.failure is not None:
                self.statistics.failed_outcomes([outcome])
                self._fail(outcome.attempt, Phase.PROCESSING, outcome.failure)
                continue
            if not self._watch.holds_processing(event.wave_id, outcome):
                self._processed(event.wave_id, outcome)
        self._early.keep(group for group in event.executed if all(map(self._machine.is_current, group.attempts)))

    def _processed(self, wave_id: int, outcome: AttemptOutcome) -> None:
        self._waves.keep(outcome)
        self._machine.ack(outcome.attempt, Phase.PROCESSING, wave=wave_id)

    def _phase_ended(self, event: PhaseEnded) -> None:
        """What was held ends, unless a lower attempt has failed meanwhile."""
        if not self._machine.is_current(event.attempt):
            return
        held = event.held
        if isinstance(held, AttemptOutcome):
            if event.failure is None:
                self._processed(event.wave_id, held)
                return
            self.statistics.failed_outcomes([held])
            self._fail(event.attempt, Phase.PROCESSING, event.failure)
        elif event.failure is None:
            self._group_executed(held)
        else:
            self._group = ()
            place = held.attempts.index(event.attempt)
            self.statistics.worked(work_of(held.reports, slice(place, None)), is_committed=False)
            self._fail(event.attempt, Phase.COMMIT, event.failure)
            self._machine.defer(held.attempts[:place])

    def _store_cut_metadata(self, outcomes: list[AttemptOutcome]) -> None:
        """Stores what emitters cut, before the commit phase; nothing from the first failure on."""
        good: list[AttemptOutcome] = []
        for outcome in outcomes:
            if outcome.failure is not None or not self._machine.is_current(outcome.attempt):
                break
            good.append(outcome)
        entries = self._metadata.partition_entries(good)
        if entries:
            self._publisher.store_metadata(entries)

    def _wave_crashed(self, event: WaveCrashed) -> None:
        attempts = self._waves.crashed(event.wave_id)
        live = [attempt for attempt in attempts if self._machine.is_current(attempt)]
        reason, kind = self._causes.of(event)
        if kind is CrashKind.OVERDUE:
            self._waves.keep_below(len(attempts))
            self._early.turn_off()  # each phase has the timeout for itself
        if live:
            _LOG.warning("wave %d of %d attempts crashed: %s", event.wave_id, len(attempts), reason)
            self._crashed(live[0], Phase.PROCESSING, reason, kind, size=len(attempts))

    def _group_crashed(self, event: GroupCrashed) -> None:
        self._group = ()
        self._waves.halve(len(event.attempts))
        live = [attempt for attempt in event.attempts if self._machine.is_current(attempt)]
        reason, kind = self._causes.of(event)
        if live:
            _LOG.warning("the commit phase of %d attempts crashed: %s", len(event.attempts), reason)
            self._crashed(live[0], Phase.COMMIT, reason, kind, size=len(event.attempts))

    def _crashed(self, attempt: TransactionAttempt, phase: Phase, reason: str, kind: CrashKind, *, size: int) -> None:
        """An engine gave up on attempts from this one on, `size` of them together."""
        if kind is CrashKind.CERTAIN:
            self._error = EngineError(f"Spark cannot run txid {attempt.txid}: {reason}; lower txids are committed")
            self._machine.halt_before(attempt.txid)
            self._drop(self._machine.fail(attempt, phase), phase, reason)
            return
        self._lose(attempt, phase, reason, counts=size == 1)

    def _group_executed(self, event: GroupExecuted) -> None:
        group = Group(
            attempts=event.attempts,
            residues=self._waves.residues(event.attempts),
            commit_tasks=self._plan.commit_tasks,
            component_order=self._plan.component_order,
            operations_max=self._options.commit_operations_max,
        )
        decision = decide_group(group, event.reports)
        if decision.failed is not None:
            place = event.attempts.index(decision.failed[0])
            self.statistics.worked(work_of(event.reports, slice(place, place + 1)), is_committed=False)
            self._fail(decision.failed[0], Phase.COMMIT, decision.failed[1])
        step = decision.step
        rest = [a for a in event.attempts[len(step.attempts) :] if self._machine.is_current(a)]
        self._machine.defer(tuple(rest))
        if not self._group:  # nobody has asked the engine for it
            self._early.settled(is_wasted=isinstance(step, Again) and decision.failed is None)
        if isinstance(step, Again):
            _LOG.debug("commit phase again over %d of %d: %s", len(step.attempts), len(event.attempts), step.reason)
            self._composed = self._composed and step.composed
            self._start_commit(step.attempts, composed=step.composed)
            return
        self._group = ()
        if step.attempts:
            self._publish(step, event.reports)

    def _publish(self, step: Publish, reports: tuple[SlotReport, ...]) -> None:
        attempts, last = step.attempts, step.attempts[-1].txid
        operation_count = step.write_set.operations()
        metadata = self._metadata.commit_changes(last)
        self._machine.publish(attempts)
        try:
            self._publisher.commit(attempts, step.write_set, metadata)
        except RefusedGroup as refusal:
            self._machine.defer(attempts)
            self._size.one_by_one()
            if len(attempts) == 1:
                self._error = refusal.error
                self._machine.halt_before(attempts[0].txid)
                self._drop(self._machine.fail(attempts[0], Phase.PROCESSING), Phase.COMMIT, str(refusal.error))
            return
        self._size.published(asked=self._asked, published=len(attempts), operation_count=operation_count)
        self._metadata.committed(last)
        self._watch.committed(attempts)
        for attempt in attempts:
            outcome = self._waves.committed(attempt)
            self._machine.ack(attempt, Phase.COMMIT)
            self._failures.pop(attempt.txid, None)
            self.statistics.committed_one(attempt.txid, outcome)
        counted = [verdict.counters for report in reports for verdict in report.verdicts[: len(attempts)]]
        self.statistics.committed_group(self._clock(), counted)
        self.statistics.worked(work_of(reports, slice(len(attempts))), is_committed=True)
        self._tell(attempts)

    def _tell(self, attempts: tuple[TransactionAttempt, ...]) -> None:
        """Tells the spout what is durable. If it raises, nothing more is published: the next run tells one group."""
        error = self._committer.tell(attempts)
        if error is not None:
            self._error = error
            self._machine.halt_before(self._machine.currtx)

    def _fail(self, attempt: TransactionAttempt, phase: Phase, failure: Failure) -> None:
        if failure.halts():
            self._error = failure.to_error(attempt)
            self._machine.halt_before(attempt.txid)
            self._drop(self._machine.fail(attempt, phase), phase, str(failure))
            return
        self._replays.failed(attempt, str(failure))
        self._lose(attempt, phase, str(failure), counts=True)

    def _lose(self, attempt: TransactionAttempt, phase: Phase, reason: str, *, counts: bool) -> None:
        self._drop(self._machine.fail(attempt, phase), phase, reason)
        self._failures[attempt.txid] += counts
        if self._failures[attempt.txid] >= self._options.max_attempts:
            self._error = ReplayLimitError(attempt.txid, self._failures[attempt.txid], reason)
            self._machine.halt_before(attempt.txid)

    def _drop(self, attempts: list[TransactionAttempt], phase: Phase, reason: str) -> None:
        """Forgets attempts that are void because the first of them failed, and cancels waves that hold nothing else."""
        if attempts:
            self._watch.failed(attempts, phase, reason)
        self.statistics.failed_attempts += sum(map(self._waves.was_started, attempts))
        self.statistics.failed_outcomes(self._waves.kept(attempts))
        self._early.dropped(attempts)
        self._metadata.drop(attempts)
        for wave_id in self._waves.dropped(attempts):
            self._engine.cancel(wave_id)
