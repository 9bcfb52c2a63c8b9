"""The scopes under which the metadata of partitions is stored."""

from __future__ import annotations

import re

_SCOPE = re.compile(r"partition\.(0|[1-9][0-9]*)")


def partition_scope(partition: int) -> str:
    """Returns the scope of a partition in the stored metadata."""
    return f"partition.{partition}"


def partition_of(scope: str) -> int:
    """Returns the partition of a scope; the inverse of `partition_scope`."""
    return int(scope.removeprefix("partition."))


def is_partition_scope(scope: str) -> bool:
    """Returns whether this is the scope of a partition."""
    return _SCOPE.fullmatch(scope) is not None
