"""One task's share of one attempt, from the frames it reads to the result it reports.

This is the receiving half of coordination by counting. Frames are executed and digested: edges are computed from the
bytes actually read, never from claims in a frame or block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_bolt_executor import Stretch
from coordinated_bolt.batches.coordinated_bolt import (
    CoordinatedBolt,
    CoordTuples,
    IdTuple,
    RegularTuples,
    TaskEvent,
)
from coordinated_bolt.batches.hand_over import HandOver
from coordinated_bolt.columns import from_wire
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.streams.tuples import TupleOrigin
from coordinated_bolt.transport.blocks import Arrived, Inbox, PlacedFrame
from coordinated_bolt.transport.edges import EdgeDigest, handed_edge
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.codec import CodecError, unpack

EXECUTED_BYTES = 1024 * 1024
"""Frames of an attempt are unpacked and executed together up to about this size, so that small ones are cheap and no
task holds a large attempt twice.
"""


NO_EDGES: Mapping[int, EdgeDigest] = MappingProxyType({})


class _Taken(NamedTuple):
    """The content of an attempt's frames.

    Attributes:
        stretches: the tuples not executed yet.
        failures: one for each unreadable frame.
        is_all: whether `stretches` has all tuples of the attempt.
    """

    stretches: list[Stretch]
    failures: list[Failure]
    is_all: bool


class BatchTask:
    """Runs one task over attempts: frame by frame as they arrive, or attempt by attempt with `run`.

    Args:
        wiring: the task.
        bolt: its coordinated bolt.
    """

    def __init__(self, wiring: TaskWiring, bolt: CoordinatedBolt) -> None:
        self._wiring = wiring
        self._bolt = bolt
        self._edges: dict[TransactionAttempt, dict[int, EdgeDigest]] = {}
        self._origins: dict[tuple[int, int], TupleOrigin] = {}

    def run(self, attempt: TransactionAttempt, arrived: Arrived, *, with_id: bool = False) -> AttemptResult | None:
        """Executes an attempt that has arrived completely; `with_id` begins its commit phase.

        Returns None if it was finished without a bolt, because no tuple arrived.
        """
        if self.skip(attempt, arrived):
            return None
        taken = self._take_frames(attempt, arrived.frames)
        if taken.is_all and not arrived.repeats:
            result = self._bolt.run(attempt, taken.stretches, arrived.reporters, arrived.counts, with_id=with_id)
            return self._with_edges(result)
        events: list[TaskEvent] = [*taken.failures, RegularTuples(taken.stretches)]
        events.append(CoordTuples(arrived.reporters, arrived.counts))
        events += [CoordTuples.of(sender, tuple_count) for sender, tuple_count in arrived.repeats]
        if with_id:
            events.append(IdTuple())
        self._bolt.on(attempt, events)
        return self.end(attempt)

    def skip(self, attempt: TransactionAttempt, arrived: Arrived) -> bool:
        """Finishes a completely arrived attempt without tuples, if its bolt need not run; returns whether it did."""
        brings_tuples = arrived.frames or arrived.counts or arrived.repeats
        return not brings_tuples and self._bolt.skip(attempt, arrived.reporters)

    def empty_places(self, inbox: Inbox) -> int:
        """Returns bits, one set for each attempt that `skip` would finish."""
        return inbox.empty_places(frozenset(self._wiring.upstream)) if self._wiring.skips_empty_batches else 0

    def skip_handed(self, attempt: TransactionAttempt, handed: Sequence[HandOver]) -> bool:
        """Does the same as `skip` for an attempt whose whole input is `handed`."""
        if not self._wiring.skips_empty_batches or any(each.reported_count != 0 for each in handed):
            return False
        return self._bolt.skip(attempt, frozenset(each.sender for each in handed))

    def receive(self, frame: Frame) -> None:
        """Executes the tuples of a frame, or handles the report it carries."""
        self._bolt.on(frame.attempt, (self._event(frame),))

    def run_handed(self, attempt: TransactionAttempt, handed: Iterable[HandOver]) -> AttemptResult:
        """Executes the tuples that tasks in the same process hand over for an attempt; they are its whole input.

        A failed task has not reported; its tuples are ignored, and the attempt fails here too.
        """
        stretches: list[Stretch] = []
        reported: dict[int, int] = {}
        edges = 0
        for each in handed:
            if each.reported_count is not None:
                own = [(self._origin(attempt, each.sender, stream), rows) for stream, rows in each.stretches]
                tuple_count = sum(len(rows) for _, rows in own)
                edges ^= handed_edge(attempt, each.sender, self._wiring.task_id, tuple_count)
                stretches += own
                reported[each.sender] = each.reported_count
        tuple_counts = {sender: count for sender, count in reported.items() if count}
        result = self._bolt.run(attempt, stretches, frozenset(reported), tuple_counts)
        result.edges ^= edges
        return result

    def id(self, attempt: TransactionAttempt) -> None:
        """Records that the attempt's commit phase has begun."""
        self._bolt.on(attempt, (IdTuple(),))

    def is_finished(self, attempt: TransactionAttempt) -> bool:
        """Returns whether everything has arrived and the batch was finished without a failure."""
        return self._bolt.is_finished(attempt)

    def end(self, attempt: TransactionAttempt) -> AttemptResult:
        """Ends an attempt for which nothing more can arrive: returns its result and forgets it."""
        return self._with_edges(self._bolt.end(attempt))

    def _with_edges(self, result: AttemptResult) -> AttemptResult:
        attempt = result.attempt
        for edge in self._edges.pop(attempt, NO_EDGES).values():
            result.edges ^= edge.edge_id()
        return result

    def _take_frames(self, attempt: TransactionAttempt, frames: Sequence[PlacedFrame]) -> _Taken:
        """Reads frames, and executes their tuples whenever enough are read; returns the rest."""
        failures: list[Failure] = []
        stretches: list[Stretch] = []
        held, is_all = 0, True
        for sender, sequence, payload in frames:
            read = self._read(attempt, sender, sequence, payload)
            if isinstance(read, Failure):
                failures.append(read)
                is_all = False
                continue
            stretches += read
            held += len(payload)
            if held > EXECUTED_BYTES:
                self._bolt.on(attempt, (*failures, RegularTuples(stretches)))
                failures, stretches, held, is_all = [], [], 0, False
        return _Taken(stretches, failures, is_all)

    def _read(self, attempt: TransactionAttempt, sender: int, sequence: int, payload: bytes) -> list[Stretch] | Failure:
        """Returns the tuples of a frame, after adding them to the sender's edge; a failure if it is unreadable."""
        stretches: list[Stretch] = []
        tuple_count = 0
        try:
            for stream, wire in unpack(payload):
                rows = from_wire(wire)
                stretches.append((self._origin(attempt, sender, stream), rows))
                tuple_count += len(rows)
        except (CodecError, KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            return self._unreadable(sender, sequence, error)
        edges = self._edges.get(attempt)
        if edges is None:
            edges = self._edges[attempt] = {}
        edge = edges.get(sender)
        if edge is None:
            edge = edges[sender] = EdgeDigest(attempt, sender, self._wiring.task_id)
        edge.add(sequence, payload, tuple_count)
        return stretches

    def _origin(self, attempt: TransactionAttempt, sender: int, stream: int) -> TupleOrigin:
        origin = self._origins.get((sender, stream))
        if origin is None:
            origin = self._origins[sender, stream] = self._wiring.origin(attempt, sender, stream)
        return origin.of(attempt)

    def _event(self, frame: Frame) -> TaskEvent:
        if frame.kind is FrameKind.REGULAR:
            read = self._read(frame.attempt, frame.sender, frame.sequence, frame.payload)
            return read if isinstance(read, Failure) else RegularTuples(read)
        try:
            return CoordTuples.of(frame.sender, _tuple_count(frame.kind, unpack(frame.payload)))
        except (CodecError, TypeError) as error:
            return self._unreadable(frame.sender, frame.sequence, error)

    def _unreadable(self, sender: int, sequence: int, error: Exception) -> Failure:
        text = f"frame {sequence} from task {sender} cannot be read: {error!r}"
        return Failure(FailureKind.INCOMPLETE, self._wiring.component_id, self._wiring.task_index, text)


def _tuple_count(kind: FrameKind, content: object) -> int:
    if kind is not FrameKind.COORD or type(content) is not int:
        raise TypeError(f"{kind.name} report holds {content!r}, expected a COORD with a number of tuples")
    return content
