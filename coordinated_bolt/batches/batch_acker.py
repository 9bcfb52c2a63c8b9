"""Decides which attempts of a wave are processed, from the reports of the processing tasks.

An attempt is processed when every processing task has reported, none has failed, and the tree has closed (see
`transport.edges` and `completeness.acker`). The edges that lead to commit tasks have not been received yet: their xor
is the attempt's *residue*, which the commit phase must cancel with the edges it actually reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.batches.attempt_reports import NOTHING, AttemptReport, reports_in
from coordinated_bolt.batches.batch_task import SKIPPED, TaskResult
from coordinated_bolt.completeness.acker import ACKER_COMPONENT, Acker, AckOutcome
from coordinated_bolt.completeness.failure import Failure, FailureKind, most_telling
from coordinated_bolt.transport.edges import EdgeDigest
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


def report_of(
    result: TaskResult,
    *,
    attempt: TransactionAttempt,
    task_id: int,
    acker_task: int,
    commit_tasks: frozenset[int],
    cuts: Mapping[str, list[Any]],
    emitted_count: int,
) -> AttemptReport:
    """Returns a processing task's report on one attempt.

    `cuts` holds the partitions a spout's task has cut: scope -> [link to what it was cut from, metadata].
    """
    if result is SKIPPED:
        return NOTHING
    edges, residue = result.read_edges, 0
    for target, edge in result.sent_edges.items():
        if target in commit_tasks:
            residue ^= edge
        else:
            edges ^= edge
    packed_cuts = pack(dict(cuts)) if cuts else b""
    edges ^= _edge_of_cuts(attempt, task_id, acker_task, packed_cuts)
    return AttemptReport(
        result.failure, edges, residue, emitted_count, result.metrics, result.counters, result.letters, packed_cuts
    )


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
        self._init = init
        self._acked: set[TransactionAttempt] = set()

    def receive(self, sender: int, attempts: Sequence[TransactionAttempt], payload: bytes) -> None:
        """Handles the reports of a task; ignores those on other attempts than this acker decides.

        Args:
            sender: the task.
            attempts: what the reports' places mean.
            payload: the reports, as `ReportTable` packs them.
        """
        try:
            for place, report in reports_in(payload):
                if attempts[place] in self._outcomes:
                    self._receive_report(sender, attempts[place], report)
        except (CodecError, LookupError, TypeError, ValueError) as error:
            for attempt in self._outcomes.keys() & set(attempts):
                self._fail(attempt, self._incomplete(sender, f"report cannot be read: {error!r}"))

    def outcomes(self) -> Iterable[AttemptOutcome]:
        """Returns the verdicts, once no more frames can arrive."""
        for attempt, outcome in self._outcomes.items():
            self._close(attempt)
            missing = self._component_of.keys() - self._reported[attempt]
            if outcome.failure is None and missing:
                outcome.failure = self._incomplete(min(missing), "sent no report")
            if outcome.failure is None and attempt not in self._acked:
                where = (ACKER_COMPONENT, 0)
                outcome.failure = Failure(FailureKind.INCOMPLETE, *where, "tasks did not receive what others sent")
        return self._outcomes.values()

    def _receive_report(self, sender: int, attempt: TransactionAttempt, report: AttemptReport) -> None:
        reported = self._reported[attempt]
        if sender in reported:
            self._fail(attempt, self._incomplete(sender, "reported more than once"))
            return
        reported.add(sender)
        if report is NOTHING:
            return
        outcome = self._outcomes[attempt]
        outcome.residue ^= report.residue
        outcome.tuple_count += report.emitted_count
        if report.counters:
            outcome.counters.update(report.counters)
        if report.letters:
            outcome.letters[sender] = report.letters
        if sender in self._component_of:
            component_id, _ = self._component_of[sender]
            metrics = outcome.metrics.get(component_id)
            if metrics is None:
                outcome.metrics[component_id] = report.metrics
            else:
                metrics.add(report.metrics)
        if report.cuts:
            self._receive_cuts(sender, attempt, report.cuts)
        if report.failure is not None:
            self._fail(attempt, report.failure)
        self._acker.ack(attempt, report.edges)

    def _receive_cuts(self, sender: int, attempt: TransactionAttempt, packed_cuts: bytes) -> None:
        outcome = self._outcomes[attempt]
        for scope, (began_from, metadata) in dict(unpack(packed_cuts)).items():
            outcome.began_from[scope], outcome.metadata[scope] = began_from, metadata
        self._acker.ack(attempt, _edge_of_cuts(attempt, sender, self._task_id, packed_cuts))

    def _fail(self, attempt: TransactionAttempt, failure: Failure) -> None:
        outcome = self._outcomes[attempt]
        outcome.failure = most_telling((outcome.failure, failure))
        self._acker.fail(attempt)

    def _close(self, attempt: TransactionAttempt) -> None:
        """Puts the batch tuple's edges into the tree: last, since a tree may pass through zero before all is in it."""
        if attempt not in self._acked and self._acker.init(attempt, self._init[attempt]) is AckOutcome.ACKED:
            self._acked.add(attempt)

    def _incomplete(self, task_id: int, text: str) -> Failure:
        component_id, task_index = self._component_of.get(task_id, (ACKER_COMPONENT, 0))
        return Failure(FailureKind.INCOMPLETE, component_id, task_index, text)


def _edge_of_cuts(attempt: TransactionAttempt, task_id: int, acker_task: int, packed_cuts: bytes) -> int:
    """The edge of what a spout's task has cut, computed by the task and, from what has arrived, by the acker."""
    if not packed_cuts:
        return 0
    digest = EdgeDigest(attempt, task_id, acker_task)
    digest.add(0, packed_cuts, 0)
    return digest.edge_id()
