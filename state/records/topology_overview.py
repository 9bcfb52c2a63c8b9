"""A topology as displays show it, as values. Pure."""

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
    """The records of earlier runs of a topology, as `RedisStore.look` and `RedisStore.acquire` return them.

    Attributes:
        committed_txid: last committed transaction, 0 before the first.
        source_fingerprint: fingerprint of its last run's input.
        topology: its description in its last run.
        metadata: stored metadata field -> value.
    """

    committed_txid: int
    source_fingerprint: str
    topology: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListedTopology:
    """A topology on a server, in a list.

    Attributes:
        committed: last committed txid as stored, "" if it is unreadable.
        pulse: the pulse of the run that owns it, None without one.
        connected: how many of its runs are connected, as far as the server reports.
        fault: why its records are unreadable, "" if they are not.
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
    """A topology at one moment, for `txbatch status` and a dashboard.

    Attributes:
        at: when it was read, seconds since the epoch.
        topology: its description in its last run.
        source_fingerprint: fingerprint of its input.
        last_receipt: receipt of the last committed transaction, None if there is none.
        durable: level -> last txid known to be confirmed at it; only levels that a run has asked for. All lower txids
            are confirmed too.
        history_from: the lowest txid that may have a record; None if no commit has made one.
        pulse: the pulse of the run that owns it, with samples if asked for; None without one.
        connected: how many of its runs are connected, as far as the server reports.
        gives: the server's durability with its current settings.
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
        """The conclusion about its last run."""
        return standing_of(self.pulse, now=self.at, connected=self.connected)


@dataclass(frozen=True, slots=True)
class BriefTransaction:
    """A committed transaction in a list; None stands for a record that is not kept, or a story never reported."""

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
    """A page of the stored dead letters, the newest transactions first, after `offset` newer letters."""

    stored_count: int
    letters: tuple[DeadLetter, ...] = ()
    offset: int = 0
