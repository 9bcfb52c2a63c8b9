"""What processing tasks report to an acker: a row for each attempt, sent as columns.

Most attempts of most tasks have nothing but edges and a few figures to report, so the edges of a wave travel as one
vector and whatever is rare names the places it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.transport.places import mask_from_bytes, mask_to_bytes, places_in
from coordinated_bolt.watching.metrics import MetricsTable, TaskMetrics
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack


@dataclass(slots=True)
class AttemptReport:
    """What one processing task reports on one attempt.

    Attributes:
        failure: why it failed there; None if its batch was finished.
        edges: xor of the edges the task has read, of those it has sent to processing tasks, and of its cuts.
        residue: xor of the edges it has sent to commit tasks.
        emitted_count: tuples emitted by the spout.
        metrics: what the task did, even if it failed.
        counters: what its bolt counted.
        letters: what it refused, packed.
        cuts: the partitions a spout's task has cut, packed: scope -> [link to what it was cut from, metadata].
    """

    failure: Failure | None = None
    edges: int = 0
    residue: int = 0
    emitted_count: int = 0
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    counters: dict[str, int] = field(default_factory=dict)
    letters: list[bytes] = field(default_factory=list)
    cuts: bytes = b""


NOTHING = AttemptReport()
"""The report of a task that did nothing for the attempt; never changed."""

SendReport = Callable[[int, int, TransactionAttempt, AttemptReport], None]
"""Sends the report of a task to an acker: (acker task, task, attempt, report)."""


class ReportTable:
    """The reports of one task to one acker, while they are collected."""

    def __init__(self) -> None:
        self._nothing = 0
        self._columns: list[list[int]] = [[], [], [], []]
        self._metrics = MetricsTable()
        self._failures: dict[int, list[Any]] = {}
        self._counters: dict[int, dict[str, int]] = {}
        self._letters: dict[int, list[bytes]] = {}
        self._cuts: dict[int, bytes] = {}

    def add(self, place: int, report: AttemptReport) -> None:
        """Adds the report on the attempt at a place."""
        if report is NOTHING:
            self._nothing |= 1 << place
            return
        row = (place, report.edges, report.residue, report.emitted_count)
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._metrics.append(report.metrics)
        if report.failure is not None:
            self._failures[place] = report.failure.to_wire()
        if report.counters:
            self._counters[place] = report.counters
        if report.letters:
            self._letters[place] = report.letters
        if report.cuts:
            self._cuts[place] = report.cuts

    def to_payload(self) -> bytes:
        """Returns all reports as bytes."""
        rare = [self._failures, self._counters, self._letters, self._cuts]
        return pack([mask_to_bytes(self._nothing), *self._columns, self._metrics.to_wire(), *rare])


def reports_in(payload: bytes) -> Iterator[tuple[int, AttemptReport]]:
    """Returns (place, report) of each report that was sent with `ReportTable.to_payload`.

    Raises:
        CodecError: the payload is not that of reports.
    """
    try:
        nothing, places, edges, residues, counts, metrics, failures, counters, letters, cuts = unpack(payload)
        for place in places_in(mask_from_bytes(nothing)):
            yield place, NOTHING
        rows = zip(places, edges, residues, counts, MetricsTable.rows_of(metrics), strict=True)
        for place, edge, residue, emitted_count, done in rows:
            failure = failures.get(place)
            yield (
                place,
                AttemptReport(
                    None if failure is None else Failure.from_wire(failure),
                    edge,
                    residue,
                    emitted_count,
                    done,
                    counters.get(place, {}),
                    letters.get(place, []),
                    cuts.get(place, b""),
                ),
            )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise CodecError(f"reports cannot be read: {error!r}") from None
