"""Quarantined batches or dead letters as the input of a run, in place of the spout's input."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_events import BatchCut, Cut, InputState, NothingToCut
from coordinator.transactional.run_spout import RunSpout


class RepublishedInput:
    """Answers the machine's questions about the input; used on the run's thread.

    Transactions that an earlier run has begun are committed first, as in any run; then each batch becomes the next
    transaction. The spout's committer is notified under the batch's old number. A drain leaves out batches that were
    not begun.

    Args:
        republications: in the order in which they become transactions.
        spout: has the run's pause and drain flags; not asked for input.
        clock: seconds, monotonic.
    """

    def __init__(self, republications: Iterable[Republication], spout: RunSpout, clock: Callable[[], float]) -> None:
        self._waiting, self._spout, self._clock = deque(republications), spout, clock
        self._count = len(self._waiting)

    def cut(self, cut: Cut) -> BatchCut | NothingToCut:
        """Returns the next quarantined batch, if there is one and the run is neither paused nor drained."""
        if not self._waiting or not self._spout.active or self._spout.draining:
            return NothingToCut(cut.txid, self._clock())
        republished = self._waiting.popleft()
        return BatchCut(cut.txid, republished.batch.metadata, self._clock(), republished=republished)

    def input_state(self) -> InputState:
        """Returns the state of this input: exhausted once every batch was handed out, whatever the spout's has left."""
        draining = self._spout.draining
        if not (self._spout.active or draining):
            return InputState()
        return InputState(is_exhausted=not self._waiting, is_draining=draining, is_finite=draining)

    def progress(self) -> float | None:
        """Returns the fraction of the batches that was handed out."""
        return 1.0 - len(self._waiting) / self._count if self._count else 1.0
