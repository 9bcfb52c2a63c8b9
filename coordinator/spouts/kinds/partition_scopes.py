"""The scope under which a partition's metadata is stored."""

from __future__ import annotations

import re

_SCOPE = re.compile(r"partition\.(0|[1-9][0-9]*)")


def partition_scope(partition: int) -> str:
    """Scope of a partition's rotating state in the stored metadata."""
    return f"partition.{partition}"


def partition_of(scope: str) -> int:
    """Inverse of `partition_scope`."""
    return int(scope.removeprefix("partition."))


def is_partition_scope(scope: str) -> bool:
    """Whether `partition_scope` returns this for some partition."""
    return _SCOPE.fullmatch(scope) is not None
