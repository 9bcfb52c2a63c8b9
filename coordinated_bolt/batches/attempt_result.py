"""The one record of an attempt: filled where a task runs, and carried whole to whoever decides.

An acker adds up what processing tasks report and hands the driver one record for the phase; commit tasks report to the
driver themselves. The next fact of an attempt is a field here and a line where it is found; a count that adds up over
tasks is named in `SUMS` too, by which it travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt

SUMS = ("tuple_count",)
"""Counts of a processing phase that are added up over its tasks."""


@dataclass(slots=True)
class AttemptResult:
    """The result of one attempt: on one task, or in its processing phase, where an acker has added up all tasks.

    Attributes:
        attempt: the attempt.
        failure: why it failed; None if its batch was finished.
        metrics: component id -> what its tasks did, even if the attempt failed.
        residue: xor of the edges from processing tasks into commit tasks.
        metadata: scope -> metadata that emitters cut, to be stored for the txid.
        tuple_count: tuples emitted by the spout.
        counters: counter -> sum of what bolts and spouts counted.
        began_from: scope -> link to what its metadata was cut from.
        letters: task id -> what the task refused, packed.
        edges: of one task, xor of all other edges that it has read or sent; the acker keeps no sum of them.
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
        """Adds the edges of what the task has sent, target -> edge; those into the commit phase are the residue."""
        for target, edge in edges.items():
            if target in commit_targets:
                self.residue ^= edge
            else:
                self.edges ^= edge

    def add(self, other: AttemptResult) -> None:
        """Adds what another task did; its edges and its failure are for the acker to judge."""
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
