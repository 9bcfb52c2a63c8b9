"""Drives one run: the machine decides, the spout cuts, the engine works, the store publishes.

One thread: every decision is carried out, and answered, before the next event of the engine is looked at.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from coordinator.transactional.attempt_watch import AttemptWatch
from coordinator.transactional.engine import Engine, GroupExecuted, PhaseEnded
from coordinator.transactional.guarded_committer import GuardedCommitter
from coordinator.transactional.guarded_source import GuardedSource
from coordinator.transactional.machine.run_events import (
    AskForEnd,
    AskWatch,
    BatchCut,
    CancelWave,
    Cut,
    Decision,
    Done,
    Dropped,
    Halt,
    InputState,
    Issued,
    NothingToCut,
    Publish,
    Published,
    RanEarly,
    Refused,
    ReleaseWave,
    Replayed,
    RunEvent,
    StartCommit,
    StartWave,
    StoreMetadata,
    Tell,
    TimePassed,
    Told,
    Turn,
)
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.publisher import Publisher, RefusedGroup
from coordinator.transactional.replay_log import ReplayLog
from coordinator.transactional.run_summary import RunStatistics
from state.attempt import TransactionAttempt
from state.errors import FailedException, ReplayLimitError, StateRefusedError, TransactionError
from state.redis_watch import ServerWatch

_LOG = logging.getLogger("txbatch")
BUSY_WAIT_S = 0.5
IDLE_WAIT_S = 0.05


class Coordinator:
    """One run of one topology, from the first uncommitted txid until the input ends or it is drained.

    Args:
        machine: decides, from the first uncommitted txid on.
        source: the spout's coordinator.
        committer: the spout's committer, if it has one.
        engine: runs waves.
        publisher: stores and commits, as the owner of the topology.
        clock: seconds, monotonic.
        on_progress: called after every event with the statistics.
        notes_of: metadata of the spout's coordinator -> name -> what to remember.
        last_group: what earlier runs committed last, to be told to the committer again.
        notices: what is different from the run before, for `statistics`.
        watch: told of every attempt, and may hold its phases.
        server_watch: looks at the server again while the run lasts.
    """

    def __init__(
        self,
        *,
        machine: RunMachine,
        source: GuardedSource,
        committer: GuardedCommitter,
        engine: Engine,
        publisher: Publisher,
        clock: Callable[[], float],
        on_progress: Callable[[RunStatistics], None],
        notes_of: Callable[[Any], Mapping[str, Any]],
        last_group: tuple[TransactionAttempt, ...] = (),
        notices: tuple[str, ...] = (),
        watch: AttemptWatch | None = None,
        server_watch: ServerWatch | None = None,
    ) -> None:
        self._machine, self._source, self._committer = machine, source, committer
        self._engine, self._publisher = engine, publisher
        self._clock = clock
        self._on_progress = on_progress
        self._notes_of = notes_of
        self._last_group = last_group
        self._watch = watch or AttemptWatch()
        self._server_watch = server_watch
        self._replays = ReplayLog(clock)
        self._ran_early: GroupExecuted | None = None
        self._is_done = False
        self.statistics.notices = notices

    @property
    def statistics(self) -> RunStatistics:
        """What was done so far."""
        return self._machine.statistics

    def drain(self) -> None:
        """Takes no new transactions; the run ends when those under way are committed. Any thread."""
        self._source.draining = True

    def deactivate(self) -> None:
        """Takes no new transactions until `activate`; those under way are committed, the run stays. Any thread."""
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
        if self._last_group:
            told, self._last_group = self._last_group, ()
            self._handle(Told(self._committer.tell(told)))
        machine, clock = self._machine, self._clock
        if not machine.is_halted():
            self._look_at_server()
            self._source.tell_activity()
        self._source.committed_txid = machine.currtx - 1
        self._handle(Turn(clock(), self._watch.commit_limit(machine.currtx, machine.commit_group_max)))
        if self._is_done:
            self._publisher.confirm()  # "done" means that the server holds it all, not only that it once answered so
            self._note_absence()
            return True
        ran_early, self._ran_early = self._ran_early, None
        event = ran_early or self._engine.next_event(IDLE_WAIT_S if machine.is_idle() else BUSY_WAIT_S)
        if event is not None:
            self._handle(event)
            self._report_progress()
        self._handle(TimePassed(clock()))
        return False

    def _look_at_server(self) -> None:
        if self._server_watch is not None:
            self._server_watch.look()
            self._note_absence()

    def _note_absence(self) -> None:
        if self._server_watch is not None:
            self.statistics.server_away_count = self._server_watch.away_count
            self.statistics.server_away_s = self._server_watch.away_s

    def _handle(self, event: RunEvent) -> None:
        """Carries out everything that follows from an event."""
        decisions = deque(self._machine.handle(event))
        while decisions:  # bounded: what answers a decision asks for less
            answer = self._carry_out(decisions.popleft())
            if answer is not None:
                decisions.extend(self._machine.handle(answer))

    def _carry_out(self, decision: Decision) -> RunEvent | None:
        """Does what was decided; returns the answer where there is one."""
        match decision:
            case Cut():
                return self._cut(decision)
            case Publish():
                return self._publish(decision)
            case Tell(attempts):
                return Told(self._committer.tell(attempts))
            case AskForEnd(last_metadata):
                return self._input_state(last_metadata)
            case AskWatch():
                return self._ask_watch(decision)
            case StoreMetadata(entries):
                self._publisher.store_metadata(entries)
            case RanEarly(executed):
                self._ran_early = executed
            case Done():
                self._is_done = True
            case Halt(error):
                self._halt(error)
            case Issued() | Dropped() | Replayed():
                self._notify(decision)
            case StartWave() | StartCommit() | CancelWave() | ReleaseWave():
                self._command(decision)
        return None

    def _command(self, decision: StartWave | StartCommit | CancelWave | ReleaseWave) -> None:
        match decision:
            case StartWave(wave_id, batches, early):
                self._engine.process(wave_id, batches, self._machine.positions.by_scope(), early)
            case StartCommit(wave_id, attempts, composed):
                self._engine.commit(wave_id, attempts, composed=composed)
            case CancelWave(wave_id):
                self._engine.cancel(wave_id)
            case ReleaseWave(wave_id):
                self._engine.release(wave_id)

    def _notify(self, decision: Issued | Dropped | Replayed) -> None:
        match decision:
            case Issued(attempts):
                for attempt in attempts:
                    self._watch.issued(attempt)
            case Dropped(attempts, phase, reason):
                self._watch.failed(attempts, phase, reason)
            case Replayed(attempt, reason):
                self._replays.failed(attempt, reason)

    def _ask_watch(self, asked: AskWatch) -> PhaseEnded | None:
        ended = asked.ended
        if isinstance(ended, GroupExecuted):
            is_held, attempt = self._watch.holds_commit(ended), ended.attempts[0]
        else:
            is_held, attempt = self._watch.holds_processing(asked.wave_id, ended), ended.attempt
        return None if is_held else PhaseEnded(attempt, ended, asked.wave_id)

    def _halt(self, error: TransactionError) -> None:
        """Ends the run with an error, unless that may follow from the loss of the topology: then with the loss.

        A committer that reads learns first that the state was dropped, or belongs to a newer run, and can only fail.
        """
        if isinstance(error, (StateRefusedError, ReplayLimitError)):
            try:
                self._publisher.confirm()
            except TransactionError as lost:
                raise lost from error
        raise error

    def _cut(self, cut: Cut) -> BatchCut | NothingToCut:
        try:
            if cut.is_new and not self._source.is_ready():
                return NothingToCut(cut.txid, self._clock())
            metadata = self._source.initialize_transaction(cut.txid, cut.previous)
        except FailedException:
            return NothingToCut(cut.txid, self._clock())  # asked again in the next turn
        byte_count = self._source.estimated_bytes(metadata)
        return BatchCut(cut.txid, metadata, self._clock(), byte_count, self._notes_of(metadata))

    def _publish(self, publish: Publish) -> Published | Refused:
        try:
            self._publisher.commit(publish.attempts, publish.write_set, publish.metadata)
        except RefusedGroup as refusal:
            return Refused(refusal.error)
        self._watch.committed(publish.attempts)
        return Published(self._clock())

    def _input_state(self, last_metadata: object) -> InputState:
        """Asks the spout only what matters: one that has raised or is paused is not asked whether it has ended."""
        source = self._source
        if source.error is not None or not (source.active or source.draining):
            return InputState(error=source.error)
        return InputState(
            is_exhausted=source.is_exhausted(last_metadata),
            is_draining=source.draining,
            is_finite=source.draining and source.is_finite(),
        )

    def _report_progress(self) -> None:
        self.statistics.active = self._machine.active_count()
        self.statistics.fraction = self._source.progress(self._machine.last_metadata())
        try:
            self._on_progress(self.statistics)
        except Exception:  # noqa: BLE001 - a listener does not end a run
            _LOG.exception("the on_progress callback raised")
