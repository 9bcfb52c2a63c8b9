"""The run of a transactional topology as one state machine: events in, decisions out.

It knows every transaction between the last committed one and the end of the window. It decides which ones to cut, to
send in one wave, to commit and to retry, and when the run ends. It has no clock, no store, no spout and no engine: even
cutting a batch is a decision that the driver carries out and reports back. An event about an attempt that is not
current is ignored before it changes anything.

Source: backtype.storm.transactional.TransactionalSpoutCoordinator. Differs from Storm: transactions commit in groups,
a wave carries many attempts, an attempt whose commit was sent never fails, and once `is_ready` returns False nothing
more is cut in that turn.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

from coordinator.transactional.engine import (
    FailedByHand,
    GroupCrashed,
    GroupExecuted,
    PhaseWaits,
    WaveCrashed,
    WaveProcessed,
)
from coordinator.transactional.machine.commits import Commits
from coordinator.transactional.machine.cutting import Cutting
from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.positions import Positions
from coordinator.transactional.machine.processing import Processing
from coordinator.transactional.machine.quarantining import Quarantining
from coordinator.transactional.machine.releases import Releases
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import (
    AskForEnd,
    BarrierConfirmed,
    BatchCut,
    Decision,
    Done,
    FirstPositions,
    Halt,
    InputState,
    NothingToCut,
    Published,
    Refused,
    ReleaseWave,
    Resumed,
    RunEvent,
    SpoutNotified,
    StoreMetadata,
    TimePassed,
    Turn,
)
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_record import (
    AttemptState,
    TransactionRecord,
)
from coordinator.transactional.machine.transaction_records import COMMITTING, TransactionRecords
from coordinator.transactional.machine.wave_records import CrashCauses, WaveRecords
from coordinator.transactional.machine.wave_size import WaveSize
from coordinator.transactional.options import RunOptions
from coordinator.watching.failure_cause import Phase
from state.errors import ProtocolError
from state.metadata import MetadataChanges

_LOG = logging.getLogger("txbatch")


class RunMachine:
    """One run of one topology, from the first uncommitted txid on.

    Args:
        plan: the topology, as far as the machine needs to know it.
        options: limits of the run.
        metadata: the metadata that earlier runs stored.
        committed_txid: last committed txid.
        earlier: transactions that earlier runs cut and stored; None derives them from the metadata.
        new_attempt_id: draws an attempt id.
    """

    def __init__(
        self,
        plan: RunPlan,
        options: RunOptions,
        metadata: MetadataLog,
        *,
        committed_txid: int,
        new_attempt_id: Callable[[], int],
        earlier: Iterable[TransactionRecord] | None = None,
    ) -> None:
        stored = (TransactionRecord(txid, value) for txid, value in metadata.coordinator.items())
        transactions = TransactionRecords(
            stored if earlier is None else earlier, committed_txid=committed_txid, new_attempt_id=new_attempt_id
        )
        self._plan, self._is_contiguous = plan, not plan.is_opaque
        self._books = RunBooks(
            plan=plan,
            options=options,
            metadata=metadata,
            transactions=transactions,
            waves=WaveRecords(WaveSize(options.max_spout_pending, options.wave_target_s), plan.cancel_after_s),
            causes=CrashCauses(plan.message_timeout_s),
            positions=Positions(metadata, transactions, is_opaque=plan.is_opaque),
        )
        self._transactions = transactions
        self._failures = Failures(self._books)
        self._releases = Releases(self._books, committed_txid)
        self._commits = Commits(self._books, self._failures, self._releases)
        self._quarantining = Quarantining(self._books, self._failures, self._releases)
        self._processing = Processing(self._books, self._failures, self._commits)
        self._cutting = Cutting(self._books, self._failures)
        self._handlers: dict[type[RunEvent], Callable[[Any], Iterator[Decision]]] = {
            Resumed: lambda resumed: self._releases.resumed(resumed.unnotified),
            FirstPositions: self._take_first_positions,
            Turn: self._begin_turn,
            TimePassed: self._give_up_overdue,
            BatchCut: self._batch_cut,
            NothingToCut: self._nothing_cut,
            WaveProcessed: self._processing.processed,
            WaveCrashed: self._processing.crashed,
            GroupExecuted: self._commits.executed,
            GroupCrashed: self._commits.crashed,
            FailedByHand: self._failed_by_hand,
            PhaseWaits: self._phase_waits,
            Published: lambda published: self._committing().published(published),
            BarrierConfirmed: self._barrier_confirmed,
            Refused: lambda refused: self._committing().refused(refused),
            SpoutNotified: self._spout_notified,
            InputState: self._judge_input,
        }

    # What a driver asks

    def handle(self, event: RunEvent) -> list[Decision]:
        """Handles an event and returns what to do now, in order.

        Raises:
            ProtocolError: the event cannot follow what was decided before, which is a bug in txbatch.
        """
        decisions = list(self._handlers[type(event)](event))
        finished = self._books.waves.take_finished()
        for wave_id in finished:
            self._books.causes.ended(wave_id)
        return [*decisions, *map(ReleaseWave, finished)]

    @property
    def released_txid(self) -> int:
        """Last txid known to be as durable as the run has asked."""
        return self._releases.released_txid

    @property
    def positions(self) -> Positions:
        """The position of every partition, for the engine and for spouts that need them."""
        return self._books.positions

    @property
    def currtx(self) -> int:
        """Lowest txid that is not committed."""
        return self._transactions.currtx

    @property
    def commit_group_max(self) -> int:
        """The most transactions of a group, according to the options."""
        return self._books.options.commit_group_max

    def quarantined_txids(self) -> Set[int]:
        """Returns the txids whose batches this run has quarantined."""
        return self._failures.quarantined

    def is_halted(self) -> bool:
        """Returns whether the next turn ends the run with an error."""
        return self._failures.is_halted()

    def is_idle(self) -> bool:
        """Returns whether no attempt is active."""
        return not any(self._transactions.active())

    def has_room(self) -> bool:
        """Returns whether a wave could start at once if the spout had input."""
        may_start = self._plan.engine_overlaps or self._commits.phase is None
        return may_start and not self._books.waves.is_processing()

    def _may_queue(self) -> bool:
        """Returns whether a wave may be handed over while one is processed, so that no slot waits for the driver.

        A wave is not queued where committers run in a separate job, which would wait for both waves.
        """
        if not (self._plan.engine_queues and self._commits.early.is_on and self._books.waves.may_queue()):
            return False
        return len(self._transactions.waiting()) >= self._books.waves.size.limit

    def may_cut(self) -> bool:
        """Returns whether the window has room for another transaction."""
        return self.last_txid() + 1 < self._cutting.window_end()

    def is_blocked(self) -> bool:
        """Returns whether nothing more may be committed, or the run may not end, before a barrier is confirmed."""
        return self._releases.is_blocked()

    def last_txid(self) -> int:
        """Returns the highest txid cut so far, or the last committed one."""
        return self._transactions.last_txid()

    def unstored_notes(self) -> MetadataChanges:
        """Returns the changes to store at the end of the run for notes that a change of input has replaced."""
        return self._books.metadata.unstored_notes(self.currtx - 1)

    def active_count(self) -> int:
        """Returns the number of active attempts, including those that wait for a wave."""
        return sum(1 for _ in self._transactions.active())

    def window(self) -> dict[str, int]:
        """Returns state -> count of active attempts, for display; attempts sent to the store count as committing."""
        counts = Counter(record.state for record in self._transactions.active())
        return {
            "waiting": counts[AttemptState.WAITING],
            "processing": counts[AttemptState.PROCESSING],
            "processed": counts[AttemptState.PROCESSED],
            "committing": sum(counts[state] for state in (*COMMITTING, AttemptState.SETTING_ASIDE)),
        }

    def story(self, txid: int) -> list[str]:
        """Returns the last transitions of a transaction, over all its attempts; for errors and logs."""
        return self._transactions[txid].story() if txid in self._transactions else []

    # A turn: commit, cut, start a wave

    def _take_first_positions(self, first: FirstPositions) -> Iterator[Decision]:
        yield StoreMetadata(self._books.metadata.take_first_positions(first.positions))

    def _begin_turn(self, turn: Turn) -> Iterator[Decision]:
        self._books.now_s = turn.now_s
        if self._failures.error is not None and self.is_halted():
            yield Halt(self._failures.error)
            return
        yield from self._releases.due()
        if turn.is_awaited and self.is_idle() and self._releases.is_pending():
            self._releases.block()
        poison = self._failures.due_poison()
        if poison is None:
            yield from self._commits.start_next(turn.commit_limit)
        else:
            yield from self._quarantining.set_aside(poison)
        yield from self._cutting.begin()
        yield from self._after_cutting()

    def _batch_cut(self, cut: BatchCut) -> Iterator[Decision]:
        yield from self._cutting.take_in(cut)
        yield from self._after_cutting()

    def _nothing_cut(self, nothing: NothingToCut) -> Iterator[Decision]:
        yield from self._cutting.end(nothing)
        yield from self._after_cutting()

    def _after_cutting(self) -> Iterator[Decision]:
        """Ends the turn, unless a batch is still being cut: starts a wave if there is room, and commits meanwhile."""
        if self._cutting.is_under_way:
            return
        if self.has_room() or self._may_queue():
            yield from self._processing.start()
        if self.is_idle() and not self._cutting.has_rest and self._failures.poison is None:
            yield Done() if self._is_complete() else AskForEnd()
        yield from self._commits.judge_early()

    def _committing(self) -> Commits | Quarantining:
        """Returns the part that waits for the store's answer."""
        return self._commits if self._quarantining.sent is None else self._quarantining

    # The end

    def _judge_input(self, state: InputState) -> Iterator[Decision]:
        if state.error is not None:
            yield Halt(state.error)
        elif (state.is_exhausted or state.is_draining) and self._failures.error is None and self._releases.is_pending():
            self._releases.block()  # the end waits too
        elif state.is_exhausted or state.is_draining:
            error = self._failures.error  # transactions missing below it will not be cut again
            yield Done(state.is_finite and not state.is_exhausted) if error is None else Halt(error)

    # Release upstream

    def _barrier_confirmed(self, confirmed: BarrierConfirmed) -> Iterator[Decision]:
        self._books.now_s = confirmed.now_s
        yield from self._releases.confirmed(confirmed)

    def _spout_notified(self, event: SpoutNotified) -> Iterator[Decision]:
        """Halts the run if the spout could not be notified: it must be notified of every commit, in order."""
        if event.error is None:
            self._releases.notified()
            return
        yield from self._commits.give_up()
        yield from self._failures.halt_now(event.error, "the spout could not be notified of what is durable")

    # What engines report

    def _failed_by_hand(self, event: FailedByHand) -> Iterator[Decision]:
        current = self._transactions.current_of(event.attempt.txid)
        if current is None or current.attempt != event.attempt:
            return  # a lower attempt has failed meanwhile
        if event.executed is not None:
            yield from self._commits.failed_by_hand(event, event.executed)
        elif current.state is AttemptState.PROCESSED:
            yield from self._failures.failed(event.attempt, Phase.PROCESSING, event.failure)
        else:
            raise ProtocolError(f"attempt {event.attempt} was failed by hand while it was {current.state.value}")

    # What takes too long

    def _phase_waits(self, event: PhaseWaits) -> Iterator[Decision]:
        """Counts no time against attempts while none of their tasks runs: the attempts are not what takes long."""
        for wave_id in event.wave_ids:
            if self._books.waves.waits(wave_id):
                self._commits.waits(wave_id)
                self._books.causes.waits(wave_id)
        return iter(())

    def _give_up_overdue(self, passed: TimePassed) -> Iterator[Decision]:
        """Cancels phases that exceed the message timeout, and gives up an overdue barrier."""
        self._books.now_s = passed.now_s
        yield from self._processing.give_up_overdue()
        yield from self._commits.give_up_overdue()
        yield from self._releases.give_up_overdue()

    def _is_complete(self) -> bool:
        """Returns whether the last transaction that the options ask for is committed."""
        last_txid = self._books.options.last_txid
        return last_txid is not None and self.currtx > last_txid and self._failures.error is None

    def validate(self) -> None:
        """Checks every invariant; called after each event by tests and simulations.

        Raises:
            AssertionError: an invariant is violated.
        """
        active = list(self._transactions.active())
        self._transactions.validate(window=self._books.waves.size.window_max(), is_contiguous=self._is_contiguous)
        self._books.waves.validate({record.attempt: record.wave_id for record in active if record.wave_id})
        self._failures.validate([record.attempt.txid for record in active])
        self._commits.validate()
        sent = () if self._quarantining.sent is None else self._quarantining.sent.attempts
        assert sent == tuple(one.attempt for one in active if one.state is AttemptState.SETTING_ASIDE)
        self._releases.validate()
