"""Drives one run: the machine decides, the spout cuts, the engine works, the store publishes.

It uses one thread: every decision is carried out, and answered, before the next event of the engine is handled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from coordinator.transactional.engine import ClusterNoted, Engine, Event, PhaseWaits, WaveCrashed, WaveProcessed
from coordinator.transactional.machine.run_events import (
    AskBarrier,
    AskForEnd,
    CancelWave,
    Cut,
    Decision,
    Done,
    Halt,
    NotifySpout,
    Publish,
    Published,
    Quarantine,
    Refused,
    ReleaseWave,
    RunEvent,
    StartCommit,
    StartWave,
    StoreMetadata,
    TimePassed,
    Turn,
)
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.publisher import Publisher
from coordinator.transactional.republished_input import RepublishedInput
from coordinator.transactional.run_spout import RunSpout
from coordinator.transactional.spout_notifier import SpoutNotifier
from coordinator.watching.run_observer import (
    AttemptRetried,
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    Observation,
    Observers,
    RunCondition,
    TurnEnded,
    WaveEnded,
    WaveStarted,
)
from coordinator.watching.statistics.run_counter import RunCounter
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.attempt import Attempts
from state.commits.dead_letters import letter_count
from state.fault_points import reached

BUSY_WAIT_S = 0.5
"""How long the run waits for the engine while no wave could start with new input."""
IDLE_WAIT_S = 0.05
"""How long the run waits for the engine before it asks an idle spout again."""
CUT_WAIT_S = 0.02
"""How long the run waits for the engine while it can cut ahead, so that the next wave finds its input already cut."""

CommitLimit = Callable[[int, int], int]
"""(`currtx`, limit) -> the most transactions of a group that begins at `currtx`, up to the limit; 0 begins no group."""


class Coordinator:
    """One run of one topology, from the first uncommitted txid until the input ends or the run is drained.

    Args:
        machine: makes the decisions.
        statistics: the run's figures; kept up to date here.
        spout: can be paused and drained, and cuts transactions unless `republished` does.
        notifier: notifies the spout's committer of what is durable.
        engine: runs waves.
        publisher: stores and commits, as the owner of the topology.
        observers: notified of what happens.
        clock: seconds, monotonic.
        republished: replaces the spout's input in a run that republishes.
        commit_limit: makes groups smaller, or holds them back; asked every turn.

    Attributes:
        statistics: the figures of the run so far.
    """

    def __init__(
        self,
        *,
        machine: RunMachine,
        statistics: RunStatistics,
        spout: RunSpout,
        notifier: SpoutNotifier,
        engine: Engine,
        publisher: Publisher,
        observers: Observers,
        clock: Callable[[], float],
        republished: RepublishedInput | None = None,
        commit_limit: CommitLimit | None = None,
    ) -> None:
        self._machine = machine
        self.statistics = statistics
        self._counter = RunCounter(statistics, clock)
        self._spout, self._notifier = spout, notifier
        self._input = spout if republished is None else republished
        self._engine, self._publisher = engine, publisher
        self._observers = observers
        self._clock = clock
        self._commit_limit = commit_limit
        self._waves: dict[int, tuple[Attempts, float]] = {}
        self._is_done = False

    def drain(self) -> None:
        """Cuts no new transactions; the run ends when those in flight are committed. Any thread."""
        self._spout.draining = True

    def condition(self) -> RunCondition:
        """Returns how the run stands; called on the run's thread."""
        return RunCondition(self._machine.window(), self._machine.is_blocked(), self._spout.draining)

    def deactivate(self) -> None:
        """Cuts no new transactions until `activate`; those in flight commit, and the run waits. Any thread."""
        self._spout.active = False

    def activate(self) -> None:
        """Cuts transactions again after `deactivate`. Any thread."""
        self._spout.active = True

    def run(self) -> RunStatistics:
        """Runs to the end of the input, or until it is drained.

        Raises:
            UserCodeError, SourceError, StateRefusedError: a transaction ends the run; all lower ones are committed.
            ReplayLimitError, TransactionTooLargeError: likewise.
            FencedError: a newer run owns the topology, or it was dropped.
            StateUnreachableError: the store did not answer.
            NotDurableError: the store did not confirm in time that commits are as durable as the run has asked.
            EngineError: Spark is gone or cannot work.
        """
        while not self.turn():
            pass  # bounded by the input; a continuous one ends with a drain
        return self.statistics

    def confirm(self) -> None:
        """Checks that the store still holds everything this run has committed.

        Raises:
            FencedError, StateRefusedError, StateUnreachableError: it does not, or cannot be asked.
        """
        self._publisher.confirm()
        self._note_absences()

    def turn(self, *, is_awaited: bool = False) -> bool:
        """Does one turn of `run`: carries out what is due, handles at most one event, returns whether the run is done.

        Args:
            is_awaited: the caller has no more input until the committed transactions are released, so a barrier that is
                not confirmed in time ends the run.

        Raises:
            TransactionError: see `run`.
        """
        try:
            return self._turn(is_awaited=is_awaited)
        except BaseException as error:
            self._observers.failed(error)
            raise

    def _turn(self, *, is_awaited: bool) -> bool:
        machine, clock = self._machine, self._clock
        for due in (self._notifier.resume(), self._spout.first_positions(), self._publisher.barrier_answer()):
            if due is not None:
                self._handle(due)
        if not machine.is_halted():
            self._publisher.look()
            self._note_absences()
            self._spout.notify_activity()
        limit = None if self._commit_limit is None else self._commit_limit(machine.currtx, machine.commit_group_max)
        has_judged = self._handle(Turn(clock(), limit, is_awaited))
        if self._is_done:
            self._publisher.finish(machine.released_txid, machine.unstored_notes())
            self._note_absences()
            return True
        event = None if has_judged else self._next_event()
        if isinstance(event, ClusterNoted):
            self.statistics.cluster, self.statistics.lacks_executors = event.story, event.lacks_executors
        elif event is not None:
            self._handle(event)
        has_progressed = has_judged or not isinstance(event, PhaseWaits | None)
        if has_progressed:
            self.statistics.active = machine.active_count()
            self.statistics.cut_txid = machine.last_txid()
            self.statistics.fraction = self._input.progress()
        self._handle(TimePassed(clock()))
        if self._observers:
            self._observers.notify(TurnEnded(machine.is_idle(), has_progressed))
        return False

    # Events

    def _next_event(self) -> RunEvent | ClusterNoted | None:
        """Waits for the next event; if only a barrier is outstanding, for its answer."""
        is_idle = self._machine.is_idle()
        if not self._publisher.awaits_barrier or not (is_idle or self._machine.is_blocked()):
            return self._engine_event(self._wait_s(is_idle=is_idle))
        confirmed = self._publisher.barrier_answer(IDLE_WAIT_S)
        return confirmed if confirmed is not None or is_idle else self._engine_event(0.0)

    def _wait_s(self, *, is_idle: bool) -> float:
        if is_idle or self._machine.has_room():
            return IDLE_WAIT_S
        return CUT_WAIT_S if self._machine.may_cut() else BUSY_WAIT_S

    def _engine_event(self, timeout_s: float) -> Event | None:
        event = self._engine.next_event(timeout_s)
        if isinstance(event, WaveProcessed | WaveCrashed):
            reached("wave.processed")
            self._wave_ended(event)
        elif not isinstance(event, PhaseWaits | None):
            reached("group.executed")
        return event

    def _wave_ended(self, event: WaveProcessed | WaveCrashed) -> None:
        now_s = self._clock()
        attempts, started_s = self._waves.pop(event.wave_id, ((), now_s))
        match event:
            case WaveProcessed(outcomes=outcomes, seconds=seconds):
                ended = WaveEnded(event.wave_id, attempts, now_s - started_s, outcomes, measured_s=seconds)
            case WaveCrashed(reason=reason):
                ended = WaveEnded(event.wave_id, attempts, now_s - started_s, crash=reason)
        self._notify(ended)

    def _notify(self, observation: Observation) -> None:
        self._counter(observation)
        self._observers.notify(observation)

    # Decisions

    def _handle(self, event: RunEvent) -> bool:
        """Carries out everything that follows from an event; returns whether a group was judged."""
        decisions, has_judged = deque(self._decide(event)), False
        while decisions:  # bounded: each answer leads to fewer decisions
            has_judged |= isinstance(decisions[0], Publish | Quarantine | AttemptsFailed)
            answer = self._carry_out(decisions.popleft())
            if answer is not None:
                decisions.extend(self._decide(answer))
        return has_judged

    def _decide(self, event: RunEvent) -> list[Decision]:
        decisions = self._machine.handle(event)
        self.statistics.released_txid = self._machine.released_txid
        return decisions

    def _carry_out(self, decision: Decision) -> RunEvent | None:  # noqa: C901, PLR0912 - a case for each decision
        """Carries out a decision; returns the answer, None if there is none."""
        match decision:
            case Cut():
                return self._input.cut(decision)
            case StoreMetadata(entries):
                self._publisher.store_metadata(entries)
            case AttemptsIssued() | AttemptsFailed() | AttemptRetried():
                self._notify(decision)
            case StartWave():
                self._start_wave(decision)
            case StartCommit(wave_id, attempts, composed):
                reached("group.submitting")
                self._engine.commit(wave_id, attempts, composed=composed)
                reached("group.submitted")
            case Publish():
                return self._publish(decision)
            case Quarantine():
                return self._quarantine(decision)
            case AskBarrier():
                self._publisher.ask_barrier(decision)
            case NotifySpout(attempts):
                return self._notifier.notify(attempts)
            case CancelWave(wave_id):
                self._engine.cancel(wave_id)
            case ReleaseWave(wave_id):
                reached("wave.releasing")
                self._engine.release(wave_id)
            case AskForEnd():
                return self._input.input_state()
            case Done(is_interrupted):
                self._is_done, self.statistics.is_interrupted = True, is_interrupted
            case Halt(error):
                self._publisher.halt(error)
        return None

    def _start_wave(self, start: StartWave) -> None:
        reached("wave.submitting")
        self._engine.process(start.wave_id, start.batches, start.stored, start.early)
        reached("wave.submitted")
        attempts = tuple(batch.attempt for batch in start.batches)
        self._waves[start.wave_id] = attempts, self._clock()
        self._notify(WaveStarted(start.wave_id, attempts))

    def _publish(self, publish: Publish) -> Published | Refused:
        started_s = self._clock()
        answer = self._publisher.publish(publish)
        if isinstance(answer, Published):
            republished, writes = publish.republished, publish.write_set
            committed = GroupCommitted(
                publish.attempts,
                self._clock() - started_s,
                sum(own.operations() for own in writes.states.values()),
                answer.byte_count,
                publish.reports,
                republished_txid=0 if republished is None or republished.letters else republished.txid,
                republished_letters=0 if republished is None else len(republished.letters),
                letter_count=letter_count(writes),
                expired_count=answer.expired_count,
            )
            self._notify(committed)
        return answer

    def _quarantine(self, quarantine: Quarantine) -> Published | Refused:
        started_s = self._clock()
        answer = self._publisher.quarantine(quarantine)
        if isinstance(answer, Published):
            seconds = self._clock() - started_s
            self._notify(GroupCommitted(quarantine.attempts, seconds, 0, answer.byte_count, is_set_aside=True))
        return answer

    def _note_absences(self) -> None:
        self.statistics.server_away_count, self.statistics.server_away_s = self._publisher.absences
