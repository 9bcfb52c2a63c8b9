"""Guards the run against the spout's committer: told in txid order, it can neither undo nor hide a commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinator.spouts.committing import SpoutCommitter
from state.attempt import TransactionAttempt
from state.errors import SourceError, TransactionError, UserCodeError
from state.fault_points import reached
from state.printable import said_by

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

    def tell(self, attempts: tuple[TransactionAttempt, ...]) -> TransactionError | None:
        """Tells the committer of a durable group, in order; returns the error that must end the run, None if it worked.

        After an error nothing more may be published: the next run tells the last published group again, and would
        leave this one out.
        """
        if self._committer is None or not attempts:
            return None
        committer, last = self._committer, attempts[-1]
        reached("spout.telling")
        for attempt in attempts:
            error = self._guarded("commit", str(attempt), partial(committer.commit, attempt))
            if error is not None:
                return error
            reached("spout.told")
        return self._guarded("cleanup_before", str(last), partial(committer.cleanup_before, last.txid))

    def _guarded(self, method: str, attempt: str, call: Callable[[], None]) -> TransactionError | None:
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
            return UserCodeError(component_id=self._component_id, attempt=attempt, traceback_text=user_traceback(error))
        return None
