"""Committed transactions that wait for release upstream, until the server confirms the durability asked for. Pure.

At level memory the answer to a commit is that confirmation, and nothing waits. At any other level one barrier at a time
is outstanding; it covers everything committed before it, so one barrier serves all groups that were committed while the
last one was outstanding.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import AskBarrier, BarrierConfirmed, Decision, Halt, NotifySpout
from state.attempt import Attempts, TransactionAttempt
from state.errors import NotDurableError

UNRELEASED_MAX = 1_024
"""Most transactions committed and not released: the next run can notify of them only while they have receipts."""


class Releases:
    """Releases transactions in order, each once.

    Args:
        books: the run's books.
        committed_txid: last committed txid of earlier runs.

    Attributes:
        released_txid: last txid known to be as durable as the run has asked, 0 if none is.
    """

    def __init__(self, books: RunBooks, committed_txid: int) -> None:
        self._books = books
        self._waits = books.options.asked_durability().waits
        self._to_notify: list[TransactionAttempt] = []  # committed; the committer may not have been notified
        self._notifying: Attempts = ()
        self._found = self._committed = self._notified = committed_txid  # last txids
        self.released_txid = 0 if self._waits else committed_txid
        self._asked: int | None = None
        self._blocked_s: float | None = None

    @property
    def notified_txid(self) -> int | None:
        """The last txid that the spout's committer was notified of; None if it was notified of all committed ones."""
        return None if self._notified == self._committed else self._notified

    def is_pending(self) -> bool:
        """Returns whether a transaction is committed and not yet confirmed at the level asked for."""
        return self.released_txid < self._committed

    def resumed(self, unnotified: Attempts) -> Iterator[Decision]:
        """Takes over transactions of earlier runs that the spout's committer may not have heard about."""
        if unnotified:
            self._notified = unnotified[0].txid - 1
            self._to_notify.extend(unnotified)
            if not self._waits:
                yield self._notify(unnotified)

    def published(self, attempts: Attempts) -> Iterator[Decision]:
        """Takes in a group that the store has committed."""
        self._committed = attempts[-1].txid
        self._to_notify.extend(attempts)
        if not self._waits:
            self.released_txid = self._committed
            yield self._notify(attempts)

    def due(self) -> Iterator[Decision]:
        """Asks for a barrier if there is a commit to confirm and no barrier is outstanding; called every turn."""
        if self._asked is None and self.is_pending():
            self._asked = self._committed
            yield AskBarrier(up_to_txid=self._committed, confirmed_txid=self.released_txid)

    def confirmed(self, event: BarrierConfirmed) -> Iterator[Decision]:
        """Releases the transactions that the barrier covers."""
        if self._asked != event.up_to_txid:
            return  # not the outstanding barrier
        self._asked, self._blocked_s = None, None
        self.released_txid = event.up_to_txid
        durable = tuple(attempt for attempt in self._to_notify if attempt.txid <= event.up_to_txid)
        if durable:
            yield self._notify(durable)
        else:
            assert event.up_to_txid <= self._found, "a committed transaction was left out of the notifications"
            self._notified = event.up_to_txid

    def _notify(self, attempts: Attempts) -> NotifySpout:
        self._notifying = attempts
        return NotifySpout(attempts)

    def notified(self) -> None:
        """Records that the spout's committer was notified of the last `NotifySpout`."""
        self._notified = self._notifying[-1].txid
        del self._to_notify[: len(self._notifying)]
        self._notifying = ()

    def has_room(self, count: int) -> bool:
        """Returns whether another group may be committed; if not, the run is blocked until a barrier is confirmed."""
        if not self._to_notify or len(self._to_notify) + count <= UNRELEASED_MAX:
            return True
        self.block()
        return False

    def is_blocked(self) -> bool:
        """Returns whether the run can only wait for the barrier."""
        return self._blocked_s is not None

    def block(self) -> None:
        """Records that from now on the run can only wait for the barrier."""
        if self._blocked_s is None:
            self._blocked_s = self._books.now_s

    def give_up_overdue(self) -> Iterator[Decision]:
        """Ends a run that can only wait, and has waited too long."""
        books, timeout_s = self._books, self._books.plan.barrier_timeout_s
        if self._blocked_s is None or books.now_s - self._blocked_s <= timeout_s:
            return
        level = books.options.asked_durability().level.value
        yield Halt(NotDurableError(level, self._committed, self.released_txid, timeout_s))

    def validate(self) -> None:
        """Checks that pending releases and notifications are consistent.

        Raises:
            AssertionError: they are not.
        """
        txids = [attempt.txid for attempt in self._to_notify]
        assert txids == sorted(set(txids)), "released twice, or out of order"
        assert self._notifying or all(txid > self.released_txid for txid in txids), "released without a notification"
        assert self._notified <= max(self.released_txid, self._found), "notified before it was confirmed"
        assert self.released_txid <= self._committed
        assert self._asked is None or self.released_txid < self._asked <= self._committed, "a barrier for nothing"
        assert self._blocked_s is None or self.is_pending(), "blocked by nothing"
