"""Guards the run against the spout's coordinator and committer: drains or pauses, and delays their errors.

User code is called here on the driver. What it raises becomes an error that ends the run only after what is in flight
has been committed; a committer, told in txid order, can neither undo nor hide a commit.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinator.spouts.answers import expect_positions, expect_truth
from coordinator.spouts.committing import SpoutCommitter
from coordinator.spouts.partition_cut import partition_of, partition_scope
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack_exact, unpack
from state.errors import FailedException, SourceError, TransactionError, UserCodeError
from state.fault_points import reached
from state.printable import said_by
from state.values.own_copy import own_copy

_LOG = logging.getLogger("txbatch")


class GuardedSpoutCommitter:
    """Tells the spout's committer what is durable.

    Args:
        committer: the user's object, None if the spout has none.
        component_id: of the spout, for messages.
    """

    def __init__(self, committer: SpoutCommitter | None, component_id: str) -> None:
        self._committer = committer
        self._component_id = component_id

    @property
    def is_there(self) -> bool:
        """Whether the spout has a committer."""
        return self._committer is not None

    def tell(
        self, attempts: tuple[TransactionAttempt, ...], quarantined: Collection[Any] = ()
    ) -> TransactionError | None:
        """Tells the committer of a durable group, in order; returns the error that must end the run, None if it worked.

        `quarantined` is what is stored of the batches that are quarantined now.

        After an error nothing more may be published: the next run tells the last published group again, and would
        leave this one out.
        """
        if self._committer is None or not attempts:
            return None
        committer, last = self._committer, attempts[-1]
        reached("spout.telling")
        if error := self._guarded("keep", attempts[0], partial(committer.keep, quarantined)):
            return error
        for attempt in attempts:
            error = self._guarded("commit", attempt, partial(committer.commit, attempt))
            if error is not None:
                return error
            reached("spout.told")
        return self._guarded("cleanup_before", last, partial(committer.cleanup_before, last.txid))

    def _guarded(self, method: str, attempt: TransactionAttempt, call: Callable[[], None]) -> TransactionError | None:
        try:
            call()
        except BaseException as error:
            if is_interruption(error):
                raise
            _LOG.warning(
                "%s of the spout's committer raised after attempt %s was committed: %s", method, attempt, said_by(error)
            )
            if isinstance(error, SourceError):
                return error
            story = user_traceback(error)
            return UserCodeError(component_id=self._component_id, attempt=str(attempt), traceback_text=story)
        return None


_LOG = logging.getLogger("txbatch")


class LastPositions(Protocol):
    """The position of every partition, as the driver knows it."""

    def last_positions(self) -> Mapping[str, Any]:
        """Returns scope -> its last position, committed or not."""

    def last_cut_number(self) -> int:
        """Returns the spout's number of the highest transaction whose positions are known, or that is committed."""


class GuardedSpout:
    """Calls the spout's coordinator, which cuts nothing while the run is paused, nor after a drain or an error.

    Transactions in flight are committed before its error ends the run.

    Args:
        spout: the user's object.
        component_id: of the spout, for messages.
        run_so_far: where earlier runs stopped.

    Attributes:
        draining: True stops cutting for the rest of the run; set by any thread.
        active: False stops cutting while it lasts; set by any thread.
        error: what the spout has raised.
        committed_txid: the last committed transaction, kept up to date by the coordinator.
        positions: where partitions stand; set before anything is cut.
    """

    def __init__(self, spout: SpoutCoordinator, component_id: str, run_so_far: RunSoFar | None = None) -> None:
        self._spout = spout
        self._so_far = run_so_far or RunSoFar()
        self._packed_last: bytes | None = None  # `last` of that, once this run has cut it
        self._started = self._so_far.last_txid
        self.positions: LastPositions | None = None
        self.committed_txid = self._so_far.committed_txid
        self._component_id = component_id
        self.draining = False
        self.active = True
        self._told_active = True
        self.error: TransactionError | None = None

    def tell_activity(self) -> None:
        """Tells the spout of a pause or its end; called on the run's thread before anything else is asked."""
        active = self.active
        if active == self._told_active or self.error is not None:
            return
        hook = self._spout.activate if active else self._spout.deactivate
        try:
            self._guarded(hook.__name__, hook)
        except FailedException:
            return  # it is told again in the next turn
        self._told_active = active

    def is_ready(self) -> bool:
        may_cut = self._told_active and self.active and not self.draining and self.error is None
        if not may_cut:
            return False
        spout = self.informed()
        if isinstance(spout, PartitionedCoordinator) and self._truth("is_exhausted", spout.is_exhausted):
            return False
        return self._truth("is_ready", spout.is_ready)

    def informed(self) -> SpoutCoordinator:
        """Sets the spout's `run_so_far` to copies, which it may change, and returns it."""
        so_far, positions, ahead = self._so_far, dict[int, Any](), 0
        if self.positions is not None and isinstance(self._spout, PartitionedCoordinator):
            last = self.positions.last_positions()
            positions = {partition_of(scope): own_copy(position) for scope, position in last.items()}
            ahead = max(0, self._started - self.positions.last_cut_number())
        self._spout.run_so_far = RunSoFar(
            so_far.last_txid, self._copy(so_far.last), self.committed_txid, positions, ahead, so_far.notes
        )
        return self._spout

    def _copy(self, metadata: Any) -> Any:
        """Returns a copy that the spout may change; what was cut last is unpacked, a fifth of the work."""
        if metadata is self._so_far.last and self._packed_last is not None:
            return unpack(self._packed_last)
        return own_copy(metadata)

    def first_positions(self) -> Mapping[str, Any]:
        """Returns scope -> where a partition begins that was never read."""
        spout = self.informed()
        if not isinstance(spout, PartitionedCoordinator):
            return {}
        known = frozenset(spout.run_so_far.positions)
        given = self._guarded("first_positions", lambda: expect_positions(spout.first_positions()))
        return {partition_scope(each): own_copy(at) for each, at in given.items() if each not in known}

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        if self.error is not None:  # an opaque spout cuts retries too, without `is_ready`
            raise FailedException("the spout has raised before")

        def cut() -> Any:
            self._started = txid - 1  # if the next line fails, all higher transactions are void
            # copies, so that what is stored and replayed stays as returned, whatever the spout does to its objects
            metadata = self._spout.initialize_transaction(txid, self._copy(previous))
            packed = pack_exact(metadata)  # refused now, while what is in flight can still be committed
            kept, self._started = own_copy(metadata), txid
            if txid >= self._so_far.last_txid:  # lower txids are retries of an opaque spout
                self._so_far, self._packed_last = replace(self._so_far, last_txid=txid, last=kept), packed
            return kept

        return self._guarded(f"initialize_transaction of txid {txid}", cut)

    def is_exhausted(self) -> bool:
        try:
            return self._truth("is_exhausted", self.informed().is_exhausted)
        except FailedException:
            return False

    def is_finite(self) -> bool:
        """Returns whether the input ends by itself; True if the spout fails to answer, so that its rest is reported.

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
        try:
            fraction = self.informed().progress()
            return None if fraction is None else min(1.0, max(0.0, float(fraction)))
        except BaseException as error:  # progress is only shown: its failure must not end a run
            if is_interruption(error):
                raise
            _LOG.debug("progress of the spout failed: %s", said_by(error))
            return None

    def estimated_bytes(self, metadata: Any) -> int:
        try:
            return max(0, math.ceil(self._spout.estimated_bytes(self._copy(metadata))))
        except BaseException as error:  # an estimate only limits the size of waves
            if is_interruption(error):
                raise
            _LOG.debug("estimated_bytes of the spout failed: %s", said_by(error))
            return 0

    def _truth(self, what: str, ask: Callable[[], Any]) -> bool:
        return bool(self._guarded(what, lambda: expect_truth(what, ask())))

    def _guarded(self, what: str, call: Callable[[], Any]) -> Any:
        """Calls user code; a FailedException means to try again later, anything else is kept to end the run."""
        try:
            return call()
        except FailedException as error:
            _LOG.info("%s of the spout failed, retrying: %s", what, said_by(error))
            raise
        except BaseException as error:
            if is_interruption(error):
                raise
            if isinstance(error, TransactionError) and not isinstance(error, CodecError):
                self.error = error
            else:
                story = user_traceback(error)
                self.error = UserCodeError(component_id=self._component_id, traceback_text=story, method=what)
        raise FailedException(f"{what} raised") from self.error
