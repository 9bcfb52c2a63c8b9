"""A topology as it is shown, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from state.commits.dead_letters import DeadLetter
from state.records.durability import ServerDurability
from state.records.run_pulse import RunPulse, Standing, standing_of
from state.records.transaction_history import Receipt
from state.records.transaction_story import TransactionStory


@dataclass(frozen=True, slots=True)
class FoundTopology:
    """What earlier runs left of a topology, as `RedisStore.look` finds it and `RedisStore.acquire` takes it over.

    Attributes:
        committed_txid: last committed transaction, 0 at first.
        source_fingerprint: of the input of its last run.
        topology: its description as of its last run.
        metadata: stored metadata field -> value.
    """

    committed_txid: int
    source_fingerprint: str
    topology: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListedTopology:
    """A topology that a server holds.

    Attributes:
        committed: last committed txid as stored, "" if it cannot be read.
        pulse: what the run that owns it has reported, None if it reports nothing.
        connected: its runs that are connected, as far as the server says.
        fault: why it cannot be read, "" if it can.
    """

    topology_id: str
    committed: str = ""
    fence: str = ""
    is_dropping: bool = False
    pulse: RunPulse | None = None
    connected: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class TopologyOverview:
    """A topology at one look, for `txbatch status` and a dashboard.

    Attributes:
        at: when it was looked at, seconds since the epoch.
        topology: its description as of its last run.
        source_fingerprint: of its input.
        last_receipt: of the last committed transaction, None if there is none.
        durable: level -> last txid that a server is known to have confirmed at it; only levels that a run has asked
            for. The receipt of every txid up to there stands at that level.
        history_from: the lowest txid that may have a record; None if no commit has made one.
        pulse: what the run that owns it has reported, with samples if asked for; None if it reports nothing.
        connected: its runs that are connected, as far as the server says.
        gives: what the server does for its data as it is set now.
    """

    topology_id: str
    at: float
    committed_txid: int = 0
    generation: str = ""
    fence: str = ""
    topology: str = ""
    source_fingerprint: str = ""
    metadata_count: int = 0
    quarantined_count: int = 0
    last_receipt: Receipt | None = None
    is_dropping: bool = False
    durable: dict[str, int] = field(default_factory=dict)
    history_from: int | None = None
    dead_letters: int = 0
    pulse: RunPulse | None = None
    connected: int = 0
    gives: ServerDurability = field(default_factory=ServerDurability)

    @property
    def standing(self) -> Standing:
        """What to conclude about its last run."""
        return standing_of(self.pulse, now=self.at, connected=self.connected)


@dataclass(frozen=True, slots=True)
class BriefTransaction:
    """A committed transaction as a list shows it; None is what is not kept, or was never reported."""

    txid: int
    receipt: Receipt | None = None
    story: TransactionStory | None = None


@dataclass(frozen=True, slots=True)
class TransactionPage:
    """Some committed transactions, the newest first.

    Attributes:
        first_kept: the lowest txid with a stored record, at most one above the last committed.
        next_before: where the next page begins: below this txid; None if nothing older is kept.
    """

    committed_txid: int
    first_kept: int
    rows: tuple[BriefTransaction, ...] = ()
    next_before: int | None = None


@dataclass(frozen=True, slots=True)
class LettersShown:
    """Some of all stored dead letters, the newest transactions first, after `offset` newer ones."""

    stored_count: int
    letters: tuple[DeadLetter, ...] = ()
    offset: int = 0
