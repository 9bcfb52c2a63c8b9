"""Carries out what the machine decides about the spout: cut, ask whether the input has ended, tell what is durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.transactional.guarded_spout import GuardedSpout
from coordinator.transactional.guarded_spout_committer import GuardedSpoutCommitter
from coordinator.transactional.machine.run_events import BatchCut, Cut, InputState, NothingToCut, Told
from state.attempt import TransactionAttempt
from state.errors import FailedException


class SpoutSide:
    """The spout of one run, on the run's thread but for `drain`, `deactivate` and `activate`.

    Args:
        spout: its coordinator.
        committer: its committer, which may be none.
        clock: seconds, monotonic.
        notes_of: metadata of the spout's coordinator -> name -> what to remember.
        last_group: what earlier runs committed last, to be told again.
    """

    def __init__(
        self,
        spout: GuardedSpout,
        committer: GuardedSpoutCommitter,
        *,
        clock: Callable[[], float],
        notes_of: Callable[[Any], Mapping[str, Any]],
        last_group: tuple[TransactionAttempt, ...] = (),
    ) -> None:
        self._spout = spout
        self._committer = committer
        self._clock = clock
        self._notes_of = notes_of
        self._last_group = last_group

    def drain(self) -> None:
        """Cuts nothing more in this run. Any thread."""
        self._spout.draining = True

    def deactivate(self) -> None:
        """Cuts nothing until `activate`. Any thread."""
        self._spout.active = False

    def activate(self) -> None:
        """Ends what `deactivate` began. Any thread."""
        self._spout.active = True

    def tell_activity(self) -> None:
        """Tells the spout whether it is paused, if that has changed."""
        self._spout.tell_activity()

    def note_committed(self, txid: int) -> None:
        """Says how far the run is, before the spout is asked anything."""
        self._spout.committed_txid = txid

    def tell_last_group(self) -> Told | None:
        """Tells what earlier runs committed last, with the first call; None if there is nothing to tell."""
        told, self._last_group = self._last_group, ()
        return self.tell(told) if told else None

    def tell(self, attempts: tuple[TransactionAttempt, ...]) -> Told:
        """Tells the spout's committer what is durable."""
        return Told(self._committer.tell(attempts))

    def cut(self, cut: Cut) -> BatchCut | NothingToCut:
        """Has a transaction cut; one that cannot be cut now is asked for again in the next turn."""
        try:
            if cut.is_new and not self._spout.is_ready():
                return NothingToCut(cut.txid, self._clock())
            metadata = self._spout.initialize_transaction(cut.txid, cut.previous)
        except FailedException:
            return NothingToCut(cut.txid, self._clock())
        byte_count = self._spout.estimated_bytes(metadata)
        return BatchCut(cut.txid, metadata, self._clock(), byte_count, self._notes_of(metadata))

    def input_state(self, last_metadata: object) -> InputState:
        """Asks the spout only what matters: one that has raised or is paused is not asked whether it has ended."""
        spout = self._spout
        if spout.error is not None or not (spout.active or spout.draining):
            return InputState(error=spout.error)
        return InputState(
            is_exhausted=spout.is_exhausted(last_metadata),
            is_draining=spout.draining,
            is_finite=spout.draining and spout.is_finite(),
        )

    def progress(self, last_metadata: object) -> float | None:
        """Which part of the input is cut, from 0 to 1; None if that is unknown."""
        return self._spout.progress(last_metadata)
