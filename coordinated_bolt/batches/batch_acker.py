"""Decides which attempts of a wave are processed, from the reports of the processing tasks.

An attempt is processed when every processing task has reported, none has failed, and the tree has closed (see
`transport.edges` and `completeness.acker`). The edges that lead to commit tasks have not been received yet: their xor
is the attempt's *residue*, which the commit phase must cancel with the edges it actually reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.batches.batch_task import TaskResult
from coordinated_bolt.completeness.acker import ACKER_COMPONENT, Acker, AckOutcome
from coordinated_bolt.completeness.failure import Failure, FailureKind, most_telling
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.outbox import Send
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack


@dataclass(slots=True)
class AttemptOutcome:
    """The outcome of one attempt's processing phase.

    Attributes:
        attempt: the attempt.
        failure: why it failed; None if it is processed.
        residue: xor of the edges into commit tasks.
        metadata: scope -> metadata that emitters cut, to be stored for the txid.
        tuple_count: tuples emitted by the spout.
        counters: sums of its tasks' counters.
        metrics: component id -> what its tasks did, even if the attempt failed.
        began_from: scope -> link to what its metadata was cut from.
        letters: task id -> what the task refused, packed.
    """

    attempt: TransactionAttempt
    failure: Failure | None = None
    residue: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    tuple_count: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, TaskMetrics] = field(default_factory=dict)
    began_from: dict[str, int] = field(default_factory=dict)
    letters: dict[int, list[bytes]] = field(default_factory=dict)

    @property
    def letter_count(self) -> int:
        """The number of tuples refused in the processing phase."""
        return sum(map(len, self.letters.values()))

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        failure = self.failure.to_wire() if self.failure else None
        identity = [self.attempt.txid, self.attempt.attempt_id]
        metrics = {component_id: done.to_wire() for component_id, done in self.metrics.items()}
        counted = [self.tuple_count, dict(self.counters), metrics]
        return [identity, failure, self.residue, self.metadata, *counted, self.began_from, self.letters]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> AttemptOutcome:
        """Inverse of `to_wire`."""
        identity, failure, residue, metadata, tuple_count, counters, metrics, *others = wire
        return cls(
            TransactionAttempt(*identity),
            Failure.from_wire(failure) if failure else None,
            residue,
            metadata,
            tuple_count,
            Counter(counters),
            {component_id: TaskMetrics.from_wire(done) for component_id, done in metrics.items()},
            *others,
        )


def send_report(
    result: TaskResult,
    *,
    attempt: TransactionAttempt,
    task_id: int,
    acker_task: int,
    commit_tasks: frozenset[int],
    cuts: Mapping[str, list[Any]],
    emitted_count: int,
    send: Send,
) -> None:
    """Sends a processing task's report on one attempt to the acker.

    `cuts` holds the partitions a spout's task has cut: scope -> [link to what it was cut from, metadata].
    """
    edges, residue = result.read_edges, 0
    for target, edge in result.sent_edges.items():
        if target in commit_tasks:
            residue ^= edge
        else:
            edges ^= edge
    if cuts:
        frame = Frame(attempt, task_id, 0, acker_task, FrameKind.META, pack(dict(cuts)))
        digest = EdgeDigest(attempt, task_id, acker_task)
        digest.add(frame, 0)
        edges ^= digest.edge_id()
        send(frame)
    failure = result.failure.to_wire() if result.failure else None
    report = [failure, edges, residue, emitted_count, result.counters, result.metrics.to_wire(), result.letters]
    send(Frame(attempt, task_id, 1, acker_task, FrameKind.ACK, pack(report)))


class BatchAcker:
    """Gathers the reports that one acker task receives; made for each wave, on executors or in process.

    Args:
        task_id: the acker task.
        init: attempt -> xor of its batch edges, for every attempt that this acker decides.
        component_of: task id -> (component, task index), for every processing task.
    """

    def __init__(
        self, task_id: int, init: Mapping[TransactionAttempt, int], component_of: Mapping[int, tuple[str, int]]
    ) -> None:
        self._task_id = task_id
        self._acker: Acker[TransactionAttempt] = Acker()
        self._component_of = component_of
        self._outcomes = {attempt: AttemptOutcome(attempt) for attempt in init}
        self._reported: dict[TransactionAttempt, set[int]] = {attempt: set() for attempt in init}
        self._acked: set[TransactionAttempt] = set()
        for attempt, edges in init.items():
            self._note(attempt, self._acker.init(attempt, edges))

    def receive(self, frame: Frame) -> None:
        """Handles a META or ACK frame; ignores frames of other attempts."""
        if frame.attempt not in self._outcomes:
            return
        try:
            content = unpack(frame.payload)
            if frame.kind is FrameKind.META:
                self._receive_metadata(frame, content)
            elif frame.kind is FrameKind.ACK:
                self._receive_report(frame, content)
        except (CodecError, LookupError, TypeError, ValueError) as error:
            self._fail(frame.attempt, self._incomplete(frame.sender, f"report cannot be read: {error!r}"))

    def outcomes(self) -> Iterable[AttemptOutcome]:
        """Returns the verdicts, once no more frames can arrive."""
        for attempt, outcome in self._outcomes.items():
            missing = self._component_of.keys() - self._reported[attempt]
            if outcome.failure is None and missing:
                outcome.failure = self._incomplete(min(missing), "sent no report")
            if outcome.failure is None and attempt not in self._acked:
                where = (ACKER_COMPONENT, 0)
                outcome.failure = Failure(FailureKind.INCOMPLETE, *where, "tasks did not receive what others sent")
        return self._outcomes.values()

    def _receive_metadata(self, frame: Frame, content: dict[str, Any]) -> None:
        digest = EdgeDigest(frame.attempt, frame.sender, self._task_id)
        digest.add(frame, 0)
        outcome = self._outcomes[frame.attempt]
        for scope, (began_from, metadata) in dict(content).items():
            outcome.began_from[scope], outcome.metadata[scope] = began_from, metadata
        self._note(frame.attempt, self._acker.ack(frame.attempt, digest.edge_id()))

    def _receive_report(self, frame: Frame, content: list[Any]) -> None:
        failure, edges, residue, emitted_count, counters, metrics, letters = content
        outcome = self._outcomes[frame.attempt]
        if frame.sender in self._reported[frame.attempt]:
            self._fail(frame.attempt, self._incomplete(frame.sender, "reported more than once"))
            return
        self._reported[frame.attempt].add(frame.sender)
        outcome.residue ^= residue
        outcome.tuple_count += emitted_count
        outcome.counters.update(counters)
        if letters:
            outcome.letters[frame.sender] = letters
        if frame.sender in self._component_of:
            component_id, _ = self._component_of[frame.sender]
            outcome.metrics.setdefault(component_id, TaskMetrics()).add(TaskMetrics.from_wire(metrics))
        if failure is not None:
            self._fail(frame.attempt, Failure.from_wire(failure))
        self._note(frame.attempt, self._acker.ack(frame.attempt, edges))

    def _fail(self, attempt: TransactionAttempt, failure: Failure) -> None:
        outcome = self._outcomes[attempt]
        outcome.failure = most_telling((outcome.failure, failure))
        self._acker.fail(attempt)

    def _note(self, attempt: TransactionAttempt, outcome: AckOutcome | None) -> None:
        if outcome is AckOutcome.ACKED:
            self._acked.add(attempt)
        elif outcome is None:
            self._acked.discard(attempt)

    def _incomplete(self, task_id: int, text: str) -> Failure:
        component_id, task_index = self._component_of.get(task_id, (ACKER_COMPONENT, 0))
        return Failure(FailureKind.INCOMPLETE, component_id, task_index, text)
