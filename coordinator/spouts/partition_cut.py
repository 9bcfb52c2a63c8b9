"""An emitter's cut of one partition, linked to the position it was cut from, and the scope under which it is stored.

The batches of one partition are a chain: each begins where the one below it ends. Within a wave only the emitter knows
the chain, and its task may be executed twice with different results. So each cut names its start, and the run accepts
it only if the accepted batch below has ended there.

Source: found by simulation; two ackers that read two executions of one emitter task let a row pass twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from state.codec import digest64, pack

UNCHAINED = -1
"""Replaces the link of metadata that does not follow from an earlier batch; real links are never negative."""
_SCOPE = re.compile(r"partition\.(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class PartitionCut:
    """One partition's part of a batch.

    Attributes:
        began_from: `link_to` the value that the emitter got as `last`.
        metadata: the value from which the partition's next batch is cut; plain data.
    """

    began_from: int
    metadata: Any


def link_to(last: Any) -> int:
    """Returns a digest of the metadata from which a batch begins, None before the first batch."""
    return digest64(pack(last))


def partition_scope(partition: int) -> str:
    return f"partition.{partition}"


def partition_of(scope: str) -> int:
    """Returns the partition of a scope."""
    return int(scope.removeprefix("partition."))


def is_partition_scope(scope: str) -> bool:
    return _SCOPE.fullmatch(scope) is not None
