"""How far the partitions of a spout were read, as its coordinator may look it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class PartitionPositions(Protocol):
    """How far the partitions of a spout were cut; a live view, for the spout's coordinator on the driver."""

    def by_partition(self) -> Mapping[int, Any]:
        """Partition -> what its emitter returned last, committed or not; partitions never read are left out."""

    def pending(self) -> int:
        """Transactions started that are not in `by_partition` yet: they read on from there."""
