"""The reports of processing tasks to an acker: the results of attempts, and which attempts were skipped."""

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

    The partitions cut by a spout's task form an edge of the tree; each side computes its own end.

    Args:
        task_id: the task.
        acker_task: the acker.

    Attributes:
        skipped: bits, one set for the place of each skipped attempt.
        results: the results of all other attempts.
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
        """Returns the edge of a result's partitions; 0 without partitions."""
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
            AttributeError, CodecError, LookupError, TypeError, ValueError: the payload holds no reports; reading a
                result may raise these too.
        """
        made = cls(task_id, acker_task)
        skipped, results = unpack(payload)
        made.skipped, made.results = mask_from_bytes(skipped), ResultTable.from_wire(results)
        return made
