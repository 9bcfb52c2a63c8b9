"""Cases and results of `commit_throughput` and its control: plain values that travel between processes as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from state.printable import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputCase:
    """The part of a measurement that both sides have.

    Attributes:
        corpus: folder of the corpus.
        work_dir: folder for the server's data; on a disk.
        lines: lines per transaction or micro-batch.
        master: Spark master.
    """

    corpus: str
    work_dir: str
    lines: int
    master: str

    def to_json(self) -> str:
        """Returns an argument for a process of its own."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TxbatchCase(ThroughputCase):
    """One measurement of txbatch.

    Attributes:
        window: most transactions in flight; 0 lets the run decide.
        group: most transactions per commit.
        seconds: how long the run takes new transactions.
        conf: Spark settings in addition to txbatch's own.
        tasks: of every component.
    """

    window: int
    group: int
    seconds: float
    conf: dict[str, str] = field(default_factory=dict)
    tasks: int = 2

    @property
    def rows_in_flight(self) -> int:
        """Most lines in work at a time."""
        return self.lines * self.window

    @property
    def name(self) -> str:
        """The name in tables."""
        tasks = "" if self.tasks == 2 else f", {counted(self.tasks, 'task')}"
        return f"txbatch, window {self.window or 'by time'}, group {self.group}{tasks}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCase(ThroughputCase):
    """One measurement of the control.

    Attributes:
        files: files per micro-batch, which are read in parallel.
        warm_up: number of micro-batches before the clock starts.
        batches: number of measured micro-batches.
        tuning: name of a set of settings; see `control_settings`.
    """

    files: int
    warm_up: int
    batches: int
    tuning: str

    @property
    def rows_in_flight(self) -> int:
        """Most lines in work at a time."""
        return self.lines

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"control, {self.tuning} settings"


@dataclass(frozen=True, slots=True)
class Result:
    """What one process measured.

    Attributes:
        transactions: transactions or micro-batches committed in the measured time.
        tuples: lines in them.
        words: words in them.
        seconds: the measured time.
        latency_p50_ms, latency_p99_ms: from issue to durable commit, per transaction.
        commit_p50_ms, commit_p99_ms: duration of the committing call.
        is_exact: whether the server's counts equal the independent count.
        details: figures that only one side has.
    """

    transactions: int
    tuples: int
    words: int
    seconds: float
    latency_p50_ms: float
    latency_p99_ms: float
    commit_p50_ms: float
    commit_p99_ms: float
    is_exact: bool
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def transactions_per_s(self) -> float:
        """Transactions per second."""
        return self.transactions / self.seconds

    @property
    def tuples_per_s(self) -> float:
        """Lines per second."""
        return self.tuples / self.seconds

    def to_json(self) -> str:
        """Returns one line for the parent process."""
        return json.dumps(asdict(self))
