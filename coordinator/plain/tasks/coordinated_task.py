"""Runs the bolt of one task of a sub-topology: coordinated batches within a plain topology.

Each tuple that reaches the master from outside begins a batch. All tuples that the master and the bolts downstream
emit for it belong to that batch. Every task knows by counting when its part of the batch is complete, finishes it and
reports to the tasks downstream. The ack tree holds the tuple that began the batch, and these reports. So the tuple is
acked exactly when every task of the sub-topology has finished the batch, and fails when a task fails.

Source: backtype.storm.coordination.CoordinatedBolt, outside transactions, and its TimeoutItems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import xor
from random import Random

from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt, CoordTuples, RegularTuples
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.rotating_map import RotatingMap
from coordinated_bolt.streams.tuples import TupleOrigin
from coordinated_bolt.transport.outbox import RowOutbox
from coordinated_bolt.watching.task_observer import Meter, TaskObserver
from coordinated_bolt.wiring import Coordination, TaskWiring
from coordinator.plain.tasks.bolt_task import BoltTask
from coordinator.plain.tasks.message_packer import EDGE_BITS, MessagePacker
from coordinator.plain.tasks.messages import Message, MessageKind, TupleStretch
from coordinator.plain.tasks.outboxes import SubtopologyOutbox
from state.attempt import TransactionAttempt
from state.errors import ProtocolError

BUCKET_COUNT = 3
"""One more than the spout's map has, so that a task keeps a batch longer than the spout waits for it."""

REMEMBERED_BATCHES = 10_000
"""How many ended batches a task remembers, so that a late message does not begin a batch again."""


@dataclass(slots=True)
class _Batch:
    """One batch under way.

    Attributes:
        roots: the trees that it belongs to; empty if it is not tracked.
        held: task -> root -> edge of the message that the task sent, either the tuple that began the batch or a COORD;
            acked at the end.
        origins: (task, stream index) -> origin of the tuples.
    """

    roots: tuple[int, ...]
    held: dict[int, Mapping[int, int]] = field(default_factory=dict)
    origins: dict[tuple[int, int], TupleOrigin] = field(default_factory=dict)


class CoordinatedTask:
    """One task of a sub-topology: call `start` once, then `receive` for each message, one at a time, and `close`.

    `receive` returns a `Failure` if the bolt raised an exception that ends the run.

    Args:
        wiring: the task; it has a `Coordination`, and its spec is a batch bolt or a basic bolt.
        outbox: takes what the task sends; its methods return before anything is delivered.
        random: not shared with other tasks; draws edges, and the ids of the batches the task begins.
        meter: meter of the component.
    """

    def __init__(self, wiring: TaskWiring, outbox: MessagePacker, random: Random, meter: Meter | None = None) -> None:
        meter = meter or Meter()
        if wiring.coordination is None:
            raise ProtocolError(f"task {wiring.task_id} is not part of a sub-topology")
        self._wiring = wiring
        self._coordination: Coordination = wiring.coordination
        self._outbox = outbox
        self._random = random
        self._observer, self._metrics = meter.observer or TaskObserver(), meter.metrics
        self._begun_count = 0
        # every message renews its batch, so a batch lasts as long as messages arrive
        self._batches = RotatingMap[TransactionAttempt, _Batch](BUCKET_COUNT)
        self._has_failed: dict[TransactionAttempt, bool] = {}  # the batches that have ended
        self._bolt = CoordinatedBolt(wiring, self._new_outbox, observer=meter.observer, clock=meter.clock)

    def start(self) -> Failure | None:
        """Does nothing: every batch gets a new bolt."""
        return None

    def receive(self, message: Message) -> Failure | None:
        """Lets the bolt execute a tuple, and finish its batch if it is complete now.

        Returns:
            The failure if the bolt raised, except for a `FailedException`: that fails the batch.

        Raises:
            ProtocolError: the task must not receive messages of this kind.
        """
        is_master = not self._coordination.source_args
        match message.kind:
            case MessageKind.TUPLE if is_master:
                return self._begin(message)
            case MessageKind.REGULAR | MessageKind.COORD if not is_master:
                if message.batch in self._has_failed:
                    self._receive_late(message)
                    return None
                return self._regular(message) if message.kind is MessageKind.REGULAR else self._coord(message)
            case _:
                raise ProtocolError(f"task {self._wiring.task_id} of a sub-topology received an unexpected {message}")

    def receive_all(self, stretch: TupleStretch) -> Failure | None:
        """Receives many tuples, up to the first failure."""
        for message in stretch.messages():
            failure = self.receive(message)
            if failure is not None:
                return failure
        return None

    def tick(self) -> None:
        """Gives up the batches that had no message since the third last tick; called once per message timeout.

        Their spouts have already given them up. If timeouts are disabled, this is never called, and an incomplete batch
        is kept until the run ends.
        """
        for batch, kept in self._batches.rotate().items():
            self._drop(batch)
            self._fail(kept.roots)  # a spout may have restarted its timeout

    def close(self) -> Failure | None:
        """Lets the bolts of batches under way clean up; their exceptions reach only the observer."""
        for _ in range(BUCKET_COUNT):
            for batch in self._batches.rotate():
                self._drop(batch)
        return None

    def __len__(self) -> int:
        """Returns the number of batches under way."""
        return len(self._batches)

    def _begin(self, message: Message) -> Failure | None:
        stream_index, values, roots = message.payload
        self._begun_count += 1
        batch = TransactionAttempt(self._begun_count, self._random.getrandbits(EDGE_BITS))
        self._keep(batch, roots).held[message.sender] = roots
        stretch = (self._wiring.origin(batch, message.sender, stream_index), [values])
        self._bolt.on(batch, (RegularTuples((stretch,), is_counted=False),))
        return self._conclude(batch)

    def _regular(self, message: Message) -> Failure | None:
        batch = message.batch
        _, roots, stream_index, values = message.payload
        origins = self._keep(batch, roots).origins
        origin = origins.get((message.sender, stream_index))
        if origin is None:
            origin = self._wiring.origin(batch, message.sender, stream_index)
            origins[message.sender, stream_index] = origin
        self._bolt.on(batch, (RegularTuples(((origin, [values]),)),))
        return self._conclude(batch)

    def _coord(self, message: Message) -> Failure | None:
        batch = message.batch
        _, roots, tuple_count = message.payload
        self._keep(batch, roots).held.setdefault(message.sender, roots)
        self._bolt.on(batch, (CoordTuples.of(message.sender, tuple_count),))
        return self._conclude(batch)

    def _receive_late(self, message: Message) -> None:
        """Fails the trees of a late message, if it is a report to a failed batch, or a surplus tuple of a good one."""
        batch = message.batch
        has_failed, is_report = self._has_failed[batch], message.kind is MessageKind.COORD
        if has_failed == is_report:
            self._has_failed[batch] = True
            self._fail(message.payload[1])

    def _conclude(self, batch: TransactionAttempt) -> Failure | None:
        """Acks or fails the trees of a batch, once it has ended here; returns a failure that ends the run."""
        if not self._bolt.is_finished(batch) and not self._bolt.is_lost(batch):
            return None
        kept = self._batches.pop(batch)
        assert kept is not None
        failure, sent = self._drop(batch)
        if failure is None:
            self._ack(kept, sent)
        elif failure.halts():
            return replace(failure, batch=str(batch))
        else:
            self._fail(kept.roots)
        return None

    def _drop(self, batch: TransactionAttempt) -> tuple[Failure | None, int]:
        """Drops a batch; returns its failure, if any, and the xor of the edges that it has sent."""
        noted = self._bolt.noted(batch)  # an exception is user code's bug, even before its batch is complete
        result = self._bolt.end(batch)
        failure = noted or result.failure
        self._has_failed[batch] = failure is not None
        if len(self._has_failed) > REMEMBERED_BATCHES:
            del self._has_failed[next(iter(self._has_failed))]
        metrics = result.metrics[self._wiring.component_id]
        self._metrics.add(metrics, is_committed=failure is None)
        self._observer.batch_ended(batch, failure, metrics)
        return failure, result.edges

    def _ack(self, kept: _Batch, sent: int) -> None:
        for root in kept.roots:
            self._outbox.ack(root, reduce(xor, (roots[root] for roots in kept.held.values()), sent))

    def _fail(self, roots: Iterable[int]) -> None:
        for root in roots:
            self._outbox.fail(root)

    def _keep(self, batch: TransactionAttempt, roots: Iterable[int]) -> _Batch:
        kept = self._batches.get(batch) or _Batch(tuple(roots))
        self._batches.put(batch, kept)
        return kept

    def _new_outbox(self, batch: TransactionAttempt) -> RowOutbox:
        kept = self._batches.get(batch)
        assert kept is not None
        return SubtopologyOutbox(
            batch,
            kept.roots,
            sender=self._wiring.task_id,
            inside=self._coordination.targets,
            outbox=self._outbox,
            random=self._random,
        )


def make_task(
    wiring: TaskWiring, outbox: MessagePacker, random: Random, meter: Meter | None = None
) -> BoltTask | CoordinatedTask:
    """Returns a bolt task of a plain topology, in a sub-topology or not; engines call it for every task."""
    if wiring.coordination is None:
        return BoltTask(wiring, outbox, random, meter)
    return CoordinatedTask(wiring, outbox, random, meter)
