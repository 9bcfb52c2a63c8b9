"""What every component is measured by without asking: tuples in and out, and the time they took.

Counted per stretch of tuples, never per tuple where a stretch is at hand. Pure: nanoseconds come from a clock the
driver passes in, and tasks report them with their attempts.

Source: org.apache.storm.stats.BoltExecutorStats, SpoutExecutorStats. Differs from Storm: nothing is sampled;
latencies are sums, to be divided by the counts beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def no_clock() -> int:
    """In place of a clock where nobody asks for latencies: they are all 0."""
    return 0


@dataclass(slots=True)
class TaskMetrics:
    """What was done for one attempt, by one task or by several of one component.

    Attributes:
        emitted: stream id -> tuples emitted.
        transferred: stream id -> tuples sent, one for each receiving task; of an attempt that failed, as far as
            they had left the task.
        executed: ``source component/stream`` -> tuples executed; the stretch of tuples in which the bolt raised is left
            out.
        execute_ns: ``source component/stream`` -> time that took, in nanoseconds.
        finish_ns: time in `finish_batch` and `finished_id`, in nanoseconds.
        batches: batches finished; for a spout, emitted.
    """

    emitted: dict[str, int] = field(default_factory=dict)
    transferred: dict[str, int] = field(default_factory=dict)
    executed: dict[str, int] = field(default_factory=dict)
    execute_ns: dict[str, int] = field(default_factory=dict)
    finish_ns: int = 0
    batches: int = 0

    def add_stretch(self, stream: str, tuple_count: int, duration_ns: int) -> None:
        """Adds one stretch of tuples that was executed; `stream` is ``source component/stream``."""
        self.executed[stream] = self.executed.get(stream, 0) + tuple_count
        self.execute_ns[stream] = self.execute_ns.get(stream, 0) + duration_ns

    def add(self, other: TaskMetrics) -> None:
        """Adds what another task did."""
        for own, others in zip(self._counts(), other._counts(), strict=True):
            _add(own, others)
        self.finish_ns += other.finish_ns
        self.batches += other.batches

    def to_wire(self) -> list[Any]:
        """Plain data for the codec."""
        return [*self._counts(), self.finish_ns, self.batches]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> TaskMetrics:
        """Inverse of `to_wire`."""
        emitted, transferred, executed, execute_ns, finish_ns, batches = wire
        return cls(emitted, transferred, executed, execute_ns, finish_ns, batches)

    def _counts(self) -> tuple[dict[str, int], ...]:
        return self.emitted, self.transferred, self.executed, self.execute_ns


@dataclass(slots=True)
class ComponentMetrics:
    """What one component did in a run, as far as reports tell.

    Work that is done again counts again. What the driver got no report of, as of a worker that died, is not in it.

    Attributes:
        work: the sum over attempts, or over everything a plain topology did.
        acked: ``source component/stream`` -> executed tuples of attempts that were committed; in a plain topology,
            tuples acked, and of a spout: stream id -> messages it was told are processed.
        failed: the same of attempts that failed or were dropped; of tuples and messages that failed.
        ack_ns: as `acked`, of a plain topology: time from receiving a tuple, or emitting a message, to its ack.
    """

    work: TaskMetrics = field(default_factory=TaskMetrics)
    acked: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    ack_ns: dict[str, int] = field(default_factory=dict)

    def add(self, work: TaskMetrics, *, is_committed: bool) -> None:
        """Adds what was done for an attempt that was committed, or failed."""
        self.work.add(work)
        _add(self.acked if is_committed else self.failed, work.executed)

    def merge(self, other: ComponentMetrics) -> None:
        """Adds what another task, or another wave, did."""
        self.work.add(other.work)
        _add(self.acked, other.acked)
        _add(self.failed, other.failed)
        _add(self.ack_ns, other.ack_ns)

    def to_wire(self) -> list[Any]:
        """Plain data for the codec."""
        return [self.work.to_wire(), self.acked, self.failed, self.ack_ns]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> ComponentMetrics:
        """Inverse of `to_wire`."""
        work, acked, failed, ack_ns = wire
        return cls(TaskMetrics.from_wire(work), acked, failed, ack_ns)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the final JSON line."""
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
        }


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
