"""Runs a transactional topology in one process, step by step."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, overload

from committers.task_report import TaskReport
from coordinator.server_choice import open_store
from coordinator.testing.cluster.attempt_book import AttemptBook, AttemptRecord, HeldPhase, phase_of
from coordinator.testing.cluster.batch_tasks import TaskInput
from coordinator.testing.cluster.local_engine import FrameFault, LocalEngine
from coordinator.testing.cluster.mailroom import Mailroom
from coordinator.testing.cluster.recorder import Emission
from coordinator.testing.cluster.timers import Timers
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.assembly import assembled
from coordinator.transactional.engine import Event, PhaseWaits
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice
from coordinator.transactional.surroundings import RunEnvironment
from coordinator.watching.run_observer import Observers
from coordinator.watching.statistics.run_report import tables_of
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.run_logs import RetryLog
from state.attempt import TransactionAttempt
from state.commits.dead_letters import DeadLetter
from state.errors import TopologyError
from state.html_tables import bounded_table, section
from state.kinds.handles import DeclaredState
from state.kinds.hash_state import HashState
from state.kinds.state_family import StateFamily, named_part, part_of_text
from state.kinds.state_handle import Value
from state.kinds.value_states import ValueState
from state.redis_admin.snapshots import Snapshot, snapshot
from state.redis_client.connection import RedisConnection
from state.redis_client.presence import retire_run
from state.redis_owner.reader import RedisReader

ANSWER_TIMEOUT_S = 10.0


class TransactionalRun:
    """A run of a transactional topology; made by `LocalCluster.submit`.

    It does nothing by itself: `tick`, `run_until_idle` and `advance_time` advance it. An error that ends the run is
    raised by the call that advanced it: user code's as `UserCodeError`, after all lower transactions are committed.

    Args:
        topology: the topology to run.
        plan: the topology's plan.
        client: client of the server that holds the state.
        server: the server's name in messages.
        random: draws the schedule and the attempt ids.
        options: limits of the run.
        receive_capacity: most messages in a task's receive queue.
        keeps_order: whether messages between two tasks keep their order.
        frame_fault: loses, doubles, alters or replaces frames in flight.
        republish: the dead letters that the run publishes in place of reading the input.

    Raises:
        TransactionError: the topology cannot run, or cannot be owned.
    """

    def __init__(
        self,
        topology: Topology,
        plan: Plan,
        client: Any,
        *,
        server: str,
        random: Random,
        options: RunOptions,
        receive_capacity: int,
        keeps_order: bool,
        frame_fault: FrameFault | None,
        republish: LetterChoice | None = None,
    ) -> None:
        self._topology, self._client = topology, client
        self._timers = Timers()
        self._is_done = self._is_closed = False
        self._error: Exception | None = None
        self._is_due = True
        self._plan = plan = _tuple_by_tuple(plan)
        topology_id, shard_count = topology.topology_id, topology.shard_count
        store = open_store(server, topology, client=client, unreachable_timeout_s=ANSWER_TIMEOUT_S)
        store.check_server(options.asked_durability(), expires=topology.expires, fields_expire=topology.fields_expire)
        self._letters = store.dead_letters
        connection = RedisConnection(client, server, timeout_s=ANSWER_TIMEOUT_S)
        nonce, new_generation = _identity(random), _identity(random)
        reader = RedisReader(server, topology_id, nonce=nonce, shard_count=shard_count, connection=connection)
        mailroom: Mailroom[TaskInput] = Mailroom(random, receive_capacity, keeps_order=keeps_order)
        self._book = AttemptBook(self._deliver, lambda: self._timers.now_s, topology.message_timeout_s)
        self._engine = LocalEngine(plan, mailroom, reader, frame_fault=frame_fault, holds=self._book.holds)
        self._retire = partial(retire_run, connection, store.keys)
        self._open = ExitStack()
        self._open.callback(self._engine.close)
        self._open.callback(self._retire)
        self._coordinator = self._open.enter_context(
            assembled(
                topology,
                plan,
                store,
                self._engine,
                replace(options, commit_target_s=None),  # independent of the machine's speed
                around=RunEnvironment(
                    nonce=nonce,
                    new_generation=new_generation,
                    clock=lambda: self._timers.now_s,
                    new_attempt_id=partial(random.getrandbits, 64),
                    commit_limit=self._book.commit_limit,
                    observers=Observers([self._book, RetryLog(lambda: self._timers.now_s)]),
                ),
                choice=republish,
            )
        )

    @property
    def statistics(self) -> RunStatistics:
        """The figures of the run so far."""
        return self._coordinator.statistics

    @property
    def is_done(self) -> bool:
        """Whether the input has ended, or the run was drained, and everything is committed."""
        return self._is_done

    def __repr__(self) -> str:
        end = "done" if self._is_done else "failed" if self._error is not None else "under way"
        return f"TransactionalRun({self._topology.topology_id!r}, {end}, {self.statistics!r})"

    def _repr_html_(self) -> str:
        rows = [
            (record.attempt.txid, str(record.attempt), record.end.value, record.phase or "", record.reason)
            for record in self._book.records(None)
        ]
        attempts = bounded_table(("txid", "attempt", "end", "phase", "reason"), rows, caption="attempts")
        figures = tables_of(repr(self._topology.topology_id), self.statistics.figures(), self.statistics.components)
        return section(figures, attempts)

    def tick(self) -> bool:
        """Delivers one message, or lets the coordinator decide; returns False if there was nothing to do.

        Raises:
            TransactionError: see `Coordinator.run`; every later call raises it again.
            RuntimeError: the run is closed.
        """
        if self._error is not None:
            raise self._error
        if self._is_done:
            return False
        if self._is_closed:
            raise RuntimeError("the run is closed, and so are its tasks; submit the topology again")
        has_event = self._engine.has_event()
        is_due = self._is_due or has_event
        commands = self._engine.command_count
        try:
            if not is_due and self._engine.step():
                return True
            self._is_due = has_event  # an event is handled before another message is delivered
            self._is_done = self._coordinator.turn()
            if self._is_done:
                self._retire()
        except Exception as error:
            self._error = error
            self.close()
            raise
        return is_due or self._engine.command_count != commands

    def run_until_idle(self) -> RunStatistics:
        """Runs until there is nothing left to do: the input has ended or has no batch yet, or phases are held.

        A spout whose coordinator raises a `FailedException` has no batch yet; the next call tries it again.

        Raises:
            TransactionError: see `Coordinator.run`.
        """
        while self.tick():
            pass  # bounded by the input, because every attempt ends
        return self.statistics

    def advance_time(self, seconds: float) -> None:
        """Advances the clock; the next tick cancels phases that exceed the message timeout."""
        self._timers.advance(seconds)
        self._book.fail_overdue()
        self._deliver(PhaseWaits(self._book.held_waves()))

    def drain(self) -> None:
        """Stops cutting transactions; the run is done when all transactions in flight are committed."""
        self._coordinator.drain()

    def deactivate(self) -> None:
        """Stops cutting transactions until `activate`; transactions in flight still commit."""
        self._coordinator.deactivate()

    def activate(self) -> None:
        """Cuts transactions again after `deactivate`."""
        self._coordinator.activate()

    def hold(self, phase: str, *txids: int) -> None:
        """Holds a phase of transactions by hand: it runs, and then waits for `ack` or `fail`.

        A transaction whose processing phase is held does not commit, and neither do later ones. If its commit phase is
        held, its committers have run, in a separate group, but nothing of it is published. Every attempt is held until
        `release`, even the next one after a failure. A phase that fails by itself is not held.

            run.hold("processing", 2)
            run.run_until_idle()
            run.fail(2)  # replayed, and held again
            run.release("processing", 2)

        Args:
            phase: "processing" or "commit".
            txids: the transactions to hold; every transaction if none is given.

        Raises:
            ValueError: there is no such phase.
        """
        self._book.hold(phase_of(phase), txids)

    def release(self, phase: str, *txids: int) -> None:
        """Stops holding a phase, and acks the held ones; takes effect when the run is next advanced."""
        self._book.release(phase_of(phase), txids)

    def held(self) -> list[HeldPhase]:
        """Returns the phases that have run and wait for `ack` or `fail`, by txid; at most one for a transaction."""
        return self._book.held()

    def held_reports(self, txid: int) -> tuple[TaskReport, ...]:
        """Returns the reports of commit tasks on a transaction whose commit phase is held; called by `dry_run`."""
        group = self._book.held_group(txid)
        return () if group is None else group.reports

    def ack(self, txid: int) -> None:
        """Ends the held phase of a transaction with its own result; takes effect when the run is next advanced.

        Raises:
            ValueError: no phase of this transaction is held.
        """
        self._book.end(txid, None)

    def fail(self, txid: int, reason: str = "failed by hand") -> None:
        """Fails a held phase of a transaction, as a `FailedException` does, when the run is next advanced.

        The transaction and all later ones are replayed. The failure counts towards `RunOptions.max_attempts`.

        Raises:
            ValueError: no phase of this transaction is held.
        """
        self._book.end(txid, reason)

    def attempts(self, txid: int | None = None) -> list[AttemptRecord]:
        """Returns the records of all attempts, or of attempts at one transaction, in the order of issue."""
        return self._book.records(txid)

    def emitted(
        self, component_id: str, txid: int | None = None, *, attempt: TransactionAttempt | None = None
    ) -> list[Emission]:
        """Returns (stream id, values) of every tuple a component emitted, in the last attempt at each transaction.

        They are ordered by txid, then by task, then as they were emitted.

        Args:
            component_id: id of the component.
            txid: limits the result to this transaction.
            attempt: limits the result to this attempt, even a failed one; see `attempts`.

        Raises:
            TopologyError: the topology has no such component.
        """
        recorders = [self._engine.recorders[task] for task in self._tasks_of(component_id)]
        if attempt is not None:
            return [emission for recorder in recorders for emission in recorder.emissions(attempt)]
        last: dict[int, TransactionAttempt] = {}
        for recorder in recorders:
            last |= recorder.last_attempts()
        chosen = [last[found] for found in sorted(last) if txid in (None, found)]
        return [emission for a in chosen for recorder in recorders for emission in recorder.emissions(a)]

    def snapshot(self) -> Snapshot:
        """Returns all declared state as of the last commit."""
        return snapshot(self._client, self._topology.topology_id, self._handles().values())

    @overload
    def state(self, name: HashState[Value]) -> dict[Any, Value]: ...
    @overload
    def state(self, name: ValueState[Value]) -> Value | None: ...
    @overload
    def state(self, name: str | DeclaredState) -> Any: ...

    def state(self, name: Any) -> Any:
        """Returns one declared state as of the last commit, decoded.

        Args:
            name: the state, as declared, or its name, or one part of it (``"views:2026-11-21"``).

        Raises:
            TopologyError: no committer declares the state, or it has no such part.
        """
        handles, topology_id = self._handles(), self._topology.topology_id
        types = {key: each.part_type if isinstance(each, StateFamily) else None for key, each in handles.items()}
        name, part = named_part(topology_id, name if isinstance(name, str) else name.name, types)
        whole = snapshot(self._client, topology_id, [handles[name]]).states[name]
        part_type = types[name]
        if part is None or part_type is None:
            return whole
        found = part_of_text(part, part_type)
        if found not in whole:
            raise TopologyError(f"state {name!r} has no part {part!r}; state({name!r}) has all its parts")
        return whole[found]

    def dead_letters(self) -> list[DeadLetter]:
        """Returns the dead letters of committed transactions, by transaction, task and call of `dead_letter`."""
        return list(self._letters.all())

    def close(self) -> None:
        """Cancels all transactions in flight and frees everything; state remains."""
        self._is_closed = True
        self._open.close()

    def _deliver(self, event: Event | None) -> None:
        """Requests a turn of the run, which begins with the event, if one is given."""
        self._is_due = True
        if event is not None:
            self._engine.deliver(event)

    def _tasks_of(self, component_id: str) -> tuple[int, ...]:
        wiring = next(iter(self._plan.wirings.values()))
        return wiring.context().component_tasks(component_id)

    def _handles(self) -> Mapping[str, DeclaredState]:
        handles = self._topology.states
        return {handle.name: handle for handle in handles}


def _identity(random: Random) -> str:
    """Returns 128 bits that differ from every other run's, even with the same seed on the same server."""
    drawn = random.getrandbits(128)  # keeps the schedule of a seed unchanged
    return f"{drawn ^ secrets.randbits(128):032x}"


def _tuple_by_tuple(plan: Plan) -> Plan:
    wirings = {task_id: replace(wiring, frame_tuples=1) for task_id, wiring in plan.wirings.items()}
    return replace(plan, wirings=wirings)
