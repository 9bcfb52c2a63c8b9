"""Carries out what the machine decides about the store, and watches its server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from coordinator.transactional.machine.run_events import Publish, Published, Refused
from coordinator.transactional.publisher import Publisher, RefusedGroup
from coordinator.transactional.record_stamps import RecordStamps
from coordinator.transactional.run_summary import RunStatistics
from state.attempt import TransactionAttempt
from state.errors import ReplayLimitError, StateRefusedError, TransactionError
from state.redis_watch import ServerWatch

_LOG = logging.getLogger("txbatch")


class StoreSide:
    """The store of one run.

    Args:
        publisher: stores and commits, as the owner of the topology.
        clock: seconds, monotonic.
        on_committed: called with the attempts of a group once they are durable.
        statistics: takes down how long the server was away.
        stamps: makes the record of a batch that is quarantined.
        server_watch: checks the server during the run.
    """

    def __init__(
        self,
        publisher: Publisher,
        *,
        clock: Callable[[], float],
        on_committed: Callable[[tuple[TransactionAttempt, ...]], None],
        statistics: RunStatistics,
        stamps: RecordStamps,
        server_watch: ServerWatch | None = None,
    ) -> None:
        self._publisher = publisher
        self._clock = clock
        self._on_committed = on_committed
        self._statistics = statistics
        self._stamps = stamps
        self._server_watch = server_watch

    def look(self) -> None:
        """Checks the server if that is due.

        Raises:
            StateRefusedError: the server can no longer be used.
        """
        if self._server_watch is not None:
            self._server_watch.look()
            self._note_absence()

    def store_metadata(self, entries: Mapping[str, Any]) -> None:
        """Stores metadata; called before anything that depends on it."""
        self._publisher.store_metadata(entries)

    def publish(self, publish: Publish) -> Published | Refused:
        """Commits a group in one atomic step."""
        poison, replay = publish.poison, publish.replay
        try:
            self._publisher.commit(
                publish.attempts,
                publish.write_set,
                publish.metadata,
                set_aside=None if poison is None else self._stamps.set_aside(poison),
                replayed_txid=None if replay is None or replay.letters else replay.txid,
            )
        except RefusedGroup as refusal:
            return Refused(refusal.error)
        if poison is not None:
            _LOG.warning("txid %d is quarantined: %s", poison.txid, poison.cause.reason)
        if replay is not None and replay.letters:
            _LOG.info("%d dead letters are replayed as txid %d", len(replay.letters), publish.attempts[0].txid)
        elif replay is not None:
            _LOG.info("quarantined txid %d is replayed as txid %d", replay.txid, publish.attempts[0].txid)
        self._on_committed(publish.attempts)
        return Published(self._clock())

    def confirm(self) -> None:
        """Checks that the server still holds everything that it once confirmed."""
        self._publisher.confirm()
        self._note_absence()

    def halt(self, error: TransactionError) -> None:
        """Ends the run with an error, or with its cause if the run has lost the topology.

        A committer that reads state is the first to notice that the state was dropped or belongs to a newer run, and
        can only fail.

        Raises:
            TransactionError: always.
        """
        if isinstance(error, (StateRefusedError, ReplayLimitError)):
            try:
                self._publisher.confirm()
            except TransactionError as lost:
                raise lost from error
        raise error

    def _note_absence(self) -> None:
        if self._server_watch is not None:
            self._statistics.server_away_count = self._server_watch.away_count
            self._statistics.server_away_s = self._server_watch.away_s
