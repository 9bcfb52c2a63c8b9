"""What an emitter has cut of one partition, linked to what it was cut from, and the scope under which it is stored.

The batches of one partition are a chain: each begins where the one below it ends. Within a wave the emitter is the
only one that knows the chain, and its task may be executed twice with different results. So each cut names what it
began from, and the run accepts it only if that is where the batch below, as it was accepted, has ended.

Source: found by simulation; two ackers that read two executions of one emitter task let a row pass twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from state.codec import digest64, pack

UNCHAINED = -1
"""In place of a link: what is stored with a batch and follows from none before it; no link is negative."""
_SCOPE = re.compile(r"partition\.([^0-9].*\.)?(0|[1-9][0-9]*)")


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


def partition_scope(partition: int | str) -> str:
    """Returns the scope of a partition, which is a number, or `of_source` if the spout has several sources."""
    return f"partition.{partition}"


def partition_of(scope: str) -> Any:
    """Returns the partition that a scope is of."""
    partition = scope.removeprefix("partition.")
    return int(partition) if partition.isdecimal() else partition


def of_source(source: str, partition: int) -> str:
    """Returns a partition of one of several sources."""
    return f"{source}.{partition}"


def source_of(partition: str) -> tuple[str, int]:
    """Returns the source, and which of its partitions it is; the inverse of `of_source`."""
    source, _, number = partition.rpartition(".")
    return source, int(number)


def positions_of(source: str, positions: Mapping[Any, Any]) -> dict[int, Any]:
    """Returns partition -> position of one of several sources; those of a spout with a single source have numbers."""
    found = {source_of(each): position for each, position in positions.items() if isinstance(each, str)}
    return {number: position for (name, number), position in found.items() if name == source}


def is_partition_scope(scope: str) -> bool:
    return _SCOPE.fullmatch(scope) is not None
