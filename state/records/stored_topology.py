"""What the server holds about a topology, as values: for its next owner and for display."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from state.records.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Acquired:
    """What a coordinator owns after `RedisStore.acquire`, and where it continues.

    Attributes:
        committed_txid: last committed transaction, 0 at first.
        metadata: stored metadata field -> value.
    """

    committed_txid: int
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FoundTopology:
    """What earlier runs left of a topology, as `RedisStore.look` finds it.

    Attributes:
        committed_txid: last committed transaction.
        source_fingerprint: of the input of its last run.
        topology: its description as of its last run.
        metadata: stored metadata field -> value.
    """

    committed_txid: int
    source_fingerprint: str
    topology: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """What ``txbatch status`` shows of a topology.

    Attributes:
        durable: level -> last txid that a server is known to have confirmed at it; only levels that a run has asked
            for. The receipt of every txid up to there stands at that level.
    """

    topology_id: str
    committed_txid: int
    generation: str
    fence: str
    topology: str
    source_fingerprint: str
    metadata_count: int
    quarantined_count: int
    last_receipt: Receipt | None
    is_dropping: bool
    durable: dict[str, int] = field(default_factory=dict)
