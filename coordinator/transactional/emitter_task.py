"""Runs the emitter of one spout task over the attempts of a wave, and reports to the acker (executor).

An emitter that fails an attempt fails all later ones of the wave too: they would start from a position that was never
reached. A task without a share of a batch is not asked for it, and the batch has no edge to it.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from coordinated_bolt.batches.attempt_collector import AttemptCollector, taken_late
from coordinated_bolt.batches.attempt_reports import SendReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.chained_tasks import ChainedTasks, NoteRunning
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.components.context import TopologyContext, install_hooks
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.outbox import Carrier, NewOutbox
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_failure import failure_of
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from coordinated_bolt.wiring import TaskWiring
from coordinator.spouts.batch import Batch
from coordinator.spouts.batch_emitters import BatchEmitter, StoredPositions, numbered
from coordinator.spouts.partition_cut import PartitionCut
from coordinator.spouts.row_spout import Rows
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.planning.plan import Plan
from state.attempt import TransactionAttempt
from state.codec import unpack
from state.fault_points import reached

_LOG = logging.getLogger("txbatch")


class EmittingTasks:
    """Which tasks of the spout have a share of a batch; used where emitters run and where their edges are checked.

    Args:
        wiring: the wiring of any task of the spout.
    """

    def __init__(self, wiring: TaskWiring) -> None:
        self._wiring = wiring
        self._kind: SpoutKind | None = None
        self._found: dict[TransactionAttempt, Collection[int]] = {}

    def of(self, batch: Batch) -> Collection[int]:
        """Returns the indexes of the tasks; raises what the spout raises."""
        found = self._found.get(batch.attempt)
        if found is None:
            found = self._found[batch.attempt] = self._ask(batch)
        return found

    def idle_places(self, batches: Sequence[Batch]) -> dict[int, int]:
        """Returns task index -> bits, one set for each batch in which the task has no share."""
        every_place = (1 << len(batches)) - 1
        idle = dict.fromkeys(range(self._wiring.task_count), every_place)
        for place, batch in enumerate(batches):
            for task_index in self._of_or_all(batch):
                idle[task_index] &= ~(1 << place)
        return idle

    def edges(self, plan: Plan, batch: Batch) -> int:
        """Returns the XOR of the batch edges of all emitting tasks, with which the attempt's tree begins."""
        edges = 0
        for task_index in self._of_or_all(batch):
            edges ^= batch_edge(batch.attempt, plan.emitter_tasks[task_index], batch.packed_metadata)
        return edges

    def may_emit(self, batch: Batch, task_index: int) -> bool:
        """Returns whether a task must emit: it has a share, or the spout raised an error that the task must report."""
        return task_index in self._of_or_all(batch)

    def _of_or_all(self, batch: Batch) -> Collection[int]:
        try:
            return self.of(batch)
        except BaseException as error:  # user code
            if is_interruption(error):
                raise
            return range(self._wiring.task_count)

    def _ask(self, batch: Batch) -> Collection[int]:
        task_count = self._wiring.task_count
        if batch.is_of_letters:
            return range(task_count)
        if self._kind is None:
            self._kind = SpoutKind(pickle.loads(self._wiring.spec))
        return self._kind.emitting_tasks(numbered(batch).txid, unpack(batch.packed_metadata), task_count)


class EmitterTask:
    """One spout task (executor, one per wave).

    Args:
        wiring: the task's wiring.
        carrier: takes what is sent to other tasks.
        stored: scope -> txid -> the partitions' metadata that the driver knows; empty without partitions.
        observer: is notified of what the task emits, before the hooks of the topology and its emitter.
        rows: the rows of the wave's only batch, for a spout over DataFrames.
        new_outbox: makes the outbox of an attempt; by default, one that sends everything.
        emitting: finds the tasks that have a share; used by all tasks of the process.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        carrier: Carrier,
        stored: StoredPositions,
        *,
        observer: TaskObserver | None = None,
        rows: Rows | None = None,
        new_outbox: NewOutbox | None = None,
        emitting: EmittingTasks | None = None,
    ) -> None:
        self._wiring = wiring
        self._emitting = emitting or EmittingTasks(wiring)
        self._rows = rows
        self._new_outbox = new_outbox or wiring.outboxes(carrier)
        self._stored = stored
        self._context: TopologyContext = wiring.context()
        self._observer = HookObserver(observer, self._context)
        self._emitter: BatchEmitter | None = None
        self._failed: Failure | None = None

    def run(
        self, batches: Sequence[Batch], begin: Callable[[TransactionAttempt], None] = lambda attempt: None
    ) -> Iterator[tuple[TransactionAttempt, AttemptResult | None]]:
        """Emits every batch in order and closes the emitter; calls `begin` before each attempt."""
        for batch in batches:
            begin(batch.attempt)
            yield batch.attempt, self.emit(batch)
        self.close()

    def close(self) -> None:
        """Closes the emitter, after the last batch; may be called again."""
        emitter, self._emitter = self._emitter, None
        closing = [] if emitter is None else [emitter.close]
        closing += [hook.cleanup for hook in self._context.hooks]
        self._context.hooks.clear()
        for close in closing:
            try:
                close()
            except BaseException as error:  # every batch is emitted, so closing must not fail one
                if is_interruption(error):
                    raise
                _LOG.exception("emitter of %r could not be closed", self._wiring.component_id)

    def emit(self, batch: Batch) -> AttemptResult | None:
        """Emits the task's share of one batch and returns the result, None without a share; called in txid order."""
        attempt, component_id, metrics = batch.attempt, self._wiring.component_id, TaskMetrics()
        if self._failed is not None:
            return AttemptResult(attempt, self._failed, metrics={component_id: metrics})
        if not self._emitting.may_emit(batch, self._wiring.task_index):
            self._new_outbox(attempt).close()
            return None
        if self._context.counters:
            self._context.counters.clear()  # cleared, not replaced: a spout may have derived contexts from this one
        outbox = self._new_outbox(attempt)
        collector = AttemptCollector(self._wiring, attempt, outbox, self._observer)
        result = AttemptResult(attempt, metrics={component_id: metrics})
        try:
            self._emitting.of(batch)  # raises the spout's error again
            cuts = self._call(batch, unpack(batch.packed_metadata), collector)
            collector.close(is_good=True)
            if letters := collector.letters():
                result.letters[self._wiring.task_id] = letters
            result.counters = self._context.counted()
            result.add_sent(outbox.close(), self._wiring.commit_targets)  # packs values, so the codec may refuse one
        except BaseException as error:
            if is_interruption(error):
                raise
            where = (component_id, self._wiring.task_index)
            collector.close()
            self._failed = Failure(FailureKind.INCOMPLETE, *where, f"attempt {attempt} failed earlier in this task")
            collector.count_into(metrics)
            return AttemptResult(attempt, failure_of(error, *where), metrics={component_id: metrics})
        if (late := taken_late(self._wiring)) is not None:
            return AttemptResult(attempt, late, metrics={component_id: metrics})
        reached("batch.emitted")
        collector.count_into(metrics)
        metrics.batches = 1
        result.edges ^= batch_edge(attempt, self._wiring.task_id, batch.packed_metadata)
        result.tuple_count = collector.emitted_count
        result.metadata = {scope: cut.metadata for scope, cut in cuts.items()}
        result.began_from = {scope: cut.began_from for scope, cut in cuts.items()}
        return result

    def _call(self, batch: Batch, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        if batch.is_of_letters:
            self._emit_letters(metadata, collector)
            return {}
        if self._emitter is None:
            self._emitter = self._open()
        return self._emitter.emit(batch, metadata, collector)

    def _emit_letters(self, letters: Sequence[Any], collector: AttemptCollector) -> None:
        """Emits this task's share; the spout is not asked."""
        context = self._context
        for stream_id, values, receiver in letters[context.task_index :: context.task_count]:
            if receiver is None:
                collector.emit(values, stream_id)
            else:
                (subscriber,) = context.subscribers[stream_id]
                tasks = context.component_tasks(subscriber)
                collector.emit_direct(tasks[receiver % len(tasks)], values, stream_id)

    def _open(self) -> BatchEmitter:
        spec = pickle.loads(self._wiring.spec)
        install_hooks(self._context, self._wiring.hook_specs)
        if self._rows is not None:
            spec.feed(self._rows)
        return SpoutKind(spec).emitter(self._context, self._stored)


def chained_to(plan: Plan, head_task: int, carrier: Carrier, *, clock: Callable[[], int]) -> ChainedTasks:
    """Returns the tasks chained to a head task, ready to run in its process; often there are none."""
    wirings = [plan.wirings[task_id] for task_id in plan.chained_to(head_task)]
    return ChainedTasks(wirings, carrier, clock=clock)


def report_chain(
    plan: Plan,
    head_task: int,
    attempt: TransactionAttempt,
    result: AttemptResult | None,
    chained: ChainedTasks,
    *,
    begin: NoteRunning,
    send: SendReport,
) -> None:
    """Sends a task's result on an attempt, then runs the tasks chained to it and sends theirs."""
    acker_task = plan.acker_of(attempt.txid)
    send(acker_task, head_task, attempt, result)
    for wiring, chained_result in chained.run(attempt, begin):
        send(acker_task, wiring.task_id, attempt, chained_result)
