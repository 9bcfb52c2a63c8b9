"""The metrics of every component: tuples in and out, and the time they took.

Counted per stretch of tuples if tuples travel in stretches, otherwise per tuple. Pure: the driver passes in a clock of
nanoseconds, and tasks report metrics with their attempts.

Source: org.apache.storm.stats.BoltExecutorStats, SpoutExecutorStats. Differs from Storm: nothing is sampled; latencies
are sums; divide them by the corresponding counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any

BAD_RECORDS_COUNTER = "bad_records"
REASON_COUNTER = "__bad_record: "
"""Prefix of the counters of reasons; the driver removes them from the counters that users see."""
_STREAM_FIGURES = ("emitted", "transferred", "executed", "execute_ns")
"""The figures kept by stream."""
_FIGURES = ("finish_ns", "batches", "dead_letters")
"""The other figures."""


def no_clock() -> int:
    """A clock for when nobody reads latencies, so that all are 0."""
    return 0


@dataclass(slots=True)
class TaskMetrics:
    """The work of one task, or several tasks of a component, for one attempt.

    Attributes:
        emitted: stream id -> tuples emitted.
        transferred: stream id -> tuples sent, counted once per receiving task; in a failed attempt, only tuples that
            had left the task.
        executed: ``source component/stream`` -> tuples executed, without the stretch in which the bolt raised.
        execute_ns: ``source component/stream`` -> time spent executing them, in nanoseconds.
        finish_ns: time in `finish_batch` and `finished_id`, in nanoseconds.
        batches: batches finished; for a spout, batches emitted.
        dead_letters: tuples refused with `dead_letter`.
    """

    emitted: dict[str, int] = field(default_factory=dict)
    transferred: dict[str, int] = field(default_factory=dict)
    executed: dict[str, int] = field(default_factory=dict)
    execute_ns: dict[str, int] = field(default_factory=dict)
    finish_ns: int = 0
    batches: int = 0
    dead_letters: int = 0

    def add_emitted(self, stream_id: str, tuple_count: int, sent_count: int) -> None:
        """Adds emitted tuples, and how often they were sent: once per receiving task."""
        try:
            self.emitted[stream_id] += tuple_count
            self.transferred[stream_id] += sent_count
        except KeyError:
            self.emitted[stream_id], self.transferred[stream_id] = tuple_count, sent_count

    def add_stretch(self, stream: str, tuple_count: int, duration_ns: int) -> None:
        """Adds one executed stretch of tuples; `stream` is ``source component/stream``."""
        self.executed[stream] = self.executed.get(stream, 0) + tuple_count
        self.execute_ns[stream] = self.execute_ns.get(stream, 0) + duration_ns

    def add(self, other: TaskMetrics) -> None:
        """Adds another task's work."""
        _add(self.emitted, other.emitted)
        _add(self.transferred, other.transferred)
        _add(self.executed, other.executed)
        _add(self.execute_ns, other.execute_ns)
        self.finish_ns += other.finish_ns
        self.batches += other.batches
        self.dead_letters += other.dead_letters

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        return [*self.counts(), self.finish_ns, self.batches, self.dead_letters]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> TaskMetrics:
        """Inverse of `to_wire`."""
        return cls(*wire)

    def counts(self) -> tuple[dict[str, int], ...]:
        return self.emitted, self.transferred, self.executed, self.execute_ns


class MetricsTable:
    """The metrics of one task for many attempts: a row for each, and a column for each figure of each stream."""

    def __init__(self) -> None:
        self._columns: dict[tuple[int, str], list[int | None]] = {}
        self._row_count = 0  # length of the columns; rows added later follow
        self._added: list[TaskMetrics] = []

    def append(self, metrics: TaskMetrics) -> None:
        """Adds a row, which must not be changed afterwards."""
        self._added.append(metrics)

    def then(self, later: MetricsTable) -> MetricsTable:
        """Returns the rows of both."""
        self._settle()
        later._settle()
        made = MetricsTable()
        made._row_count = self._row_count
        made._columns = {key: list(column) for key, column in self._columns.items()}
        made._extend(later._columns, later._row_count)
        return made

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec; a column has None where a row has no such figure."""
        self._settle()
        return [self._row_count, [[*key, column] for key, column in self._columns.items()]]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> MetricsTable:
        """Inverse of `to_wire`."""
        made = cls()
        made._row_count, columns = wire
        made._columns = {(figure, stream): column for figure, stream, column in columns}
        return made

    def rows(self) -> list[TaskMetrics]:
        """Returns the rows."""
        self._settle()
        made = [TaskMetrics() for _ in range(self._row_count)]
        for (figure, stream), column in self._columns.items():
            if figure < len(_STREAM_FIGURES):
                for metrics, value in zip(made, column, strict=False):
                    if value is not None:
                        metrics.counts()[figure][stream] = value
            else:
                for metrics, value in zip(made, column, strict=False):
                    setattr(metrics, _FIGURES[figure - len(_STREAM_FIGURES)], value or 0)
        return made

    def total(self, rows: slice) -> TaskMetrics:
        """Returns the sum of some rows."""
        self._settle()
        metrics = TaskMetrics()
        counts = metrics.counts()
        for (figure, stream), column in self._columns.items():
            values = [value for value in column[rows] if value is not None]
            if not values:
                continue
            if figure < len(_STREAM_FIGURES):
                counts[figure][stream] = sum(values)
            else:
                setattr(metrics, _FIGURES[figure - len(_STREAM_FIGURES)], sum(values))
        return metrics

    def _settle(self) -> None:
        """Turns added rows into columns: one pass per figure costs a third of a step per row."""
        added, self._added = self._added, []
        if not added:
            return
        columns: dict[tuple[int, str], list[int | None]] = {}
        for figure, name in enumerate(_STREAM_FIGURES):
            rows = list(map(attrgetter(name), added))
            for stream in dict.fromkeys(chain.from_iterable(rows)):
                columns[figure, stream] = [row.get(stream) for row in rows]
        for figure, name in enumerate(_FIGURES, len(_STREAM_FIGURES)):
            values = list(map(attrgetter(name), added))
            if any(values):
                columns[figure, ""] = values
        self._extend(columns, len(added))

    def _extend(self, columns: Mapping[tuple[int, str], list[int | None]], row_count: int) -> None:
        for key, column in columns.items():
            own = self._columns.setdefault(key, [])
            own += [*[None] * (self._row_count - len(own)), *column]
        self._row_count += row_count


@dataclass(slots=True)
class ComponentMetrics:
    """The work of one component in a run, according to the reports.

    Repeated work counts again. Work without a report, such as that of a worker that died, is missing.

    Attributes:
        work: the sum over attempts, or over a whole run of a plain topology.
        acked: ``source component/stream`` -> executed tuples of committed attempts; in a plain topology, acked tuples,
            and for a spout, stream id -> acked messages.
        failed: the same for attempts that failed or were dropped; in a plain topology, for failed tuples and messages.
        ack_ns: for plain topologies, with the keys of `acked`: time from receiving a tuple, or emitting a message, to
            its ack, in nanoseconds.
    """

    work: TaskMetrics = field(default_factory=TaskMetrics)
    acked: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    ack_ns: dict[str, int] = field(default_factory=dict)

    def add(self, work: TaskMetrics, *, is_committed: bool) -> None:
        """Adds the work for an attempt that was committed or failed."""
        self.work.add(work)
        _add(self.acked if is_committed else self.failed, work.executed)

    def add_acked(self, stream: str, count: int, duration_ns: int) -> None:
        """Adds tuples or messages that were acked, with the sum of their latencies."""
        self.acked[stream] = self.acked.get(stream, 0) + count
        self.ack_ns[stream] = self.ack_ns.get(stream, 0) + duration_ns

    def add_failed(self, stream: str) -> None:
        """Adds one tuple or message that has failed."""
        self.failed[stream] = self.failed.get(stream, 0) + 1

    def merge(self, other: ComponentMetrics) -> None:
        """Adds the work of another task or wave."""
        self.work.add(other.work)
        _add(self.acked, other.acked)
        _add(self.failed, other.failed)
        _add(self.ack_ns, other.ack_ns)

    def copied(self) -> ComponentMetrics:
        """Returns an independent copy."""
        copy = ComponentMetrics()
        copy.merge(self)
        return copy

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        return [self.work.to_wire(), self.acked, self.failed, self.ack_ns]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> ComponentMetrics:
        """Inverse of `to_wire`."""
        work, acked, failed, ack_ns = wire
        return cls(TaskMetrics.from_wire(work), acked, failed, ack_ns)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for the final JSON line."""
        return {
            "emitted": _sorted(self.work.emitted),
            "transferred": _sorted(self.work.transferred),
            "executed": _sorted(self.work.executed),
            "acked": _sorted(self.acked),
            "failed": _sorted(self.failed),
            "execute_ns": _sorted(self.work.execute_ns),
            "ack_ns": _sorted(self.ack_ns),
            "finish_ns": self.work.finish_ns,
            "batches": self.work.batches,
            "dead_letters": self.work.dead_letters,
        }


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
