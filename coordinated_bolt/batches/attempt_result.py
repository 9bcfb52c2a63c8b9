"""The one record of an attempt: filled where a task runs, and carried whole to the acker and the driver.

An acker sums the reports of processing tasks and gives the driver one record for the phase; commit tasks report to the
driver directly. A new fact of an attempt is a field here and a line where it arises; a count that is summed over tasks
is also named in `SUMS`, by which it travels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.watching.metrics import MetricsTable, TaskMetrics
from state.attempt import TransactionAttempt

SUMS = ("tuple_count",)
"""Counts of a processing phase that are added up over its tasks."""


@dataclass(slots=True)
class AttemptResult:
    """The result of one attempt: on one task, or of its processing phase, summed over all tasks by an acker.

    Attributes:
        attempt: the attempt.
        failure: the failure; None if the batch was finished.
        metrics: component id -> its tasks' work, even if the attempt failed.
        residue: xor of the edges from processing tasks into commit tasks.
        metadata: scope -> metadata that emitters cut, to store for the txid.
        tuple_count: tuples emitted by the spout.
        counters: counter -> sum of the amounts that bolts and spouts counted.
        began_from: scope -> link to the metadata from which it was cut.
        letters: task id -> the tuples that the task refused, packed.
        edges: for one task, xor of all other edges that it has read or sent; the acker keeps no sum of them.
        reads: (state name, field) pairs read from committed state.
    """

    attempt: TransactionAttempt
    failure: Failure | None = None
    metrics: dict[str, TaskMetrics] = field(default_factory=dict)
    residue: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    tuple_count: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    began_from: dict[str, int] = field(default_factory=dict)
    letters: dict[int, list[bytes]] = field(default_factory=dict)
    edges: int = 0
    reads: list[list[Any]] = field(default_factory=list)

    @property
    def letter_count(self) -> int:
        """The number of tuples refused."""
        return sum(map(len, self.letters.values())) if self.letters else 0

    def add_sent(self, edges: Mapping[int, int], commit_targets: frozenset[int]) -> None:
        """Adds the task's sent edges, target -> edge; those into the commit phase form the residue."""
        for target, edge in edges.items():
            if target in commit_targets:
                self.residue ^= edge
            else:
                self.edges ^= edge

    def add(self, other: AttemptResult) -> None:
        """Adds another task's work; its edges and failure are left to the acker."""
        self.residue ^= other.residue
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + count
        for component_id, done in other.metrics.items():
            known = self.metrics.get(component_id)
            if known is None:
                self.metrics[component_id] = done
            else:
                known.add(done)
        self.metadata.update(other.metadata)
        self.began_from.update(other.began_from)
        self.letters.update(other.letters)


_NUMBERS = ("edges", "residue", *SUMS)
_RARE = ("failure", "metadata", "began_from", "counters", "letters", "reads")
_numbers_of, _rare_of = attrgetter(*_NUMBERS), attrgetter(*_RARE)


class _Work:
    """One component's work: the rows of the attempts for which it worked, ascending, and its metrics for these."""

    __slots__ = ("metrics", "rows")

    def __init__(self, rows: list[int], metrics: MetricsTable) -> None:
        self.rows, self.metrics = rows, metrics

    def within(self, first: int, end: int) -> slice:
        """Returns the slice of the metrics for these rows."""
        return slice(bisect_left(self.rows, first), bisect_left(self.rows, end))


class ResultTable(Sized):
    """The results of many attempts, held and sent as columns: a row for each attempt, in order.

    Most attempts have only edges and a few figures: these are columns, while rare values are kept by row. Decisions
    read whole columns, and single results only where a rare value exists.

    Args:
        results: the first results.

    Attributes:
        edges: the edges of each attempt.
    """

    def __init__(self, results: Iterable[AttemptResult] = ()) -> None:
        self._txids: list[int] = []
        self._attempt_ids: list[int] = []
        self._numbers: list[list[int]] = [[] for _ in _NUMBERS]
        self._rare: list[dict[int, Any]] = [{} for _ in _RARE]
        self._work: dict[str, _Work] = {}
        for result in results:
            self.append(result)

    def append(self, result: AttemptResult) -> None:
        """Adds the result of the next attempt."""
        row = len(self._txids)
        self._txids.append(result.attempt.txid)
        self._attempt_ids.append(result.attempt.attempt_id)
        for column, number in zip(self._numbers, _numbers_of(result), strict=True):
            column.append(number)
        rare = _rare_of(result)
        if any(rare):
            for held, value in zip(self._rare, rare, strict=True):
                if value:
                    held[row] = value
        for component_id, metrics in result.metrics.items():
            work = self._work.get(component_id)
            if work is None:
                work = self._work[component_id] = _Work([], MetricsTable())
            work.rows.append(row)
            work.metrics.append(metrics)

    def then(self, later: ResultTable) -> ResultTable:
        """Returns these results and those of the next attempts."""
        made, count = ResultTable(), len(self)
        made._txids, made._attempt_ids = self._txids + later._txids, self._attempt_ids + later._attempt_ids
        made._numbers = [mine + theirs for mine, theirs in zip(self._numbers, later._numbers, strict=True)]
        made._rare = [
            mine | {count + row: value for row, value in theirs.items()}
            for mine, theirs in zip(self._rare, later._rare, strict=True)
        ]
        for component_id in self._work | later._work:
            mine, theirs = self._work_of(component_id), later._work_of(component_id)
            rows = [*mine.rows, *(count + row for row in theirs.rows)]
            made._work[component_id] = _Work(rows, mine.metrics.then(theirs.metrics))
        return made

    @property
    def edges(self) -> list[int]:
        return self._numbers[0]

    @property
    def failure(self) -> Failure | None:
        """The failure of the last attempt, None if it has not failed."""
        last: Failure | None = self._rare[0].get(len(self) - 1)
        return last

    def good_count(self) -> int:
        """Returns how many attempts were finished: all of them, or all but the last, which has failed."""
        return len(self) - (self.failure is not None)

    @property
    def counters(self) -> Mapping[int, dict[str, int]]:
        """Row -> counters, for attempts with counters."""
        return self._rare[3]

    @property
    def letters(self) -> Mapping[int, dict[int, list[bytes]]]:
        """Row -> refused tuples, for attempts that refused any."""
        return self._rare[4]

    @property
    def reads(self) -> Mapping[int, list[list[Any]]]:
        """Row -> state read, for attempts that read any."""
        return self._rare[5]

    def work(self, component_id: str, rows: slice) -> TaskMetrics:
        """Returns a component's work for some attempts."""
        within, work = range(*rows.indices(len(self))), self._work_of(component_id)
        return work.metrics.total(work.within(within.start, within.stop))

    def _work_of(self, component_id: str) -> _Work:
        return self._work.get(component_id) or _Work([], MetricsTable())

    def __len__(self) -> int:
        return len(self._txids)

    def __iter__(self) -> Iterator[AttemptResult]:
        """Returns copies of the results; changing them changes nothing here."""
        attempts = map(TransactionAttempt, self._txids, self._attempt_ids)
        results = [AttemptResult(attempt) for attempt in attempts]
        for name, column in zip(_NUMBERS, self._numbers, strict=True):
            for result, number in zip(results, column, strict=True):
                setattr(result, name, number)
        for name, held in zip(_RARE, self._rare, strict=True):
            for row, value in held.items():
                setattr(results[row], name, value)
        for component_id, work in self._work.items():
            for row, done in zip(work.rows, work.metrics.rows(), strict=True):
                results[row].metrics[component_id] = done
        return iter(results)

    def __getitem__(self, row: int) -> AttemptResult:
        """Returns a copy of one result; for tests and other rare uses."""
        return list(self)[row]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResultTable) and self.to_wire() == other.to_wire()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"ResultTable({list(self)!r})"

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        failures, *rare = self._rare
        failed = {row: failure.to_wire() for row, failure in failures.items()}
        work = {component_id: [done.rows, done.metrics.to_wire()] for component_id, done in self._work.items()}
        return [self._txids, self._attempt_ids, self._numbers, [failed, *rare], work]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> ResultTable:
        """Inverse of `to_wire`.

        Raises:
            AttributeError, LookupError, TypeError, ValueError: `wire` holds no results; reading a result may raise
                these too.
        """
        made = cls()
        made._txids, made._attempt_ids, made._numbers, (failed, *rare), work = wire
        made._rare = [{row: Failure.from_wire(failure) for row, failure in failed.items()}, *rare]
        made._work = {
            component_id: _Work(rows, MetricsTable.from_wire(metrics)) for component_id, (rows, metrics) in work.items()
        }
        return made
