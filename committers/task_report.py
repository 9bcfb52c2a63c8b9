"""A commit task's report on a group: a result per attempt, and its writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.batches.attempt_result import ResultTable
from coordinated_bolt.watching.metrics import TaskMetrics
from state.commits.write_set import WriteSet, compose

Work = tuple[tuple[str, TaskMetrics], ...]
"""Component id and metrics of each commit task."""


@dataclass(slots=True)
class TaskReport:
    """Everything one commit task reports on a group.

    Attributes:
        task_id: id of the task.
        component_id: its component.
        results: one per attempt in order, up to and including the first failure.
        write_sets: the changes of the good prefix: one composed set, or one set per attempt.
        composed: whether there is one composed set.
    """

    task_id: int
    component_id: str
    results: ResultTable = field(default_factory=ResultTable)
    write_sets: list[WriteSet] = field(default_factory=list)
    composed: bool = True

    def then(self, later: TaskReport) -> TaskReport:
        """Returns one report on these attempts and on the next ones, which the task ran elsewhere.

        Results after a failed attempt are left out, since the task would have stopped there.
        """
        if self.results.failure is not None:
            return self
        write_sets = [*self.write_sets, *later.write_sets]
        if self.composed:
            write_sets = [compose(write_sets)]
            write_sets[0].pack()
        results = self.results.then(later.results)
        return TaskReport(self.task_id, self.component_id, results, write_sets, self.composed)

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        results, write_sets = self.results.to_wire(), [w.to_wire() for w in self.write_sets]
        return [self.task_id, self.component_id, results, write_sets, self.composed]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> TaskReport:
        """Inverse of `to_wire`."""
        task_id, component_id, results, write_sets, composed = wire
        return cls(
            task_id,
            component_id,
            ResultTable.from_wire(results),
            [WriteSet.from_wire(w) for w in write_sets],
            composed,
        )


def work_of(reports: Iterable[TaskReport], places: slice) -> Work:
    """Returns the commit tasks' work for the attempts at these places of a group."""
    return tuple((each.component_id, each.results.work(each.component_id, places)) for each in reports)
