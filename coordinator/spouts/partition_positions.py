"""How far the partitions of a spout were read, for its coordinator to look up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class PartitionPositions(Protocol):
    """How far the partitions of a spout were cut; a live view, for the spout's coordinator on the driver."""

    def by_partition(self) -> Mapping[int, Any]:
        """Returns partition -> what its emitter returned last, committed or not, for partitions that were read."""

    def pending(self) -> int:
        """Returns the number of transactions started but not in `by_partition` yet: they will read further."""
