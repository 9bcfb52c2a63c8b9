"""The spout of a run that replays quarantined batches: it hands them out and cuts nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_events import BatchCut, Cut, InputState, NothingToCut
from coordinator.transactional.spout_side import SpoutSide


class RepublishSide(SpoutSide):
    """Answers what the machine asks of the spout; used on the run's thread, except for `drain` and its kin.

    Transactions that an earlier run has begun are committed first, as in any run; then each batch becomes the next
    transaction. The spout's committer is told of it under its old number. A drain leaves out the batches that were not
    begun.

    Args:
        replays: quarantined batches, in the order in which they become transactions.
        arguments, more: those of `SpoutSide`.
    """

    def __init__(self, replays: Iterable[Republication], *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._waiting = deque(replays)
        self._count = len(self._waiting)

    def cut(self, cut: Cut) -> BatchCut | NothingToCut:
        """Returns the next quarantined batch, if there is one and the run is neither paused nor drained."""
        may_begin = self._spout.active and not self._spout.draining
        if not self._waiting or not may_begin:
            return NothingToCut(cut.txid, self._clock())
        replay = self._waiting.popleft()
        return BatchCut(cut.txid, replay.batch.metadata, self._clock(), replay=replay)

    def input_state(self, last_metadata: object) -> InputState:
        """Returns whether every batch was handed out; the spout's own input does not count."""
        draining = self._spout.draining
        if not (self._spout.active or draining):
            return InputState()
        return InputState(is_exhausted=not self._waiting, is_draining=draining, is_finite=draining)

    def progress(self, last_metadata: object) -> float | None:
        """Returns the part of the batches that was handed out."""
        return 1.0 - len(self._waiting) / self._count if self._count else 1.0
