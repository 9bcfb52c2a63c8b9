"""What an emitter has cut of one partition, linked to what it was cut from, and the scope under which it is stored.

The batches of one partition are a chain: each begins where the one below it ends. Within a wave the emitter is the
only one that knows the chain, and its task may be executed twice with different results. So each cut names what it
began from, and the run accepts it only if that is where the batch below, as it was accepted, has ended.

Source: found by simulation; two ackers that read two executions of one emitter task let a row pass twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from state.codec import digest64, pack

UNCHAINED = -1
"""In place of a link: what is stored with a batch and follows from none before it; no link is negative."""
_SCOPE = re.compile(r"partition\.(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class PartitionCut:
    """One partition's part of a batch.

    Attributes:
        began_from: `link_to` what the emitter was given as `last`.
        metadata: what the next batch of the partition is cut from; plain data.
    """

    began_from: int
    metadata: Any


def link_to(last: Any) -> int:
    """Returns a digest of what a batch begins from; None before the first one."""
    return digest64(pack(last))


def partition_scope(partition: int) -> str:
    return f"partition.{partition}"


def partition_of(scope: str) -> int:
    """Returns the partition that a scope is of."""
    return int(scope.removeprefix("partition."))


def is_partition_scope(scope: str) -> bool:
    return _SCOPE.fullmatch(scope) is not None
