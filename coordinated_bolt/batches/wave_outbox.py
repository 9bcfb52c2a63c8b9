"""Sends everything from the tasks of one partition in a wave: tuples and counts to tasks, reports to ackers."""

from __future__ import annotations

from collections.abc import Mapping

from coordinated_bolt.batches.attempt_reports import TaskReports
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.transport.blocks import BLOCK_BYTES, BlockWriter, SendFrame
from coordinated_bolt.transport.frames import FrameKind, SealedFrame
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt


class WaveOutbox:
    """Collects tuples, counts and reports and sends them as blocks (executor, one for each task of a stage).

    Args:
        wave: the wave's attempts.
        send: takes the blocks, when `flush` or `flush_if_full` is called or a block gets too long.

    Attributes:
        wave: the wave's attempts.
        carrier: takes tuples and counts for other tasks.
    """

    def __init__(self, wave: WaveAttempts, send: SendFrame) -> None:
        self.wave, self._send = wave, send
        self._reports: dict[tuple[int, int], TaskReports] = {}
        self._report_blocks = 0
        self.carrier = BlockWriter(wave, send)

    def report(self, acker_task: int, task_id: int, attempt: TransactionAttempt, result: AttemptResult | None) -> None:
        """Sends a task's report to an acker; see `SendReport`."""
        self._reports_of(acker_task, task_id).add(self.wave.places[attempt], result)

    def skip(self, wiring: TaskWiring, places: int, places_of: Mapping[int, int]) -> None:
        """Reports to ackers and tasks downstream that a task skips attempts.

        Args:
            wiring: the task.
            places: bits, one set for the place of each attempt.
            places_of: acker -> the places that it decides, as bits.
        """
        for acker_task, own in places_of.items():
            if places & own:
                self._reports_of(acker_task, wiring.task_id).skipped |= places & own
        targets = wiring.framed_targets()
        if targets:
            self.carrier.report_nothing(places, wiring.task_id, targets)

    def flush_if_full(self) -> None:
        """Sends all held frames and reports if they exceed a block; called after each attempt."""
        if self.carrier.byte_count > BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Sends all held frames and reports; called after the last attempt."""
        self.carrier.flush()
        for (acker_task, task_id), reports in self._reports.items():
            payload = reports.to_payload()
            self._send(SealedFrame(self.wave.key, task_id, self._report_blocks, acker_task, FrameKind.ACK, payload))
        self._reports = {}
        self._report_blocks += 1

    def _reports_of(self, acker_task: int, task_id: int) -> TaskReports:
        reports = self._reports.get((acker_task, task_id))
        if reports is None:
            reports = self._reports[acker_task, task_id] = TaskReports(task_id, acker_task)
        return reports
