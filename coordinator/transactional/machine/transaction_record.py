"""The record of a transaction in a run, and the states of its current attempt. Pure.

One record per txid holds everything: its metadata, its failure count, the current attempt with its state and the
ackers' result, and a short story of its transitions. Because an attempt is kept in one place, one step forgets it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.machine.republication import Republication
from state.attempt import TransactionAttempt
from state.errors import ProtocolError

STORY_LENGTH = 20
"""Most transitions that the story of a transaction keeps, over all its attempts."""


class AttemptState(Enum):
    """The state of an attempt."""

    __hash__ = object.__hash__  # Enum's is a function in Python, and every transition is looked up in a table

    WAITING = "waiting"
    """Issued; the next wave with room takes it."""
    PROCESSING = "processing"
    """Its wave is running."""
    PROCESSED = "processed"
    """Its tree has closed; it waits for its turn to commit."""
    COMMITTING = "committing"
    """Its commit phase runs; nothing was sent to the store yet."""
    PUBLISHING = "publishing"
    """Its commit was sent; only the answer ends this."""
    SETTING_ASIDE = "setting aside"
    """Its batch is poison, and an empty commit was sent in its place; only the answer ends this."""
    COMMITTED = "committed"
    DROPPED = "dropped"
    """Void, because it or a lower one failed. Whatever still arrives for it is ignored."""


_S = AttemptState
TRANSITIONS: frozenset[tuple[AttemptState, AttemptState]] = frozenset(
    {
        (_S.WAITING, _S.PROCESSING),  # a wave took it
        (_S.PROCESSING, _S.PROCESSED),  # its tree has closed
        (_S.PROCESSED, _S.COMMITTING),  # it is among the consecutive processed attempts from currtx
        (_S.COMMITTING, _S.PROCESSED),  # the group was cut before it
        (_S.COMMITTING, _S.PUBLISHING),  # it is in the good prefix
        (_S.PUBLISHING, _S.PROCESSED),  # the store refused the group and changed nothing
        (_S.PUBLISHING, _S.COMMITTED),
        (_S.WAITING, _S.SETTING_ASIDE),  # no wave takes it
        (_S.SETTING_ASIDE, _S.WAITING),  # the store refused and changed nothing
        (_S.SETTING_ASIDE, _S.COMMITTED),
        (_S.WAITING, _S.DROPPED),
        (_S.PROCESSING, _S.DROPPED),
        (_S.PROCESSED, _S.DROPPED),
        (_S.COMMITTING, _S.DROPPED),  # but not from PUBLISHING or SETTING_ASIDE: a commit sent is not given up
    }
)


@dataclass(slots=True)
class ActiveAttempt:
    """The current attempt of a transaction.

    Attributes:
        attempt: the txid and attempt id.
        state: the attempt's state.
        wave_id: the wave that took it; 0 while it waits, or is set aside.
        outcome: the ackers' result, once the tree has closed.
    """

    attempt: TransactionAttempt
    state: AttemptState = AttemptState.WAITING
    wave_id: int = 0
    outcome: AttemptResult | None = None


@dataclass(frozen=True, slots=True)
class EmittersCut:
    """The batch that the emitters of one attempt have cut.

    Attributes:
        positions: scope -> the stored metadata of each partition.
        began_from: scope -> link to the metadata from which the position was cut.
    """

    positions: Mapping[str, Any]
    began_from: Mapping[str, int]


@dataclass(slots=True)
class TransactionRecord:
    """One txid, from the moment it is cut until the next one is committed.

    Attributes:
        txid: the transaction's txid.
        metadata: the metadata that the spout's coordinator returned.
        byte_count: about how much input its batch reads; 0 if unknown.
        notes: name -> note for its commit to store.
        failure_count: how many of its attempts were themselves at fault.
        own_failure_count: how many of these failed because of the batch, not the engine or the server.
        retry_at_s: the next attempt is not issued before this time.
        cut: the batch that emitters cut for the last attempt that reported one.
        republished: the quarantined batch that it publishes; None for a batch that the spout has cut.
        current: its active attempt, if there is one.
        past: its last transitions, oldest first: attempt, state and reason; the state is None when just issued.
    """

    txid: int
    metadata: Any
    byte_count: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)
    failure_count: int = 0
    own_failure_count: int = 0
    retry_at_s: float = 0.0
    cut: EmittersCut | None = None
    republished: Republication | None = None
    current: ActiveAttempt | None = None
    past: deque[tuple[TransactionAttempt, AttemptState | None, str]] = field(
        default_factory=lambda: deque(maxlen=STORY_LENGTH)
    )

    def issue(self, attempt_id: int) -> TransactionAttempt:
        """Makes a new attempt the current one."""
        assert self.current is None, f"txid {self.txid} has an attempt"
        attempt = TransactionAttempt(self.txid, attempt_id)
        self.current = ActiveAttempt(attempt)
        self.past.append((attempt, None, ""))
        return attempt

    def move(self, state: AttemptState, reason: str = "") -> ActiveAttempt:
        """Changes the state of the current attempt; an attempt that has ended is no longer current.

        Returns:
            The record of the attempt.

        Raises:
            ProtocolError: the transition is not allowed.
        """
        record = self.current
        if record is None or (record.state, state) not in TRANSITIONS:
            before = "no attempt" if record is None else record.state.value
            raise ProtocolError(f"txid {self.txid} cannot go from {before} to {state.value}; {self.story_line()}")
        record.state = state
        self.past.append((record.attempt, state, reason))
        if state in (AttemptState.COMMITTED, AttemptState.DROPPED):
            self.current = None
        return record

    def story(self) -> list[str]:
        """Returns the last transitions in words, oldest first."""
        return [
            f"{attempt}: {'issued' if state is None else state.value}{': ' if reason else ''}{reason}"
            for attempt, state, reason in self.past
        ]

    def story_line(self) -> str:
        """Returns the story as one line."""
        return "story: " + ("; ".join(self.story()) or "nothing happened yet")
