"""What processing tasks report to an acker: a row for each attempt, sent as columns.

Most attempts of most tasks have nothing but edges and a few figures to report, so the edges of a wave travel as one
vector and whatever is rare names the places it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from coordinated_bolt.batches.attempt_result import SUMS, AttemptResult
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.wave_attempts import mask_from_bytes, mask_to_bytes
from coordinated_bolt.watching.metrics import MetricsTable
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack

SendReport = Callable[[int, int, TransactionAttempt, AttemptResult | None], None]
"""Sends the report of a task to an acker: (acker task, task, attempt, its result; None if the attempt was skipped)."""
_numbers_of = attrgetter("residue", *SUMS)


class Reports(NamedTuple):
    """The reports of one task, as an acker reads them.

    Attributes:
        skipped: a bit for the place of each attempt that was skipped.
        results: of the others; may raise a `CodecError`.
    """

    skipped: int
    results: Iterator[AttemptResult]


class ReportTable:
    """The reports of one task to one acker: collected by the task, read by the acker.

    Partitions that a spout's task has cut are an edge of the tree, of which each side computes its own.

    Args:
        task_id: the task.
        acker_task: the acker.
    """

    def __init__(self, task_id: int, acker_task: int) -> None:
        self._task_id, self._acker_task = task_id, acker_task
        self._skipped = 0
        self._columns: list[list[int]] = [[] for _ in ("place", "edges", "residue", *SUMS)]
        self._metrics = MetricsTable()
        self._failures: dict[int, list[Any]] = {}
        self._counters: dict[int, dict[str, int]] = {}
        self._letters: dict[int, list[bytes]] = {}
        self._cuts: dict[int, bytes] = {}

    def add(self, place: int, result: AttemptResult | None) -> None:
        """Adds the report on the attempt at a place; None if it was skipped."""
        if result is None:
            self.skip(1 << place)
            return
        edges = result.edges
        if result.metadata:
            cuts = pack({scope: [result.began_from[scope], cut] for scope, cut in result.metadata.items()})
            edges ^= self._edge_of_cuts(result.attempt, cuts)
            self._cuts[place] = cuts
        for column, value in zip(self._columns, (place, edges, *_numbers_of(result)), strict=True):
            column.append(value)
        (metrics,) = result.metrics.values()
        self._metrics.append(metrics)
        if result.failure is not None:
            self._failures[place] = result.failure.to_wire()
        if result.counters:
            self._counters[place] = result.counters
        if result.letters:
            self._letters[place] = result.letters[self._task_id]

    def skip(self, places: int) -> None:
        """Adds the reports on attempts that were skipped; a bit for the place of each."""
        self._skipped |= places

    def to_payload(self) -> bytes:
        """Returns all reports as bytes."""
        rare = [self._failures, self._counters, self._letters, self._cuts]
        return pack([mask_to_bytes(self._skipped), *self._columns, self._metrics.to_wire(), *rare])

    def read(self, payload: bytes, attempts: Sequence[TransactionAttempt], component_id: str) -> Reports:
        """Returns the reports that were sent with `to_payload`.

        Args:
            payload: the reports.
            attempts: what their places mean.
            component_id: of the task.

        Raises:
            CodecError: the payload is not that of reports.
        """
        try:
            skipped, *content = unpack(payload)
            return Reports(mask_from_bytes(skipped), self._results(content, attempts, component_id))
        except (TypeError, ValueError) as error:
            raise CodecError(f"reports cannot be read: {error!r}") from None

    def _results(
        self, content: list[Any], attempts: Sequence[TransactionAttempt], component_id: str
    ) -> Iterator[AttemptResult]:
        try:
            *columns, metrics, failures, counters, letters, cuts = content
            for place, edge, residue, *sums, done in zip(*columns, MetricsTable.from_wire(metrics).rows(), strict=True):
                result = AttemptResult(attempts[place], None, {component_id: done}, residue, edges=edge)
                for name, value in zip(SUMS, sums, strict=True):
                    setattr(result, name, value)
                if place in failures:
                    result.failure = Failure.from_wire(failures[place])
                if place in counters:
                    result.counters = counters[place]
                if place in letters:
                    result.letters[self._task_id] = letters[place]
                if place in cuts:
                    self._read_cuts(result, cuts[place])
                yield result
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise CodecError(f"reports cannot be read: {error!r}") from None

    def _read_cuts(self, result: AttemptResult, packed: bytes) -> None:
        for scope, (began_from, metadata) in dict(unpack(packed)).items():
            result.began_from[scope], result.metadata[scope] = began_from, metadata
        result.edges ^= self._edge_of_cuts(result.attempt, packed)

    def _edge_of_cuts(self, attempt: TransactionAttempt, packed: bytes) -> int:
        digest = EdgeDigest(attempt, self._task_id, self._acker_task)
        digest.add(0, packed, 0)
        return digest.edge_id()
