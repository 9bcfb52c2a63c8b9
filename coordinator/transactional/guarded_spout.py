"""The spout's coordinator as the run uses it: drained or paused on request, never able to take it down half-way.

User code is called here on the driver, so this is where its exceptions become errors that end the run only
after what is under way has been committed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinator.spouts.answers import expect_truth
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from state.codec import CodecError, pack_exact
from state.errors import FailedException, TransactionError, UserCodeError
from state.own_copy import own_copy
from state.printable import said_by

_LOG = logging.getLogger("txbatch")


class GuardedSpout:
    """The spout's coordinator, which cuts nothing more once the run drains or it has raised, or while it is paused.

    Transactions that are under way are committed before its error ends the run.

    Args:
        spout: the user's object, or what makes a spout with partitions look like one.
        component_id: the spout, for messages.
        run_so_far: where earlier runs stopped.

    Attributes:
        draining: nothing more is cut in this run.
        active: nothing is cut while this is False; set by any thread.
        error: what the spout has raised.
        committed_txid: the last committed transaction, kept up to date by the coordinator.
    """

    def __init__(self, spout: SpoutCoordinator, component_id: str, run_so_far: RunSoFar | None = None) -> None:
        self._spout = spout
        self._so_far = run_so_far or RunSoFar()
        self.committed_txid = self._so_far.committed_txid
        self._component_id = component_id
        self.draining = False
        self.active = True
        self._told_active = True
        self.error: TransactionError | None = None

    def tell_activity(self) -> None:
        """Tells the spout whether it is paused, if that has changed; called on the run's thread before it is asked."""
        active = self.active
        if active == self._told_active or self.error is not None:
            return
        hook = self._spout.activate if active else self._spout.deactivate
        try:
            self._guarded(hook.__name__, hook)
        except FailedException:
            return  # told again before the next question
        self._told_active = active

    def is_ready(self) -> bool:
        may_cut = self._told_active and self.active and not self.draining and self.error is None
        return may_cut and self._truth("is_ready", lambda: self._informed().is_ready())

    def _informed(self) -> SpoutCoordinator:
        """The spout, which has been told how far the run is."""
        last = own_copy(self._so_far.last)
        self._spout.inform(replace(self._so_far, last=last, committed_txid=self.committed_txid))
        return self._spout

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        if self.error is not None:  # an opaque spout is asked for replays too
            raise FailedException("the spout has raised before")

        def cut() -> Any:
            # copies: what is stored, and replayed, is what was returned, whatever the spout does to it or to the last
            metadata = self._spout.initialize_transaction(txid, own_copy(previous))
            pack_exact(metadata)  # refused while what is under way can still be committed
            kept = own_copy(metadata)
            if txid >= self._so_far.last_txid:  # else an opaque spout is asked for a replay
                self._so_far = replace(self._so_far, last_txid=txid, last=kept)
            return kept

        return self._guarded(f"initialize_transaction of txid {txid}", cut)

    def is_exhausted(self, last: Any) -> bool:
        try:
            return self._truth("is_exhausted", lambda: self._informed().is_exhausted(own_copy(last)))
        except FailedException:
            return False

    def is_finite(self) -> bool:
        """Whether the input ends by itself; one that cannot tell just now is taken to, so nobody forgets its rest.

        Raises:
            TransactionError: the spout raised something else.
        """
        try:
            return self._truth("is_finite", self._spout.is_finite)
        except FailedException:
            if self.error is not None:
                raise self.error from None
            return True

    def progress(self, last: Any) -> float | None:
        try:
            fraction = self._spout.progress(own_copy(last))
            return None if fraction is None else min(1.0, max(0.0, float(fraction)))
        except BaseException as error:  # what is only shown does not end a run
            if is_interruption(error):
                raise
            _LOG.debug("the spout cannot tell its progress: %s", said_by(error))
            return None

    def estimated_bytes(self, metadata: Any) -> int:
        try:
            return max(0, math.ceil(self._spout.estimated_bytes(own_copy(metadata))))
        except BaseException as error:  # an estimate only keeps waves small
            if is_interruption(error):
                raise
            _LOG.debug("the spout cannot estimate a batch: %s", said_by(error))
            return 0

    def _truth(self, what: str, ask: Callable[[], Any]) -> bool:
        return bool(self._guarded(what, lambda: expect_truth(what, ask())))

    def _guarded(self, what: str, call: Callable[[], Any]) -> Any:
        """Calls user code; a FailedException means later, anything else is kept to end the run."""
        try:
            return call()
        except FailedException as error:
            _LOG.info("%s of the spout failed and is tried again: %s", what, said_by(error))
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
