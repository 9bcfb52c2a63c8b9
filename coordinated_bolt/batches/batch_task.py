"""One task's share of one attempt, from the frames it reads to the result it reports.

This is the receiving half of coordination by counting. Frames are checked, sorted, executed and
digested: edges are computed from the bytes that were read, never from what a frame claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.batches.hand_over import HandOver
from coordinated_bolt.columns import from_wire
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import Frame, FrameKind, unpack_frame
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.codec import CodecError, unpack


@dataclass(slots=True)
class TaskResult:
    """What one task reports on one attempt.

    Attributes:
        failure: why it failed; None if the batch was finished.
        read_edges: xor of the edges computed from what was read.
        sent_edges: target task -> edge of what was sent.
        tuple_count: tuples executed.
        counters: what the bolt counted.
        metrics: what the task did, even if it failed.
        letters: what the bolt refused, packed.
    """

    failure: Failure | None
    read_edges: int = 0
    sent_edges: dict[int, int] = field(default_factory=dict)
    tuple_count: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    letters: list[bytes] = field(default_factory=list)


class Inbox:
    """The frames one task has read, by attempt and in order.

    Frames that do not unpack are dropped; the counts of their attempt then do not match, and it fails.
    """

    def __init__(self, packed_frames: Iterable[bytes]) -> None:
        self._frames: dict[TransactionAttempt, list[Frame]] = {}
        for packed in sorted(packed_frames):
            try:
                frame = unpack_frame(packed)
            except (CodecError, ValueError):
                continue
            self._frames.setdefault(frame.attempt, []).append(frame)

    def take(self, attempt: TransactionAttempt) -> list[Frame]:
        """Removes and returns the frames of one attempt."""
        return self._frames.pop(attempt, [])


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

    def run(self, attempt: TransactionAttempt, frames: Iterable[Frame], *, with_id: bool = False) -> TaskResult:
        """Executes an attempt all of whose frames have arrived; `with_id` begins its commit phase."""
        for frame in frames:
            self.receive(frame)
        if with_id:
            self.id(attempt)
        return self.end(attempt)

    def receive(self, frame: Frame) -> None:
        """Executes the tuples of a frame, or handles the report it carries."""
        attempt = frame.attempt
        try:
            content = unpack(frame.payload)
            if frame.kind is FrameKind.COORD:
                self._bolt.coord(attempt, frame.sender, _tuple_count(content))
                return
            stretches = [
                (self._wiring.origin(attempt, frame.sender, stream), from_wire(rows)) for stream, rows in content
            ]
            self._edges_of(attempt)[frame.sender].add(frame, sum(len(rows) for _, rows in stretches))
        except (CodecError, KeyError, IndexError, TypeError, ValueError) as error:
            text = f"frame {frame.sequence} from task {frame.sender} cannot be read: {error!r}"
            where = (self._wiring.component_id, self._wiring.task_index)
            self._bolt.fail(attempt, Failure(FailureKind.INCOMPLETE, *where, text))
            return
        for origin, rows in stretches:
            self._bolt.regular(attempt, origin, rows)

    def take_over(self, handed: HandOver) -> None:
        """Executes the tuples that a task in the same process hands over, and handles its report.

        Of a task that has failed there is no report; its tuples are left alone, and the attempt fails here too.
        """
        if handed.reported_count is None:
            return
        attempt, sender = handed.attempt, handed.sender
        edge = self._edges_of(attempt)[sender]
        for stream, rows in handed.stretches:
            edge.count(len(rows))
            self._bolt.regular(attempt, self._wiring.origin(attempt, sender, stream), rows)
        self._bolt.coord(attempt, sender, handed.reported_count)

    def id(self, attempt: TransactionAttempt) -> None:
        """Notes that the attempt's commit phase has begun."""
        self._bolt.id(attempt)

    def is_finished(self, attempt: TransactionAttempt) -> bool:
        """Whether everything has arrived and the batch finished without a failure."""
        return self._bolt.is_finished(attempt)

    def end(self, attempt: TransactionAttempt) -> TaskResult:
        """Ends an attempt for which nothing more can arrive: returns its result and forgets it."""
        finished = self._bolt.end(attempt)
        edges = self._edges_of(attempt)
        del self._edges[attempt]
        read_edges = 0
        for edge in edges.values():
            read_edges ^= edge.edge_id()
        tuple_count = sum(edge.tuple_count for edge in edges.values())
        return TaskResult(
            finished.failure,
            read_edges,
            finished.sent_edges,
            tuple_count,
            finished.counters,
            finished.metrics,
            finished.letters,
        )

    def _edges_of(self, attempt: TransactionAttempt) -> dict[int, EdgeDigest]:
        edges = self._edges.get(attempt)
        if edges is None:
            task_id = self._wiring.task_id
            edges = {sender: EdgeDigest(attempt, sender, task_id) for sender in self._wiring.upstream}
            self._edges[attempt] = edges
        return edges


def _tuple_count(content: object) -> int:
    if type(content) is not int:
        raise TypeError(f"COORD report holds {content!r}, expected a number of tuples")
    return content
