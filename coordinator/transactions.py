"""The coordinator's state machine: which txids are tried, and in which order they commit.

Pure: events in, decisions out. It draws no ids and reads no clock; new attempt ids come from a
parameter, and the spout's coordinator is asked through `TransactionSource`. Txids stand in a window
``currtx .. currtx + max_spout_pending - 1``; ``currtx`` is the lowest one not committed.

Whatever concerns an attempt that is not current is ignored before anything is touched: a late report
of a cancelled attempt must not remove the current one.

Source: backtype.storm.transactional.TransactionalSpoutCoordinator. Differs from Storm: commits go by
groups; an attempt whose commit was sent is never failed; `is_ready` stops at the first no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Protocol

from state import FailedException, ProtocolError, TransactionAttempt


class Phase(StrEnum):
    """Which phase of an attempt an ack or fail speaks of."""

    PROCESSING = "processing"
    COMMIT = "commit"


class AttemptStatus(Enum):
    """Where an active attempt stands."""

    PROCESSING = "processing"
    PROCESSED = "processed"
    COMMITTING = "committing"
    """Its commit phase runs; nothing has been sent to the store."""
    PUBLISHING = "publishing"
    """Its commit was sent; only the answer ends this."""


class TransactionSource(Protocol):
    """The part of the spout's coordinator that cuts transactions."""

    def is_ready(self) -> bool:
        """Whether a further transaction may be cut."""

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        """Cuts a transaction; `previous` is the metadata of the one before."""


@dataclass(frozen=True, slots=True)
class StartCommit:
    """Begin the commit phase of these attempts, in order."""

    attempts: tuple[TransactionAttempt, ...]


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Store this metadata, by txid, before any attempt that follows is emitted."""

    entries: Mapping[int, Any]


@dataclass(frozen=True, slots=True)
class EmitBatch:
    """Begin the processing phase of an attempt."""

    attempt: TransactionAttempt
    metadata: Any


Decision = StartCommit | StoreMetadata | EmitBatch


@dataclass(slots=True)
class _Active:
    attempt: TransactionAttempt
    status: AttemptStatus = AttemptStatus.PROCESSING
    wave: int = 0


class TransactionCoordinator:
    """The state machine of one run.

    Args:
        currtx: lowest uncommitted txid.
        metadata: stored metadata by txid, from ``currtx - 1`` on.
        max_spout_pending: width of the window.
        commit_group_max: most transactions of one commit.
        new_attempt_id: draws an attempt id.
        is_opaque: every attempt is initialised anew, and nothing of it is stored before it is emitted.
    """

    def __init__(
        self,
        *,
        currtx: int,
        metadata: Mapping[int, Any],
        max_spout_pending: int,
        commit_group_max: int,
        new_attempt_id: Callable[[], int],
        is_opaque: bool = False,
    ) -> None:
        self.currtx = currtx
        self._metadata = dict(metadata)
        self._window = max_spout_pending
        self._group_max = commit_group_max
        self._new_attempt_id = new_attempt_id
        self._is_opaque = is_opaque
        self._active: dict[int, _Active] = {}
        self._halt_before: int | None = None

    def sync(self, source: TransactionSource, *, commit_limit: int | None = None) -> list[Decision]:
        """What to do now: at most one group to commit, then batches for every missing txid of the window.

        Args:
            source: asked for txids never seen before.
            commit_limit: a lower bound than the group maximum for this time.
        """
        decisions: list[Decision] = []
        group = self._next_group(min(self._group_max, commit_limit or self._group_max))
        if group:
            decisions.append(StartCommit(group))
        fresh: dict[int, Any] = {}
        batches: list[EmitBatch] = []
        for txid in range(self.currtx, self._window_end()):
            if txid in self._active:
                continue
            if (self._is_opaque or txid not in self._metadata) and not self._cut(txid, source, fresh):
                break
            attempt = TransactionAttempt(txid, self._new_attempt_id())
            self._active[txid] = _Active(attempt)
            batches.append(EmitBatch(attempt, self._metadata[txid]))
        if fresh and not self._is_opaque:
            decisions.append(StoreMetadata(fresh))
        return [*decisions, *batches]

    def ack(self, attempt: TransactionAttempt, phase: Phase, *, wave: int = 0) -> bool:
        """A phase of an attempt has ended well; returns False, touching nothing, if it is not current.

        Args:
            attempt: the attempt.
            phase: PROCESSING makes it wait for its turn; COMMIT ends it and moves ``currtx``.
            wave: the wave that processed it; a group stays within one wave.
        """
        active = self._current(attempt, phase)
        if active is None:
            return False
        if phase is Phase.PROCESSING:
            active.status = AttemptStatus.PROCESSED
            active.wave = wave
            return True
        if attempt.txid != self.currtx:
            raise ProtocolError(f"attempt {attempt} committed while txid {self.currtx} is next")
        del self._active[attempt.txid]
        self.currtx = attempt.txid + 1
        for txid in self.forgettable(attempt.txid):
            del self._metadata[txid]
        return True

    def fail(self, attempt: TransactionAttempt, phase: Phase) -> list[TransactionAttempt]:
        """A phase of an attempt has failed: it and all later ones are dropped, to be emitted anew.

        Returns:
            The attempts dropped, ascending; none, touching nothing, if the attempt is not current.
        """
        active = self._current(attempt, phase)
        if active is None or active.status is AttemptStatus.PUBLISHING:
            return []
        dropped = sorted(txid for txid in self._active if txid >= attempt.txid)
        return [self._active.pop(txid).attempt for txid in dropped]

    def publish(self, attempts: tuple[TransactionAttempt, ...]) -> None:
        """The commit of these attempts, a prefix of the committing group, is being sent.

        Raises:
            ProtocolError: they are not the ones whose turn it is.
        """
        expected = range(self.currtx, self.currtx + len(attempts))
        if [attempt.txid for attempt in attempts] != list(expected):
            raise ProtocolError(f"attempts {[str(a) for a in attempts]} do not start at txid {self.currtx}")
        for attempt in attempts:
            active = self._current(attempt, Phase.COMMIT)
            if active is None:
                raise ProtocolError(f"attempt {attempt} is to be published but is not committing")
            active.status = AttemptStatus.PUBLISHING

    def defer(self, attempts: tuple[TransactionAttempt, ...]) -> None:
        """These attempts of the committing group wait for the next one; they stay processed.

        Also called for attempts whose commit the store has refused, changing nothing.
        """
        for attempt in attempts:
            active = self._current(attempt, Phase.COMMIT)
            if active is not None:
                active.status = AttemptStatus.PROCESSED

    def halt_before(self, txid: int) -> None:
        """No attempt at `txid` or above is made any more; lower ones go on to their commit."""
        self._halt_before = txid if self._halt_before is None else min(txid, self._halt_before)

    def halted(self) -> bool:
        """Whether everything below the halt is committed."""
        return self._halt_before is not None and self.currtx >= self._halt_before

    def is_idle(self) -> bool:
        """Whether no attempt is active."""
        return not self._active

    def is_current(self, attempt: TransactionAttempt) -> bool:
        """Whether an attempt is the active one of its txid."""
        active = self._active.get(attempt.txid)
        return active is not None and active.attempt == attempt

    def last_metadata(self) -> Any:
        """Metadata of the highest txid cut so far, None before the first."""
        return self._metadata[max(self._metadata)] if self._metadata else None

    def last_txid(self) -> int:
        """The highest txid cut so far, or the last committed one."""
        return max(self._metadata, default=self.currtx - 1)

    def forgettable(self, committed_txid: int) -> list[int]:
        """Txids whose metadata is no longer needed; the last committed one's is, to cut the next."""
        return [txid for txid in self._metadata if txid < committed_txid]

    def _cut(self, txid: int, source: TransactionSource, fresh: dict[int, Any]) -> bool:
        """Has a never-seen txid cut, or another attempt of an opaque one; False when the source has nothing now."""
        try:
            if txid not in self._metadata and not source.is_ready():
                return False
            if txid > 1 and txid - 1 not in self._metadata and not self._is_opaque:
                raise ProtocolError(f"txid {txid} was to be cut without the metadata of txid {txid - 1}")
            self._metadata[txid] = fresh[txid] = source.initialize_transaction(txid, self._metadata.get(txid - 1))
        except FailedException:
            return False  # asked again at the next sync
        return True

    def _window_end(self) -> int:
        end = self.currtx + self._window
        return end if self._halt_before is None else min(end, self._halt_before)

    def _next_group(self, limit: int) -> tuple[TransactionAttempt, ...]:
        """The run of processed attempts from currtx, within one wave; none while one is committing."""
        group: list[_Active] = []
        for txid in range(self.currtx, self.currtx + limit):
            active = self._active.get(txid)
            if active is None or active.status is not AttemptStatus.PROCESSED:
                break
            if group and active.wave != group[0].wave:
                break
            group.append(active)
        for active in group:
            active.status = AttemptStatus.COMMITTING
        return tuple(active.attempt for active in group)

    def _current(self, attempt: TransactionAttempt, phase: Phase) -> _Active | None:
        active = self._active.get(attempt.txid)
        if active is None or active.attempt != attempt:
            return None
        processing = active.status in (AttemptStatus.PROCESSING, AttemptStatus.PROCESSED)
        if phase is Phase.PROCESSING:
            return active if processing else None
        return None if processing else active
