"""Carries out what the machine decides about the store, and watches its server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from coordinator.log_fields import fields
from coordinator.transactional.machine.run_events import (
    AskBarrier,
    BarrierConfirmed,
    Publish,
    Published,
    Refused,
    StoreMetadata,
)
from coordinator.transactional.publisher import Publisher, RefusedGroup
from coordinator.transactional.record_stamps import RecordStamps
from coordinator.transactional.run_summary import RunStatistics
from state.attempt import TransactionAttempt
from state.errors import ProtocolError, ReplayLimitError, StateRefusedError, TransactionError
from state.printable import counted
from state.redis_server.watch import ServerWatch

_LOG = logging.getLogger("txbatch")


class Barriers(Protocol):
    """The part of `RedisStore` that confirms how durable commits are.

    Attributes:
        unreachable_timeout_s: how long a run may have nothing to do but wait for a confirmation.
    """

    unreachable_timeout_s: float

    def ask_barrier(self, confirmed_txid: int) -> None:
        """Asks whether everything written so far is as durable as the run has asked."""

    def barrier_answer(self, timeout_s: float = 0.0) -> bool:
        """Returns whether that is confirmed by now, after at most `timeout_s`."""

    def note_durable(self, confirmed_txid: int) -> None:
        """Stores the last txid that is known to be."""


class StoreSide:
    """The store of one run.

    Args:
        publisher: stores and commits, as the owner of the topology.
        clock: seconds, monotonic.
        on_committed: called with the attempts of a group once they are durable.
        statistics: takes down how long the server was away.
        stamps: makes the record of a batch that is quarantined.
        server_watch: checks the server during the run.
        barriers: confirms how durable commits are; None if the run waits for nothing.
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
        barriers: Barriers | None = None,
    ) -> None:
        self._publisher = publisher
        self._clock = clock
        self._on_committed = on_committed
        self._statistics = statistics
        self._stamps = stamps
        self._server_watch = server_watch
        self._barriers = barriers
        self._barrier: AskBarrier | None = None

    def look(self) -> None:
        """Checks the server if that is due.

        Raises:
            StateRefusedError: the server can no longer be used.
        """
        if self._server_watch is not None:
            self._server_watch.look()
            self._note_absence()

    def write(self, decision: StoreMetadata | AskBarrier) -> None:
        """Stores metadata, before anything that depends on it, or makes the write that a barrier waits for."""
        match decision:
            case StoreMetadata(entries):
                self._publisher.store_metadata(entries)
            case AskBarrier(confirmed_txid=confirmed_txid):
                if self._barriers is None:
                    raise ProtocolError("a barrier was asked for in a run that waits for nothing")
                self._barriers.ask_barrier(confirmed_txid)
                self._barrier = decision

    def publish(self, publish: Publish) -> Published | Refused:
        """Commits a group in one atomic step."""
        poison, replay = publish.poison, publish.replay
        try:
            byte_count = self._publisher.commit(
                publish.attempts,
                publish.write_set,
                publish.metadata,
                told_txid=publish.told_txid,
                set_aside=None if poison is None else self._stamps.set_aside(poison),
                replayed_txid=None if replay is None or replay.letters else replay.txid,
            )
        except RefusedGroup as refusal:
            return Refused(refusal.error)
        if poison is not None:
            cause = poison.cause
            about = fields(publish.attempts[0], component=cause.component_id or None, reason=cause.reason)
            _LOG.warning("txid %d is quarantined: %s", poison.txid, cause.reason, extra=about)
        if replay is not None:
            attempt = publish.attempts[0]
            count = len(replay.letters)
            what = f"{counted(count, 'dead letter')} replayed" if count else f"quarantined txid {replay.txid} replayed"
            _LOG.info("%s as txid %d", what, attempt.txid, extra=fields(attempt))
        self._on_committed(publish.attempts)
        return Published(self._clock(), byte_count)

    @property
    def awaits_barrier(self) -> bool:
        """Whether a barrier is out."""
        return self._barrier is not None

    def barrier_answer(self, timeout_s: float = 0.0) -> BarrierConfirmed | None:
        """Returns the answer to the barrier that is out; None if there is none after at most `timeout_s`."""
        barrier = self._barrier
        if barrier is None or self._barriers is None or not self._barriers.barrier_answer(timeout_s):
            return None
        self._barrier = None
        return BarrierConfirmed(barrier.up_to_txid, self._clock())

    def confirm(self) -> None:
        """Checks that the server still holds everything that it once confirmed."""
        self._publisher.confirm()
        self._note_absence()

    def finish(self) -> None:
        """Checks the server once more, and notes there how durable everything is; called when the run is done."""
        self.confirm()
        if self._barriers is not None and self._statistics.released_txid:
            self._barriers.note_durable(self._statistics.released_txid)

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
