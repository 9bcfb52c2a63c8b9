"""Carries out what the machine decides about the spout: cuts, asks for the end of input, tells what is durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from coordinator.transactional.guarded_spout import GuardedSpout, GuardedSpoutCommitter
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_events import (
    BatchCut,
    Cut,
    FirstPositions,
    InputState,
    NothingToCut,
    Resumed,
    Told,
)
from state.attempt import TransactionAttempt
from state.errors import FailedException, TransactionError


class SpoutSide:
    """The spout of one run; used on the run's thread.

    Args:
        guarded: calls its coordinator.
        committer: calls its committer, if there is one.
        clock: seconds, monotonic.
        metadata: knows which transactions republish quarantined batches; the spout does not count these.
        notes_of: metadata of the spout's coordinator -> name -> what to remember.
        untold: what earlier runs committed and may not have told.
        withheld: returns the txids whose batches are quarantined.
        quarantined: returns what is stored of the batches that are quarantined now.

    Attributes:
        guarded: as given; any thread may pause or drain it.
    """

    def __init__(
        self,
        guarded: GuardedSpout,
        committer: GuardedSpoutCommitter,
        *,
        clock: Callable[[], float],
        metadata: MetadataLog,
        notes_of: Callable[[Any], Mapping[str, Any]],
        untold: tuple[TransactionAttempt, ...] = (),
        withheld: Callable[[], Collection[int]] = tuple,
        quarantined: Callable[[], Collection[Any]] = tuple,
    ) -> None:
        self.guarded = guarded
        self._committer = committer
        self._clock = clock
        self._metadata = metadata
        self._notes_of = notes_of
        self._untold = untold
        self._withheld, self._quarantined = withheld, quarantined
        self._has_resumed = self._has_first_positions = False

    def note_committed(self, txid: int) -> None:
        """Notes how far the run is; called before anything is asked of the spout."""
        self.guarded.committed_txid = self._metadata.number_of(txid)

    def resume(self) -> Resumed | None:
        """Returns, once, what earlier runs committed and may not have told; None from then on."""
        has_resumed, self._has_resumed = self._has_resumed, True
        return None if has_resumed else Resumed(self._untold)

    def first_positions(self) -> FirstPositions | None:
        """Returns, once, where partitions begin that were never read; None if there are none, or the spout fails."""
        if self._has_first_positions or self.guarded.error is not None:
            return None
        try:
            positions = self.guarded.first_positions()
        except FailedException:
            return None  # it is asked again in the next turn, and nothing is cut before
        self._has_first_positions = True
        return FirstPositions(positions) if positions else None

    def tell(self, attempts: tuple[TransactionAttempt, ...]) -> Told:
        """Tells the spout's committer what is durable, under the numbers by which the spout knows it.

        A quarantined batch is told when it is republished: what that needs must not be freed before. Letters that are
        republished are no batch of the spout.
        """
        if not self._committer.is_there:
            return Told(None)
        self.guarded.informed()  # a committer may share the coordinator's view
        withheld = self._withheld()
        try:
            quarantined = self._quarantined() if withheld else ()
        except TransactionError as error:
            return Told(error)
        numbers = {each: self._metadata.told_as(each.txid) for each in attempts if each.txid not in withheld}
        known = (
            each if number == each.txid else TransactionAttempt(number, each.attempt_id)
            for each, number in numbers.items()
            if number
        )
        return Told(self._committer.tell(tuple(known), quarantined))

    def cut(self, cut: Cut) -> BatchCut | NothingToCut:
        """Lets the spout cut a transaction; if it cannot be cut now, the next turn tries again."""
        if not self._has_first_positions:
            return NothingToCut(cut.txid, self._clock())
        try:
            if cut.is_new and not self.guarded.is_ready():
                return NothingToCut(cut.txid, self._clock())
            metadata = self.guarded.initialize_transaction(self._metadata.number_of(cut.txid), cut.previous)
        except FailedException:
            return NothingToCut(cut.txid, self._clock())
        byte_count = self.guarded.estimated_bytes(metadata)
        return BatchCut(cut.txid, metadata, self._clock(), byte_count, self._notes_of(metadata))

    def input_state(self) -> InputState:
        """Returns how the input stands; a spout that has raised or is paused is not asked whether it has ended."""
        spout = self.guarded
        if spout.error is not None or not (spout.active or spout.draining):
            return InputState(error=spout.error)
        return InputState(
            is_exhausted=self._has_first_positions and spout.is_exhausted(),
            is_draining=spout.draining,
            is_finite=spout.draining and spout.is_finite(),
        )

    def progress(self) -> float | None:
        """Returns the part of the input that is cut, from 0 to 1; None if it is unknown."""
        return self.guarded.progress()


class RepublishSide(SpoutSide):
    """Answers what the machine asks of the spout; used on the run's thread.

    Transactions that an earlier run has begun are committed first, as in any run; then each batch becomes the next
    transaction. The spout's committer is told of it under its old number. A drain leaves out the batches that were not
    begun.

    Args:
        republications: quarantined batches, in the order in which they become transactions.
        arguments, more: those of `SpoutSide`.
    """

    def __init__(self, republications: Iterable[Republication], *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._waiting = deque(republications)
        self._count = len(self._waiting)

    def cut(self, cut: Cut) -> BatchCut | NothingToCut:
        """Returns the next quarantined batch, if there is one and the run is neither paused nor drained."""
        may_begin = self.guarded.active and not self.guarded.draining
        if not self._waiting or not may_begin:
            return NothingToCut(cut.txid, self._clock())
        republished = self._waiting.popleft()
        return BatchCut(cut.txid, republished.batch.metadata, self._clock(), republished=republished)

    def input_state(self) -> InputState:
        """Returns whether every batch was handed out; the spout's own input does not count."""
        draining = self.guarded.draining
        if not (self.guarded.active or draining):
            return InputState()
        return InputState(is_exhausted=not self._waiting, is_draining=draining, is_finite=draining)

    def progress(self) -> float | None:
        """Returns the part of the batches that was handed out."""
        return 1.0 - len(self._waiting) / self._count if self._count else 1.0
