"""Cases and results of measurements: plain values that travel between processes as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from state.printable import counted


@dataclass(frozen=True, slots=True)
class TxbatchCase:
    """One measurement of txbatch.

    Attributes:
        corpus: folder of the corpus.
        work_dir: folder for the server's data; on a disk.
        lines: lines per transaction.
        window: most transactions in flight; 0 lets the run decide.
        group: most transactions per commit.
        seconds: how long the run takes new transactions.
        master: Spark master.
        conf: Spark settings in addition to txbatch's own.
        tasks: of every component.
    """

    corpus: str
    work_dir: str
    lines: int
    window: int
    group: int
    seconds: float
    master: str
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

    def to_json(self) -> str:
        """Returns an argument for a process of its own."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class ControlCase:
    """One measurement of the control.

    Attributes:
        corpus: folder of the corpus.
        work_dir: folder for the server's data; on a disk.
        lines: lines per micro-batch.
        files: files per micro-batch, which are read in parallel.
        warm_up: number of micro-batches before the clock starts.
        batches: number of measured micro-batches.
        tuning: name of a set of settings; see `control_settings`.
        master: Spark master.
    """

    corpus: str
    work_dir: str
    lines: int
    files: int
    warm_up: int
    batches: int
    tuning: str
    master: str

    @property
    def rows_in_flight(self) -> int:
        """Most lines in work at a time."""
        return self.lines

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"control, {self.tuning} settings"

    def to_json(self) -> str:
        """Returns an argument for a process of its own."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(**json.loads(text))


Case = TxbatchCase | ControlCase


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

    @property
    def words_per_s(self) -> float:
        """Words per second."""
        return self.words / self.seconds

    def to_json(self) -> str:
        """Returns one line for the parent process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        return cls(**json.loads(text))


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the nearest-rank percentile: always a measured value, never one in between."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan


def median(values: Sequence[float]) -> float:
    """Returns the middle value, or the mean of the two middle values."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
