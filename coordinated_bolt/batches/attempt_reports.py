"""What processing tasks report to an acker: the results of attempts, and which attempts were skipped."""

from __future__ import annotations

from collections.abc import Callable

from coordinated_bolt.batches.attempt_result import AttemptResult, ResultTable
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.wave_attempts import mask_from_bytes, mask_to_bytes
from state.attempt import TransactionAttempt
from state.codec import pack, unpack

SendReport = Callable[[int, int, TransactionAttempt, AttemptResult | None], None]
"""Sends the report of a task to an acker: (acker task, task, attempt, its result; None if the attempt was skipped)."""


class TaskReports:
    """The reports of one task to one acker: collected by the task, read by the acker.

    Partitions that a spout's task has cut are an edge of the tree; each side computes its own end of it.

    Args:
        task_id: the task.
        acker_task: the acker.

    Attributes:
        skipped: a bit for the place of each attempt that was skipped.
        results: of the others.
    """

    def __init__(self, task_id: int, acker_task: int) -> None:
        self._task_id, self._acker_task = task_id, acker_task
        self.skipped = 0
        self.results = ResultTable()

    def add(self, place: int, result: AttemptResult | None) -> None:
        """Adds the report on the attempt at a place; None if it was skipped."""
        if result is None:
            self.skipped |= 1 << place
        else:
            self.results.append(result)
            self.results.edges[-1] ^= self.edge_of_cuts(result)

    def edge_of_cuts(self, result: AttemptResult) -> int:
        """Returns the edge of what a result says of partitions; 0 if it says nothing."""
        if not result.metadata:
            return 0
        digest = EdgeDigest(result.attempt, self._task_id, self._acker_task)
        digest.add(0, pack({scope: [result.began_from[scope], cut] for scope, cut in result.metadata.items()}), 0)
        return digest.edge_id()

    def to_payload(self) -> bytes:
        """Returns all reports as bytes."""
        return pack([mask_to_bytes(self.skipped), self.results.to_wire()])

    @classmethod
    def from_payload(cls, task_id: int, acker_task: int, payload: bytes) -> TaskReports:
        """Inverse of `to_payload`.

        Raises:
            AttributeError, CodecError, LookupError, TypeError, ValueError: the payload is something else; reading a
                result may raise them.
        """
        made = cls(task_id, acker_task)
        skipped, results = unpack(payload)
        made.skipped, made.results = mask_from_bytes(skipped), ResultTable.from_wire(results)
        return made
