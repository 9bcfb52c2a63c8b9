"""What one commit task reports on a group: a result per attempt, and what it wrote.

The results are columns: most attempts have nothing but an edge and a few figures. With many tasks the driver gets a
result for each task and attempt; it looks at columns, and at single results only where something is rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.watching.metrics import MetricsTable, TaskMetrics
from state.attempt import TransactionAttempt
from state.commits.write_set import WriteSet, compose

_RARE = ("reads", "counters", "letters")


class ResultColumns(Sequence[AttemptResult]):
    """One result per attempt in order, up to and including the first failure.

    Args:
        results: the first of them.
        component_id: of the task, if it is known before the first result.

    Attributes:
        edges: of each attempt.
        failure: why the last attempt failed; None if it has not.
        reads, counters, letters: place -> what the result of that name holds, where that is anything.
        work: a row for each attempt.
    """

    def __init__(self, results: Iterable[AttemptResult] = (), *, component_id: str = "") -> None:
        self._component_id = component_id
        self._txids: list[int] = []
        self._attempt_ids: list[int] = []
        self.edges: list[int] = []
        self.failure: Failure | None = None
        self.reads: dict[int, list[list[Any]]] = {}
        self.counters: dict[int, dict[str, int]] = {}
        self.letters: dict[int, dict[int, list[bytes]]] = {}
        self.work = MetricsTable()
        for result in results:
            self.append(result)

    def append(self, result: AttemptResult) -> None:
        """Adds the result of the next attempt; after a failure there is none."""
        place = len(self.edges)
        self._txids.append(result.attempt.txid)
        self._attempt_ids.append(result.attempt.attempt_id)
        self.edges.append(result.edges)
        self.failure = result.failure
        if result.reads:
            self.reads[place] = result.reads
        if result.counters:
            self.counters[place] = result.counters
        if result.letters:
            self.letters[place] = result.letters
        metrics = None
        for self._component_id, metrics in result.metrics.items():  # noqa: B007
            pass
        self.work.append(metrics or TaskMetrics())

    def then(self, later: ResultColumns) -> ResultColumns:
        """Returns these results and those of the next attempts; none of these has failed."""
        made, count = ResultColumns(component_id=self._component_id or later._component_id), len(self)
        made._txids, made._attempt_ids = self._txids + later._txids, self._attempt_ids + later._attempt_ids
        made.edges, made.failure = self.edges + later.edges, later.failure
        for name in _RARE:
            moved = {count + place: held for place, held in getattr(later, name).items()}
            setattr(made, name, getattr(self, name) | moved)
        made.work = self.work.then(later.work)
        return made

    def __len__(self) -> int:
        return len(self.edges)

    @overload
    def __getitem__(self, place: int) -> AttemptResult: ...

    @overload
    def __getitem__(self, place: slice) -> list[AttemptResult]: ...

    def __getitem__(self, place: int | slice) -> AttemptResult | list[AttemptResult]:
        """Returns a copy of a result; changing it changes nothing here."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        return AttemptResult(
            TransactionAttempt(self._txids[at], self._attempt_ids[at]),
            self.failure if at == len(self) - 1 else None,
            {self._component_id: self.work.total(slice(at, at + 1))},
            edges=self.edges[at],
            reads=self.reads.get(at, []),
            counters=self.counters.get(at, {}),
            letters=self.letters.get(at, {}),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResultColumns) and self.to_wire() == other.to_wire()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"ResultColumns({list(self)!r})"

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        failure = None if self.failure is None else self.failure.to_wire()
        rare = [self.reads, self.counters, self.letters]
        return [self._txids, self._attempt_ids, self.edges, failure, *rare, self.work.to_wire()]

    @classmethod
    def from_wire(cls, component_id: str, wire: list[Any]) -> ResultColumns:
        """Inverse of `to_wire`."""
        made = cls(component_id=component_id)
        made._txids, made._attempt_ids, made.edges, failure, made.reads, made.counters, made.letters, work = wire
        made.failure = None if failure is None else Failure.from_wire(failure)
        made.work = MetricsTable.from_wire(work)
        return made


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
    results: ResultColumns = field(default_factory=ResultColumns)
    write_sets: list[WriteSet] = field(default_factory=list)
    composed: bool = True

    def good_count(self) -> int:
        """Returns the length of the prefix that was finished."""
        return len(self.results) - (self.results.failure is not None)

    def then(self, later: TaskReport) -> TaskReport:
        """Returns what the task reports of these attempts and of the next ones, which it ran elsewhere, as one report.

        What follows an attempt that failed is left out, as the task would not have come to it.
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
            ResultColumns.from_wire(component_id, results),
            [WriteSet.from_wire(w) for w in write_sets],
            composed,
        )
