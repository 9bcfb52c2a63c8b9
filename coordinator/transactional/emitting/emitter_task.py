"""Runs the emitter of one spout task over the attempts of a wave.

An emitter that fails an attempt fails all later ones of the wave too: they would start from a position that was never
reached.
"""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.batches.attempt_outbox import attempt_outboxes
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.task_hook import install_hooks
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.outbox import Carrier, NewOutbox
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.watching.hook_observer import HookObserver
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinated_bolt.watching.task_observer import TaskObserver
from coordinated_bolt.wiring import TaskWiring
from coordinator.spouts.kinds.kind_of import kind_of
from coordinator.spouts.kinds.partition_cut import PartitionCut
from coordinator.spouts.kinds.spout_kind import BatchEmitter, EmitOrder, StoredPositions
from coordinator.spouts.row_spout import Rows
from state.attempt import TransactionAttempt
from state.codec import unpack
from state.fault_points import reached

_LOG = logging.getLogger("txbatch")


@dataclass(frozen=True, slots=True)
class Batch:
    """One attempt to emit.

    Attributes:
        attempt: identifies the batch.
        packed_metadata: the coordinator's metadata, of the txid as stored, or for an opaque spout of the attempt.
        number: what the spout knows the batch by, if that is not the txid: it does not count republished
            batches, and these keep the number they were first read with.
        scopes: the partitions to read, see `EmitOrder`.
        is_of_letters: the metadata is dead letters to be emitted: for each the stream, the values and, on a direct
            stream, the index of the receiver.
    """

    attempt: TransactionAttempt
    packed_metadata: bytes
    number: int | None = None
    scopes: frozenset[str] | None = None
    is_of_letters: bool = False

    def order(self) -> EmitOrder:
        """Returns what the spout's emitter is given."""
        number = self.attempt.txid if self.number is None else self.number
        return EmitOrder(self.attempt, TransactionAttempt(number, self.attempt.attempt_id), self.scopes)


class EmitterTask:
    """One spout task (executor, one per wave).

    Args:
        wiring: of the task.
        carrier: takes what is sent to other tasks.
        stored: scope -> txid -> metadata of the partitions, as far as the driver knows it; empty without partitions.
        observer: is notified of what the task emits, before the hooks of the topology and its emitter.
        rows: what a spout over DataFrames emits in its only batch.
        new_outbox: makes the outbox of an attempt; by default, one that sends everything.
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
    ) -> None:
        self._wiring = wiring
        self._rows = rows
        self._new_outbox = new_outbox or attempt_outboxes(wiring, carrier)
        self._stored = stored
        self._context: TopologyContext = wiring.context()
        self._observer = HookObserver(observer, self._context)
        self._emitter: BatchEmitter | None = None
        self._failed: Failure | None = None

    def run(
        self, batches: Sequence[Batch], begin: Callable[[TransactionAttempt], None] = lambda attempt: None
    ) -> Iterator[AttemptResult]:
        """Emits every batch in order and closes the emitter; calls `begin` before each attempt."""
        for batch in batches:
            begin(batch.attempt)
            yield self.emit(batch)
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
            except BaseException as error:  # every batch is emitted, so this must not fail one
                if is_interruption(error):
                    raise
                _LOG.exception("emitter of %r could not be closed", self._wiring.component_id)

    def emit(self, batch: Batch) -> AttemptResult:
        """Emits one batch; called in txid order."""
        attempt, component_id, metrics = batch.attempt, self._wiring.component_id, TaskMetrics()
        if self._failed is not None:
            return AttemptResult(attempt, self._failed, metrics={component_id: metrics})
        if self._context.counters:
            self._context.counters = Counter()
        outbox = self._new_outbox(attempt)
        collector = AttemptCollector(self._wiring, attempt, outbox, self._observer)
        result = AttemptResult(attempt, metrics={component_id: metrics})
        try:
            cuts = self._call(batch, unpack(batch.packed_metadata), collector)
            if letters := collector.letters():
                result.letters[self._wiring.task_id] = letters
            result.counters = self._context.counted()
            result.add_sent(outbox.close(), self._wiring.commit_targets)  # packs values, so the codec may refuse one
        except BaseException as error:
            if is_interruption(error):
                raise
            where = (component_id, self._wiring.task_index)
            self._failed = Failure(FailureKind.INCOMPLETE, *where, f"attempt {attempt} failed earlier in this task")
            collector.count_into(metrics)
            return AttemptResult(attempt, Failure.from_exception(error, *where), metrics={component_id: metrics})
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
        return self._emitter.emit(batch.order(), metadata, collector)

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
        return kind_of(spec).emitter(self._context, self._stored)
