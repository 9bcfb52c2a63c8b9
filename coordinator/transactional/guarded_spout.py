"""Guards the run against the spout's coordinator and committer: drains or pauses, and delays their errors.

User code is called here on the driver. What it raises becomes an error that ends the run only after what is in flight
has been committed; a committer, told in txid order, can neither undo nor hide a commit.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinator.spouts.answers import expect_truth
from coordinator.spouts.committing import SpoutCommitter
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


class GuardedSpout:
    """Calls the spout's coordinator, which cuts nothing while the run is paused, nor after a drain or an error.

    Transactions in flight are committed before its error ends the run.

    Args:
        spout: the user's object, or the adapter of a spout with partitions.
        component_id: of the spout, for messages.
        run_so_far: where earlier runs stopped.

    Attributes:
        draining: True stops cutting for the rest of the run; set by any thread.
        active: False stops cutting while it lasts; set by any thread.
        error: what the spout has raised.
        committed_txid: the last committed transaction, kept up to date by the coordinator.
    """

    def __init__(self, spout: SpoutCoordinator, component_id: str, run_so_far: RunSoFar | None = None) -> None:
        self._spout = spout
        self._so_far = run_so_far or RunSoFar()
        self._packed_last: bytes | None = None  # `last` of that, once this run has cut it
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
        return may_cut and self._truth("is_ready", lambda: self._informed().is_ready())

    def _informed(self) -> SpoutCoordinator:
        """Tells the spout how far the run is and returns it."""
        last = self._copy(self._so_far.last)
        self._spout.inform(RunSoFar(self._so_far.last_txid, last, self.committed_txid))
        return self._spout

    def _copy(self, metadata: Any) -> Any:
        """Returns a copy that the spout may change; what was cut last is unpacked, a fifth of the work."""
        if metadata is self._so_far.last and self._packed_last is not None:
            return unpack(self._packed_last)
        return own_copy(metadata)

    def first_positions(self, ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Returns what the spout answers; see `SpoutKind.first_positions`."""
        positions: Mapping[str, Any] = self._guarded("first_positions", ask)
        return positions

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        if self.error is not None:  # an opaque spout cuts retries too, without `is_ready`
            raise FailedException("the spout has raised before")

        def cut() -> Any:
            # copies, so that what is stored and replayed stays as returned, whatever the spout does to its objects
            metadata = self._spout.initialize_transaction(txid, self._copy(previous))
            packed = pack_exact(metadata)  # refused now, while what is in flight can still be committed
            kept = own_copy(metadata)
            if txid >= self._so_far.last_txid:  # lower txids are retries of an opaque spout
                self._so_far, self._packed_last = RunSoFar(txid, kept, self.committed_txid), packed
            return kept

        return self._guarded(f"initialize_transaction of txid {txid}", cut)

    def is_exhausted(self, last: Any) -> bool:
        try:
            return self._truth("is_exhausted", lambda: self._informed().is_exhausted(self._copy(last)))
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

    def progress(self, last: Any) -> float | None:
        try:
            fraction = self._spout.progress(self._copy(last))
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
