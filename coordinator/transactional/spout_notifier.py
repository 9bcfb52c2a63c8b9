"""Notifies the spout's committer of durable transactions, in txid order; it can neither undo nor hide a commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from coordinator.spouts.committing import SpoutCommitter
from coordinator.transactional.machine.run_events import Resumed, SpoutNotified
from coordinator.transactional.spout_calls import SpoutCalls
from state.attempt import Attempts, TransactionAttempt
from state.errors import TransactionError
from state.fault_points import reached
from state.printable import message_of

_LOG = logging.getLogger("txbatch")


class SpoutNotifier:
    """Notifies one run's committer, on the run's thread.

    Args:
        committer: the user's object, None if the spout has none.
        calls: calls the committer.
        inform: updates the progress that the coordinator sees, and that a committer may share.
        batch_number: txid -> the spout's number of that batch, 0 if the spout never cut it.
        unnotified: returns the transactions of earlier runs that the committer may not have heard about; called
            just before the notification, since the server may lose them until then.
        quarantined_txids: returns the txids of the batches that are quarantined now.
        quarantined_batches: returns these batches in the form that `SpoutCommitter.keep` takes.
    """

    def __init__(
        self,
        committer: SpoutCommitter | None,
        calls: SpoutCalls,
        *,
        inform: Callable[[], object],
        batch_number: Callable[[int], int],
        unnotified: Callable[[], Attempts] = tuple,
        quarantined_txids: Callable[[], Collection[int]] = tuple,
        quarantined_batches: Callable[[], Collection[Any]] = tuple,
    ) -> None:
        self._committer, self._calls = committer, calls
        self._inform, self._batch_number = inform, batch_number
        self._unnotified: Callable[[], Attempts] | None = unnotified
        self._quarantined_txids, self._quarantined_batches = quarantined_txids, quarantined_batches

    def resume(self) -> Resumed | None:
        """Returns the result of `unnotified` on the first call, None on later ones."""
        unnotified, self._unnotified = self._unnotified, None
        return None if unnotified is None else Resumed(unnotified())

    def notify(self, attempts: Attempts) -> SpoutNotified:
        """Notifies the committer of a durable group, in order, by the spout's own numbers of its batches.

        A quarantined batch is left out until it is republished: its input must not be freed before. After an error
        nothing more may be published: a later commit would record this group as notified.
        """
        if self._committer is None:
            return SpoutNotified(None)
        self._inform()
        left_out = self._quarantined_txids()
        numbers = {each: self._batch_number(each.txid) for each in attempts if each.txid not in left_out}
        known = [TransactionAttempt(number, each.attempt_id) for each, number in numbers.items() if number]
        try:
            quarantined = self._quarantined_batches() if left_out else ()
            if known:
                self._notify(self._committer, known, quarantined)
        except TransactionError as error:
            return SpoutNotified(error)
        return SpoutNotified(None)

    def _notify(
        self, committer: SpoutCommitter, attempts: Sequence[TransactionAttempt], quarantined: Collection[Any]
    ) -> None:
        last = attempts[-1]
        reached("spout.notifying")
        self._call("keep", attempts[0], partial(committer.keep, quarantined))
        for attempt in attempts:
            self._call("commit", attempt, partial(committer.commit, attempt))
            reached("spout.notified")
        self._call("cleanup_before", last, partial(committer.cleanup_before, last.txid))

    def _call(self, method: str, attempt: TransactionAttempt, call: Callable[[], None]) -> None:
        try:
            self._calls.once(method, call, attempt)
        except TransactionError as error:
            _LOG.warning(
                "%s of the spout's committer raised after attempt %s was committed: %s",
                method,
                attempt,
                message_of(error),
            )
            raise
