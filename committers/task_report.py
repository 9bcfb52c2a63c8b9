"""What one commit task reports on a group: a verdict per attempt, and what it wrote and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.watching.metrics import TaskMetrics
from state.commits.write_set import WriteSet


@dataclass(slots=True)
class AttemptVerdict:
    """The outcome of one attempt on one commit task.

    Attributes:
        failure: why it failed; None if the batch was finished.
        edges: xor of the edges read and sent, as computed by the task.
        reads: (state name, field) pairs read from committed state.
        counters: what the bolt counted.
        metrics: what the task did, even if it failed.
        letters: what the bolt refused, packed.
    """

    failure: Failure | None = None
    edges: int = 0
    reads: list[list[Any]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    letters: list[bytes] = field(default_factory=list)

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        failure = self.failure.to_wire() if self.failure else None
        return [failure, self.edges, self.reads, self.counters, self.metrics.to_wire(), self.letters]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> AttemptVerdict:
        """Inverse of `to_wire`."""
        failure, edges, reads, counters, metrics, letters = wire
        return cls(
            Failure.from_wire(failure) if failure else None,
            edges,
            reads,
            counters,
            TaskMetrics.from_wire(metrics),
            letters,
        )


@dataclass(slots=True)
class TaskReport:
    """Everything one commit task reports on a group.

    Attributes:
        task_id: id of the task.
        component_id: its component.
        verdicts: one per attempt in order, up to and including the first failure.
        write_sets: the changes of the good prefix: one composed set, or one set per attempt.
        composed: whether there is one composed set.
    """

    task_id: int
    component_id: str
    verdicts: list[AttemptVerdict] = field(default_factory=list)
    write_sets: list[WriteSet] = field(default_factory=list)
    composed: bool = True

    def good_count(self) -> int:
        """Returns the length of the prefix that was finished."""
        if self.verdicts and self.verdicts[-1].failure is not None:
            return len(self.verdicts) - 1
        return len(self.verdicts)

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        verdicts = [verdict.to_wire() for verdict in self.verdicts]
        return [self.task_id, self.component_id, verdicts, [w.to_wire() for w in self.write_sets], self.composed]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> TaskReport:
        """Inverse of `to_wire`."""
        task_id, component_id, verdicts, write_sets, composed = wire
        return cls(
            task_id,
            component_id,
            [AttemptVerdict.from_wire(verdict) for verdict in verdicts],
            [WriteSet.from_wire(w) for w in write_sets],
            composed,
        )
