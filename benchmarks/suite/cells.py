"""What the suite measures, as values that travel between processes as JSON.

A `Cell` is one place in the report's tables. An `Assignment` is one measurement of it, made by a process of its own,
which answers with a `Measurement`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Self


class Kind(Enum):
    """The question a cell answers."""

    RATE = "rate"
    """How many transactions a second, if the next one always waits?"""
    LATENCY = "latency"
    """How long does a transaction take that arrives at a fixed time, at half the peak rate?"""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One side at one workload, size and number of tasks.

    Attributes:
        kind: value of a `Kind`.
        side: name in `sides.table`.
        workload: name in `workloads.table`.
        tuples: tuples of a transaction.
        tasks: threads of Spark and tasks of each component; for the other sides, processes.
        window: transactions in flight; 0 leaves it to the side.
    """

    kind: str
    side: str
    workload: str
    tuples: int
    tasks: int
    window: int = 0

    @property
    def key(self) -> str:
        """The cell's name in the results file."""
        window = f" window {self.window}" if self.window else ""
        return f"{self.kind} {self.side} {self.workload} {self.tuples}x{self.tasks}{window}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One measurement to make.

    Attributes:
        cell: what to measure.
        corpus: folder of the text.
        work_dir: folder for data, on a disk.
        seconds: how long to measure.
        warm_up_s: how long to work beforehand, unmeasured.
        arrivals_per_s: of transactions, for latency; 0 otherwise.
    """

    cell: Cell
    corpus: str
    work_dir: str
    seconds: float
    warm_up_s: float
    arrivals_per_s: float = 0.0

    def to_json(self) -> str:
        """Returns an argument for a process of its own."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        fields = json.loads(text)
        return cls(**{**fields, "cell": Cell(**fields["cell"])})


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one process measured.

    Attributes:
        transactions: committed in the measured time.
        tuples: in them.
        seconds: the measured time.
        is_exact: whether all that the server holds equals an independent count.
        processor_s: role -> processor seconds in the measured time; empty where nobody looked.
        latencies_ms: "p50", "p90", "p99" and "max"; empty for rates.
        details: what only one side has.
    """

    transactions: int
    tuples: int
    seconds: float
    is_exact: bool
    processor_s: Mapping[str, float] = field(default_factory=dict)
    latencies_ms: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def transactions_per_s(self) -> float:
        """Transactions per second."""
        return self.transactions / self.seconds

    def to_json(self) -> str:
        """Returns one line for the parent process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Inverse of `dataclasses.asdict`."""
        return cls(**fields)
