"""The run of a transactional topology as one state machine: events in, decisions out.

It knows every transaction between the last committed one and the end of the window, and decides which are cut,
which travel together, what is committed, what is replayed and when the run is over. It has no clock, no store,
no spout and no engine: even cutting a batch is a decision that the driver carries out and reports back. Whatever
concerns an attempt that is not current is ignored before anything is touched.

Source: backtype.storm.transactional.TransactionalSpoutCoordinator. Differs from Storm: commits go by groups, a
wave carries many attempts, an attempt whose commit was sent is never failed, and `is_ready` stops at the first no.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from committers import Again, Group, GroupSize, SlotReport, decide_group
from committers import Publish as PublishStep
from coordinated_bolt import AttemptOutcome, Failure
from coordinator.engine import GroupCrashed, GroupExecuted, WaveCrashed, WaveProcessed
from coordinator.metadata_log import MetadataLog
from coordinator.options import RunOptions
from coordinator.run_summary import RunStatistics
from coordinator.spouts.emitting import Batch
from coordinator.transactional.attempt_record import AttemptState
from coordinator.transactional.early_commits import EarlyCommits
from coordinator.transactional.positions import Positions
from coordinator.transactional.run_events import (
    AnotherTurn,
    AskForEnd,
    Attempts,
    BatchCut,
    CancelWave,
    Cut,
    Decision,
    Done,
    Halt,
    InputState,
    NothingToCut,
    Publish,
    Published,
    Refused,
    ReleaseWave,
    RunEvent,
    StartCommit,
    StartWave,
    StoreMetadata,
    Tell,
    TimePassed,
    Told,
    Turn,
)
from coordinator.transactional.run_phases import CommitPhase, CuttingRound, validate_phase
from coordinator.transactional.run_plan import RunPlan
from coordinator.transactional.run_reports import in_order, work_done
from coordinator.transactional.transaction_records import IN_COMMIT_PHASE, TransactionRecords
from coordinator.transactional.wave_records import WaveRecords
from state import ProtocolError, ReplayLimitError, TransactionAttempt, TransactionError, pack

_LOG = logging.getLogger("txbatch")


class RunMachine:
    """One run of one topology, from the first uncommitted txid on.

    Args:
        plan: what is known of the topology.
        options: bounds of the run.
        metadata: stored metadata.
        committed_txid: last committed txid.
        byte_counts: txid -> about how much input its stored batch reads.
        new_attempt_id: draws an attempt id.

    Attributes:
        statistics: what was done so far.
        positions: where every partition stands, for the engine and for spouts that go by it.
    """

    def __init__(
        self,
        plan: RunPlan,
        options: RunOptions,
        metadata: MetadataLog,
        *,
        committed_txid: int,
        new_attempt_id: Callable[[], int],
        byte_counts: Mapping[int, int] | None = None,
    ) -> None:
        self._plan, self._options, self._metadata = plan, options, metadata
        self.statistics = RunStatistics(last_txid=committed_txid)
        self._transactions = TransactionRecords(
            metadata.coordinator, byte_counts or {}, committed_txid=committed_txid, new_attempt_id=new_attempt_id
        )
        self.positions = Positions(metadata, self._transactions, is_opaque=plan.is_opaque)
        self._waves = WaveRecords(options.max_spout_pending, plan.message_timeout_s)
        self._size = GroupSize(options.commit_group_max, options.commit_operations_max)
        self._early = EarlyCommits(is_on=options.early_commit and plan.may_commit_early)
        self._composed = True
        self._phase: CommitPhase | None = None
        self._round: CuttingRound | None = None
        self._now_s = 0.0
        self._halt_before: int | None = None
        self._error: TransactionError | None = None
        self._handlers: dict[type[RunEvent], Callable[[Any], Iterator[Decision]]] = {
            Turn: self._begin_turn,
            TimePassed: self._give_up_overdue,
            BatchCut: self._take_in,
            NothingToCut: self._cut_nothing,
            WaveProcessed: self._wave_processed,
            WaveCrashed: self._wave_crashed,
            GroupExecuted: self._group_executed,
            GroupCrashed: self._group_crashed,
            Published: self._published,
            Refused: self._refused,
            Told: self._told,
            InputState: self._judge_input,
        }

    # What a driver asks

    def handle(self, event: RunEvent) -> list[Decision]:
        """Takes in an event and answers with what is to be done now, in this order.

        Raises:
            ProtocolError: the event cannot follow what was decided before: a bug of ours.
        """
        decisions = list(self._handlers[type(event)](event))
        return [*decisions, *map(ReleaseWave, self._waves.take_finished())]

    @property
    def currtx(self) -> int:
        """Lowest txid that is not committed."""
        return self._transactions.currtx

    def is_idle(self) -> bool:
        """Whether no attempt is active."""
        return not any(self._transactions.active())

    def last_metadata(self) -> Any:
        """Metadata of the highest txid cut so far, None before the first."""
        return self._transactions.last_metadata()

    def last_txid(self) -> int:
        """The highest txid cut so far, or the last committed one."""
        return self._transactions.last_txid()

    def active_count(self) -> int:
        """Attempts under way or waiting."""
        return sum(1 for _ in self._transactions.active())

    def story(self, txid: int) -> list[str]:
        """What happened to a transaction last, over all its attempts; for errors and logs."""
        return list(self._transactions[txid].story) if txid in self._transactions else []

    # A turn: commit, cut, start a wave

    def _begin_turn(self, turn: Turn) -> Iterator[Decision]:
        self._now_s = turn.now_s
        if self._error is not None and self._is_halted():
            yield Halt(self._error)
            return
        self._round = CuttingRound()
        yield from self._start_next_group()
        yield from self._continue_cutting()

    def _start_next_group(self) -> Iterator[Decision]:
        if self._phase is not None:
            return
        self._early.forget_all_but(self._transactions.is_current)
        limit = self._early.limit(self.currtx, self._size.limit())
        attempts = self._transactions.processed_run(min(limit, self._options.commit_group_max))
        if not attempts:
            return
        self._transactions.move(attempts, AttemptState.COMMITTING)
        assert self._round is not None
        self._round.early = self._early.take(attempts)
        self._phase = CommitPhase(attempts, len(attempts), self._now_s, is_early=self._round.early is not None)
        if self._round.early is None:
            yield self._start_commit(attempts, composed=self._composed)

    def _continue_cutting(self) -> Iterator[Decision]:
        """Issues attempts up to the first txid that has to be cut; the round ends with the window."""
        for txid in range(self.currtx, self._window_end()):
            if self._transactions.current_of(txid) is not None:
                continue
            if txid not in self._transactions or self._plan.is_opaque:
                yield Cut(txid, self._previous(txid), is_new=txid not in self._transactions)
                return
            self._transactions.issue(txid)
        yield from self._end_cutting()

    def _previous(self, txid: int) -> Any:
        if txid - 1 in self._transactions:
            return self._transactions[txid - 1].metadata
        if txid > 1 and not self._plan.is_opaque:
            raise ProtocolError(f"txid {txid} was to be cut without the metadata of txid {txid - 1}")
        return None

    def _take_in(self, cut: BatchCut) -> Iterator[Decision]:
        assert self._round is not None
        self._now_s = cut.now_s
        self._round.cut[cut.txid] = cut.metadata
        self._transactions.take_in(cut.txid, cut.metadata, cut.byte_count)
        yield from self._continue_cutting()

    def _cut_nothing(self, nothing: NothingToCut) -> Iterator[Decision]:
        self._now_s = nothing.now_s
        yield from self._end_cutting()

    def _end_cutting(self) -> Iterator[Decision]:
        assert self._round is not None
        ended, self._round = self._round, None
        if ended.cut and not self._plan.is_opaque:
            yield StoreMetadata(self._metadata.coordinator_entries(ended.cut))
        may_start = self._plan.engine_overlaps or self._phase is None
        if may_start and not self._waves.is_processing():
            yield from self._start_wave()
        if ended.early is not None:
            yield from self.handle(ended.early)
            yield AnotherTurn()
        elif self.is_idle() and not self._waves.has_running():
            yield AskForEnd(self.last_metadata())

    def _start_wave(self) -> Iterator[Decision]:
        waiting = self._transactions.waiting()
        chosen = waiting[: self._waves.room([record.byte_count for record in waiting])]
        if not chosen:
            return
        batches = tuple(Batch(record.current.attempt, pack(record.metadata)) for record in chosen if record.current)
        attempts = tuple(batch.attempt for batch in batches)
        wave = self._waves.start(attempts, self._now_s)
        for record in chosen:
            record.move(AttemptState.PROCESSING, f"wave {wave.wave_id}").wave_id = wave.wave_id
        self.statistics.started(len(chosen), self._now_s)
        yield StartWave(wave.wave_id, batches, self._early.plan(attempts, self._size.limit(), composed=self._composed))

    def _start_commit(self, attempts: Attempts, *, composed: bool) -> StartCommit:
        assert self._phase is not None
        self._phase.attempts, self._phase.started_s, self._phase.is_early = attempts, self._now_s, False
        return StartCommit(self._wave_of(attempts), attempts, composed)

    # The end

    def _judge_input(self, state: InputState) -> Iterator[Decision]:
        if state.error is not None:
            yield Halt(state.error)
        elif state.is_exhausted:
            yield Done()
        elif state.is_draining:
            self.statistics.is_interrupted = state.is_finite
            yield Done()

    def _told(self, told: Told) -> Iterator[Decision]:
        """A spout that cannot be told what is durable gets nothing more published: the next run tells one group."""
        if told.error is not None:
            self._halt_at(self.currtx, told.error)
            yield from self._drop_from(self.currtx, "the spout could not be told what is durable")

    def _is_halted(self) -> bool:
        return self._halt_before is not None and self.currtx >= self._halt_before

    def _halt_at(self, txid: int, error: TransactionError) -> None:
        """No attempt at `txid` or above is made any more; lower ones are committed, then the run ends."""
        self._error = error
        self._halt_before = txid if self._halt_before is None else min(txid, self._halt_before)

    # What engines report

    def _wave_processed(self, event: WaveProcessed) -> Iterator[Decision]:
        wave = self._waves.processed(event.wave_id)
        outcomes = in_order(wave.attempts, event.outcomes)
        yield from self._store_positions(outcomes)
        for outcome in outcomes:
            record = self._transactions.record_of(outcome.attempt)
            if record is None:
                self.statistics.failed_outcomes([outcome])
            elif outcome.failure is not None:
                self.statistics.failed_outcomes([outcome])
                yield from self._fail(outcome.attempt, outcome.failure)
            else:
                record.move(AttemptState.PROCESSED).outcome = outcome
        self._early.keep(group for group in event.executed if all(map(self._transactions.is_current, group.attempts)))

    def _store_positions(self, outcomes: Iterable[AttemptOutcome]) -> Iterator[Decision]:
        """Stores what emitters cut, before the commit phase; nothing from the first failure on."""
        if self._plan.is_opaque:
            return
        good: list[AttemptOutcome] = []
        for outcome in outcomes:
            if outcome.failure is not None or not self._transactions.is_current(outcome.attempt):
                break
            good.append(outcome)
        entries = self._metadata.partition_entries(good)
        if entries:
            yield StoreMetadata(entries)

    def _wave_crashed(self, event: WaveCrashed) -> Iterator[Decision]:
        attempts = self._waves.crashed(event.wave_id).attempts
        yield from self._crashed(attempts, event.reason, f"wave {event.wave_id} of {len(attempts)} attempts")

    def _group_crashed(self, event: GroupCrashed) -> Iterator[Decision]:
        if self._phase is None or self._phase.attempts != event.attempts:
            return  # of a group that was given up
        self._phase = None
        self._waves.halve(len(event.attempts))
        yield from self._crashed(event.attempts, event.reason, f"the commit phase of {len(event.attempts)} attempts")

    def _crashed(self, attempts: Attempts, reason: str, what: str) -> Iterator[Decision]:
        """Something ended without naming an attempt: only one that was alone in it is to blame."""
        live = [attempt for attempt in attempts if self._transactions.is_current(attempt)]
        if live:
            _LOG.warning("%s crashed: %s", what, reason)
            yield from self._lose(live[0], reason, is_to_blame=len(attempts) == 1)

    def _group_executed(self, event: GroupExecuted) -> Iterator[Decision]:
        phase = self._phase
        if phase is None or phase.attempts != event.attempts:
            return  # of a group that was given up
        decision = decide_group(self._group(event.attempts), event.reports)
        if decision.failed is not None:
            attempt, failure = decision.failed
            place = event.attempts.index(attempt)
            self.statistics.worked(work_done(event.reports, slice(place, place + 1)), is_committed=False)
            yield from self._fail(attempt, failure)
        step = decision.step
        self._transactions.defer(event.attempts[len(step.attempts) :])
        if phase.is_early:
            self._early.settled(is_wasted=isinstance(step, Again) and decision.failed is None)
        if isinstance(step, Again):
            _LOG.debug("commit phase again over %d of %d: %s", len(step.attempts), len(event.attempts), step.reason)
            self._composed = self._composed and step.composed
            yield self._start_commit(step.attempts, composed=step.composed)
        elif step.attempts:
            yield from self._publish(step, event.reports)
        else:
            self._phase = None

    def _group(self, attempts: Attempts) -> Group:
        outcomes = self._transactions.outcomes(attempts)
        return Group(
            attempts=attempts,
            residues={attempt: outcome.residue for attempt, outcome in outcomes.items()},
            commit_tasks=self._plan.commit_tasks,
            component_order=self._plan.component_order,
            operations_max=self._options.commit_operations_max,
        )

    # Commits

    def _publish(self, step: PublishStep, reports: tuple[SlotReport, ...]) -> Iterator[Decision]:
        assert self._phase is not None
        self._transactions.move(step.attempts, AttemptState.PUBLISHING)
        self._phase.publishing, self._phase.reports = step, reports
        metadata = self._metadata.commit_changes(step.attempts[-1].txid, self.positions.uncommitted())
        yield Publish(step.attempts, step.write_set, metadata)

    def _published(self, published: Published) -> Iterator[Decision]:
        self._now_s = published.now_s
        phase, step = self._answered()
        last = step.attempts[-1].txid
        self._size.published(
            asked=phase.asked, published=len(step.attempts), operation_count=step.write_set.operations()
        )
        self._metadata.committed(last, self.positions.uncommitted())
        for ended in self._transactions.committed(step.attempts):
            self._waves.let_go(ended.wave_id, ended.attempt)
            assert ended.outcome is not None
            self.statistics.committed_one(ended.attempt.txid, ended.outcome)
        counted = [verdict.counters for report in phase.reports for verdict in report.verdicts[: len(step.attempts)]]
        self.statistics.committed_group(self._now_s, counted)
        self.statistics.worked(work_done(phase.reports, slice(len(step.attempts))), is_committed=True)
        yield Tell(step.attempts)

    def _refused(self, refused: Refused) -> Iterator[Decision]:
        """Nothing was changed: the culprit is found one by one, and alone it ends the run."""
        _, step = self._answered()
        self._transactions.move(step.attempts, AttemptState.PROCESSED, f"refused: {refused.error}")
        self._size.one_by_one()
        if len(step.attempts) == 1:
            self._halt_at(step.attempts[0].txid, refused.error)
            yield from self._drop_from(step.attempts[0].txid, "refused")

    def _answered(self) -> tuple[CommitPhase, PublishStep]:
        phase, self._phase = self._phase, None
        if phase is None or phase.publishing is None:
            raise ProtocolError("the store has answered a commit that was not sent")
        return phase, phase.publishing

    # Failures

    def _fail(self, attempt: TransactionAttempt, failure: Failure) -> Iterator[Decision]:
        if failure.halts():
            self._halt_at(attempt.txid, failure.to_error(attempt))
            yield from self._drop_from(attempt.txid, str(failure))
            return
        _LOG.info("attempt %s failed and is replayed: %s", attempt, failure)
        yield from self._lose(attempt, str(failure), is_to_blame=True)

    def _lose(self, attempt: TransactionAttempt, reason: str, *, is_to_blame: bool) -> Iterator[Decision]:
        record = self._transactions[attempt.txid]
        yield from self._drop_from(attempt.txid, reason)
        record.failure_count += is_to_blame
        if record.failure_count >= self._options.max_attempts:
            self._halt_at(attempt.txid, ReplayLimitError(attempt.txid, record.failure_count, reason))

    def _drop_from(self, txid: int, reason: str) -> Iterator[Decision]:
        """An attempt is void, and with it all later ones; waves that hold nothing else are given up."""
        dropped = self._transactions.drop_from(txid, reason)
        for ended in dropped:
            self._waves.let_go(ended.wave_id, ended.attempt)
        self.statistics.failed_attempts += len(dropped)
        self.statistics.failed_outcomes(ended.outcome for ended in dropped if ended.outcome is not None)
        yield from map(CancelWave, self._waves.running_for_nothing({ended.wave_id for ended in dropped}))

    def _give_up_overdue(self, passed: TimePassed) -> Iterator[Decision]:
        """Gives up what takes longer than the message timeout, in either phase."""
        self._now_s = passed.now_s
        for wave in self._waves.overdue(self._now_s):
            _LOG.warning("wave %d exceeds the message timeout and is cancelled", wave.wave_id)
            self._early.turn_off()  # each phase has the timeout for itself
            yield CancelWave(wave.wave_id)
        phase = self._phase
        if phase is not None and self._now_s - phase.started_s > self._plan.message_timeout_s:
            count = len(phase.attempts)
            _LOG.warning("the commit phase of %d attempts exceeds the message timeout, is cancelled", count)
            phase.started_s = self._now_s  # named once per timeout
            yield CancelWave(self._wave_of(phase.attempts))

    def _wave_of(self, attempts: Attempts) -> int:
        current = self._transactions.current_of(attempts[0].txid)
        assert current is not None
        return current.wave_id

    def _window_end(self) -> int:
        end = self.currtx + self._options.max_spout_pending
        return end if self._halt_before is None else min(end, self._halt_before)

    def validate(self) -> None:
        """Checks every invariant; called after each event by tests and simulations.

        Raises:
            AssertionError: one is broken.
        """
        active = list(self._transactions.active())
        self._transactions.validate(window=self._options.max_spout_pending, is_contiguous=not self._plan.is_opaque)
        self._waves.validate({record.attempt: record.wave_id for record in active if record.wave_id})
        halt = self._halt_before
        assert halt is None or all(record.attempt.txid < halt for record in active), "an attempt beyond the halt"
        validate_phase(self._phase, [record for record in active if record.state in IN_COMMIT_PHASE])
