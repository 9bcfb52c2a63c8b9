"""The spout's coordinator during a run: cuts transactions, drains or pauses, and delays its errors.

User code is called here on the driver. Its errors end the run only after transactions in flight are committed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from coordinator.spouts.answers import expect_positions, expect_truth
from coordinator.spouts.partition_cut import partition_of, partition_scope
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from coordinator.transactional.machine.run_events import BatchCut, Cut, FirstPositions, InputState, NothingToCut
from coordinator.transactional.spout_calls import Answer, SpoutCalls
from state.codec import pack_exact, unpack
from state.errors import FailedException, TransactionError
from state.printable import message_of
from state.values.own_copy import own_copy

_LOG = logging.getLogger("txbatch")


class SpoutProgress(Protocol):
    """How far the run is, in the spout's own numbers of its transactions."""

    def number_of(self, txid: int) -> int:
        """Returns the spout's number of a transaction."""

    def committed_number(self) -> int:
        """Returns the spout's number of the last committed transaction."""

    def last_cut_number(self) -> int:
        """Returns the spout's number of the highest transaction that is committed or whose positions are known."""

    def last_positions(self) -> Mapping[str, Any]:
        """Returns scope -> its last position, committed or not."""


class RunSpout:
    """Answers the machine's questions to the spout; used on the run's thread.

    Args:
        spout: the user's object.
        calls: calls the spout.
        clock: seconds, monotonic.
        run_so_far: where earlier runs stopped.
        has_partitions: `run_so_far` includes the partitions' positions, and `is_exhausted` is asked before each cut.

    Attributes:
        draining: True stops cutting for the rest of the run; set by any thread.
        active: False stops cutting while it lasts; set by any thread.
        error: the error that the spout has raised.
        how_far: the run's progress; set before any call but `estimated_bytes`.
    """

    how_far: SpoutProgress

    def __init__(
        self,
        spout: SpoutCoordinator,
        calls: SpoutCalls,
        clock: Callable[[], float],
        run_so_far: RunSoFar,
        *,
        has_partitions: bool,
    ) -> None:
        self._spout, self._calls, self._clock = spout, calls, clock
        self._has_partitions = has_partitions
        self._so_far = run_so_far
        self._packed_last: bytes | None = None  # packed `_so_far.last`, once this run has cut it
        self._started = run_so_far.last_txid
        self.draining = False
        self.active = self._notified_active = True
        self._has_first_positions = False
        self.error: TransactionError | None = None

    # What the machine decides

    def first_positions(self) -> FirstPositions | None:
        """Returns, once, the first positions of partitions never read; None if there are none or the spout fails."""
        if self._has_first_positions or self.error is not None:
            return None
        spout, given = self.informed(), dict[Any, Any]()
        if self._has_partitions:
            ask = cast(PartitionedCoordinator, spout).first_positions
            try:
                given = dict(self._asked("first_positions", lambda: expect_positions(ask())))
            except FailedException:
                return None  # the next turn asks again, and nothing is cut before
        self._has_first_positions = True
        known = frozenset(spout.run_so_far.positions)
        fresh = {partition_scope(each): own_copy(at) for each, at in given.items() if each not in known}
        return FirstPositions(fresh) if fresh else None

    def cut(self, cut: Cut) -> BatchCut | NothingToCut:
        """Lets the spout cut a transaction; if it cannot be cut now, the next turn tries again."""
        try:
            if not self._has_first_positions or (cut.is_new and not self.is_ready()):
                return NothingToCut(cut.txid, self._clock())
            metadata = self.initialize_transaction(self.how_far.number_of(cut.txid), cut.previous)
        except FailedException:
            return NothingToCut(cut.txid, self._clock())
        notes = self._calls.notes(self._spout, metadata)
        return BatchCut(cut.txid, metadata, self._clock(), self.estimated_bytes(metadata), notes)

    def input_state(self) -> InputState:
        """Returns the state of the input; a spout that has raised or is paused is not asked whether it is exhausted."""
        if self.error is not None or not (self.active or self.draining):
            return InputState(error=self.error)
        return InputState(
            is_exhausted=self._has_first_positions and self.is_exhausted(),
            is_draining=self.draining,
            is_finite=self.draining and self.is_finite(),
        )

    def notify_activity(self) -> None:
        """Calls the spout's `deactivate` or `activate` after a change; on the run's thread, before any other call."""
        active = self.active
        if active == self._notified_active or self.error is not None:
            return
        hook = self._spout.activate if active else self._spout.deactivate
        try:
            self._asked(hook.__name__, hook)
        except FailedException:
            return  # the next turn tries again
        self._notified_active = active

    # What the spout is asked

    def informed(self) -> SpoutCoordinator:
        """Sets the spout's `run_so_far` to copies, which it may change, and returns it."""
        so_far, positions, ahead = self._so_far, dict[Any, Any](), 0
        if self._has_partitions:
            last = self.how_far.last_positions()
            positions = {partition_of(scope): own_copy(position) for scope, position in last.items()}
            ahead = max(0, self._started - self.how_far.last_cut_number())
        committed = self.how_far.committed_number()
        self._spout.run_so_far = RunSoFar(
            so_far.last_txid, self._copy(so_far.last), committed, positions, ahead, so_far.notes
        )
        return self._spout

    def is_ready(self) -> bool:
        may_cut = self._notified_active and self.active and not self.draining and self.error is None
        if not may_cut:
            return False
        spout = self.informed()
        if self._has_partitions and self._truth("is_exhausted", spout.is_exhausted):
            return False
        return self._truth("is_ready", spout.is_ready)

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        if self.error is not None:  # an opaque spout cuts retries too, without `is_ready`
            raise FailedException("the spout has raised before")

        def cut() -> Any:
            self._started = txid - 1  # if the next line fails, all higher transactions are void
            # copies, so that the stored and replayed metadata stays as returned, whatever the spout does to its objects
            metadata = self._spout.initialize_transaction(txid, self._copy(previous))
            packed = pack_exact(metadata)  # refused now, while transactions in flight can still be committed
            kept, self._started = own_copy(metadata), txid
            if txid >= self._so_far.last_txid:  # lower txids are retries of an opaque spout
                self._so_far, self._packed_last = replace(self._so_far, last_txid=txid, last=kept), packed
            return kept

        return self._asked(f"initialize_transaction of txid {txid}", cut)

    def is_exhausted(self) -> bool:
        try:
            return self._truth("is_exhausted", self.informed().is_exhausted)
        except FailedException:
            return False

    def is_finite(self) -> bool:
        """Returns whether the input ends by itself; True if the spout does not answer, to report its unread rest.

        Raises:
            TransactionError: the spout raised anything but a `FailedException`.
        """
        try:
            return self._truth("is_finite", self._spout.is_finite)
        except FailedException:
            if self.error is not None:
                raise self.error from None
            return True

    def progress(self) -> float | None:
        """Returns the fraction of the input that is cut, from 0 to 1; None if it is unknown."""

        def ask() -> float | None:
            fraction = self.informed().progress()
            return None if fraction is None else min(1.0, max(0.0, float(fraction)))

        return self._calls.call_or_default("progress", ask, None)

    def estimated_bytes(self, metadata: Any) -> int:
        """Returns an estimate of a transaction's input, used only to limit the size of waves; 0 if unknown."""
        ask = self._spout.estimated_bytes
        return self._calls.call_or_default("estimated_bytes", lambda: max(0, math.ceil(ask(self._copy(metadata)))), 0)

    def _copy(self, metadata: Any) -> Any:
        """Returns a copy that the spout may change; the last cut is unpacked instead, for a fifth of the work."""
        if metadata is self._so_far.last and self._packed_last is not None:
            return unpack(self._packed_last)
        return own_copy(metadata)

    def _truth(self, method: str, ask: Callable[[], Any]) -> bool:
        return self._asked(method, lambda: expect_truth(method, ask()))

    def _asked(self, method: str, ask: Callable[[], Answer]) -> Answer:
        """Calls the spout; a FailedException means to try again later, any other error is kept to end the run."""
        try:
            return self._calls.once(method, ask)
        except FailedException as error:
            _LOG.info("%s of the spout failed, retrying: %s", method, message_of(error))
            raise
        except TransactionError as error:
            self.error = error
        raise FailedException(f"{method} raised") from self.error
