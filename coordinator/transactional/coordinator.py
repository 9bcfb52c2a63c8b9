"""Drives one run: the machine decides, the spout cuts, the engine works, the store publishes.

It uses one thread: every decision is carried out, and answered, before the next event of the engine is handled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from coordinator.run_observer import Standing
from coordinator.transactional.engine import PhaseWaits
from coordinator.transactional.engine_side import EngineSide
from coordinator.transactional.machine.run_events import (
    AskBarrier,
    AskForEnd,
    AskWatch,
    CancelWave,
    Cut,
    Decision,
    Done,
    Dropped,
    Halt,
    Issued,
    Publish,
    RanEarly,
    ReleaseWave,
    RunEvent,
    StartCommit,
    StartWave,
    StoreMetadata,
    Tell,
    TimePassed,
    Turn,
)
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.observer_side import ObserverSide
from coordinator.transactional.run_summary import RunStatistics
from coordinator.transactional.spout_side import SpoutSide
from coordinator.transactional.store_side import StoreSide
from coordinator.transactional.watch_side import WatchSide

BUSY_WAIT_S = 0.5
"""How long the run waits for the engine while new input could not be sent anywhere."""
IDLE_WAIT_S = 0.05
"""How long it waits while it could: then the spout is asked again."""


class Coordinator:
    """One run of one topology, from the first uncommitted txid until the input ends or the run is drained.

    Args:
        machine: makes the decisions.
        spout: cuts transactions, and is told what is durable.
        engine: runs waves.
        store: stores and commits, as the owner of the topology.
        watch: notified of every attempt, and may hold its phases.
        observers: told what happens.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        *,
        machine: RunMachine,
        spout: SpoutSide,
        engine: EngineSide,
        store: StoreSide,
        watch: WatchSide,
        observers: ObserverSide,
        clock: Callable[[], float],
    ) -> None:
        self._machine = machine
        self._spout, self._engine, self._store, self._watch = spout, engine, store, watch
        self._observers = observers
        self._clock = clock
        self._is_done = False

    @property
    def statistics(self) -> RunStatistics:
        """The figures of the run so far."""
        return self._machine.statistics

    def drain(self) -> None:
        """Cuts no new transactions; the run ends when those in flight are committed. Any thread."""
        self._spout.drain()

    def standing(self) -> Standing:
        """Returns how the run stands; called on the run's thread."""
        return Standing(self._machine.window(), self._machine.is_blocked(), self._spout.is_draining)

    def deactivate(self) -> None:
        """Cuts no new transactions until `activate`; those in flight commit, and the run waits. Any thread."""
        self._spout.deactivate()

    def activate(self) -> None:
        """Cuts transactions again after `deactivate`. Any thread."""
        self._spout.activate()

    def run(self) -> RunStatistics:
        """Runs to the end of the input, or until it is drained.

        Raises:
            UserCodeError, SourceError, StateRefusedError: this transaction ends the run; all lower ones are committed.
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
        self._store.confirm()

    def turn(self, *, is_awaited: bool = False) -> bool:
        """Does one turn of `run`: carries out what is due, handles at most one event, returns whether the run is done.

        Args:
            is_awaited: the caller has nothing more to give until what is committed is released, so a barrier that is
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
        for due in (self._spout.resume(), self._spout.first_positions(), self._store.barrier_answer()):
            if due is not None:
                self._handle(due)
        if not machine.is_halted():
            self._store.look()
            self._spout.tell_activity()
        self._spout.note_committed(machine.currtx - 1)
        self._handle(Turn(clock(), self._watch.commit_limit(machine.currtx, machine.commit_group_max), is_awaited))
        if self._is_done:
            self._store.finish()
            return True
        event = self._next_event()
        if event is not None:
            self._observers.happened(event)
            self._handle(event)
            self.statistics.active = machine.active_count()
            self.statistics.cut_txid = machine.last_txid()
            self.statistics.fraction = self._spout.progress(machine.last_metadata())
        self._handle(TimePassed(clock()))
        self._observers.turned(is_idle=machine.is_idle(), has_progressed=not isinstance(event, PhaseWaits | None))
        return False

    def _next_event(self) -> RunEvent | None:
        """Waits for whatever can happen next; a run that can only wait for a barrier waits for its answer."""
        is_idle = self._machine.is_idle()
        if not self._store.awaits_barrier or not (is_idle or self._machine.is_blocked()):
            return self._engine.next_event(IDLE_WAIT_S if is_idle or self._machine.has_room() else BUSY_WAIT_S)
        confirmed = self._store.barrier_answer(IDLE_WAIT_S)
        return confirmed if confirmed is not None or is_idle else self._engine.next_event(0.0)

    def _handle(self, event: RunEvent) -> None:
        """Carries out everything that follows from an event."""
        decisions = deque(self._machine.handle(event))
        while decisions:  # bounded: each answer leads to fewer decisions
            answer = self._observers.carry_out(decisions.popleft(), self._carry_out)
            if answer is not None:
                decisions.extend(self._machine.handle(answer))

    def _carry_out(self, decision: Decision) -> RunEvent | None:
        """Carries out a decision, unless it is for observers alone; returns the answer, None if there is none."""
        match decision:
            case Cut():
                return self._spout.cut(decision)
            case Publish():
                return self._store.publish(decision)
            case Tell(attempts):
                return self._spout.tell(attempts)
            case AskForEnd(last_metadata):
                return self._spout.input_state(last_metadata)
            case AskWatch():
                return self._watch.ask(decision)
            case StoreMetadata() | AskBarrier():
                self._store.write(decision)
            case RanEarly(executed):
                self._engine.hand_in(executed)
            case Done():
                self._is_done = True
            case Halt(error):
                self._store.halt(error)
            case Issued() | Dropped():
                self._watch.notify(decision)
            case StartWave() | StartCommit() | CancelWave() | ReleaseWave():
                self._engine.command(decision)
        return None
