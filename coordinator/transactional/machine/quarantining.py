"""Quarantines batches that are given up: their transactions are committed empty, each in its turn. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.poison import Poison
from coordinator.transactional.machine.releases import Releases
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import Decision, Published, Quarantine, Refused
from coordinator.transactional.machine.transaction_record import AttemptState
from coordinator.watching.run_observer import AttemptsIssued


class Quarantining:
    """Sets one batch aside after another, each once everything lower is committed, so nothing else is in flight.

    Args:
        books: the run's books.
        failures: has the batch that is given up.
        releases: takes over committed transactions.

    Attributes:
        sent: the commit that the store has not answered yet.
    """

    def __init__(self, books: RunBooks, failures: Failures, releases: Releases) -> None:
        self._books, self._failures, self._releases = books, failures, releases
        self.sent: Quarantine | None = None

    def set_aside(self, poison: Poison) -> Iterator[Decision]:
        """Commits only the record of the batch; the next batch begins where this one ends."""
        if not self._releases.has_room(1):
            return
        books = self._books
        attempt = books.transactions.issue(poison.txid)
        yield AttemptsIssued((attempt,))
        books.transactions.move((attempt,), AttemptState.SETTING_ASIDE, poison.cause.reason)
        positions = {poison.txid: poison.batch.positions}
        metadata = books.metadata.commit_changes(poison.txid, positions, books.transactions.notes())
        self.sent = Quarantine((attempt,), poison, metadata, self._releases.notified_txid)
        yield self.sent

    def published(self, published: Published) -> Iterator[Decision]:
        """Records that the store has committed the empty transaction."""
        books, sent = self._books, self._answered()
        books.now_s = published.now_s
        books.metadata.committed(sent.poison.txid, sent.metadata)
        books.transactions.committed(sent.attempts)
        self._failures.set_aside()
        yield from self._releases.published(sent.attempts)

    def refused(self, refused: Refused) -> Iterator[Decision]:
        """Ends the run with the refusal, which changed nothing."""
        sent = self._answered()
        self._books.transactions.move(sent.attempts, AttemptState.WAITING, f"refused: {refused.error}")
        yield from self._failures.not_set_aside(sent.attempts[0], refused.error)

    def _answered(self) -> Quarantine:
        sent, self.sent = self.sent, None
        assert sent is not None, "nothing was sent"
        return sent
