"""Assigns states and fields to the shards of a topology. Pure.

Hashes, sets and sorted sets are spread by their fields, so each shard holds a share of every one. An indivisible state
(a value, a list, a stream, a HyperLogLog) is on one shard, chosen by its name, or by the part's name. The shard follows
from the CRC-32 of the stored field or name, so a program in any language can compute it.
"""

from __future__ import annotations

from zlib import crc32

from state.values.state_kind import Field, StateKind

SHARDS_MAX = 256
SPREAD_KINDS = frozenset({StateKind.HASH, StateKind.SET, StateKind.SORTED_SET})


def shard_of(name: str, kind: StateKind, field: Field, shard_count: int) -> int:
    """Returns the number of the shard that holds a field or a member of a state, or the whole state.

    Args:
        name: the name of the state, or of a part of it, see `member_name`.
        kind: the state's kind.
        field: the field or member; ignored if the whole state is on one shard.
        shard_count: how many shards the topology has.
    """
    placed = name if kind not in SPREAD_KINDS else str(field) if isinstance(field, int) else field
    return crc32(placed.encode() if isinstance(placed, str) else placed) % shard_count
