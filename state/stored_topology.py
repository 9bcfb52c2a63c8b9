"""What the server holds of a topology, as values: what an owner takes over, and what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Acquired:
    """What a coordinator owns after `RedisStore.acquire`, and where it goes on.

    Attributes:
        committed_txid: last committed transaction, 0 at first.
        metadata: stored metadata field -> value.
    """

    committed_txid: int
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FoundTopology:
    """What earlier runs have left of a topology, as `RedisStore.look` finds it.

    Attributes:
        committed_txid: last committed transaction.
        source_fingerprint: of the input it was last run on.
        topology: how the topology was described.
        metadata: stored metadata field -> value.
    """

    committed_txid: int
    source_fingerprint: str
    topology: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """What is stored about a topology, for ``txbatch status``."""

    topology_id: str
    committed_txid: int
    generation: str
    fence: str
    topology: str
    source_fingerprint: str
    metadata_count: int
    last_receipt: Receipt | None
    is_dropping: bool
