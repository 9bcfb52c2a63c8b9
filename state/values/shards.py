"""Which shard of a topology holds what. Pure.

A hash, a set and a sorted set are spread by their fields, so each shard holds a share of every one. What cannot be
taken apart (a value, a list, a stream, a HyperLogLog) lies on one shard, chosen by its name; with parts, by the name of
the part. The CRC-32 of a field as it is stored tells its shard, so a program in any language finds it.
"""

from __future__ import annotations

from zlib import crc32

from state.values.state_kind import Field, StateKind

SHARDS_MAX = 256
SPREAD_KINDS = frozenset({StateKind.HASH, StateKind.SET, StateKind.SORTED_SET})


def shard_of(name: str, kind: StateKind, field: Field, shard_count: int) -> int:
    """Returns the number of the shard that holds a field or a member of a state, or the whole state.

    Args:
        name: of the state, or of one part of it as `member_name` spells it.
        kind: of the state.
        field: ignored where the state lies on one shard.
        shard_count: how many shards the topology has.
    """
    placed = name if kind not in SPREAD_KINDS else str(field) if isinstance(field, int) else field
    return crc32(placed.encode() if isinstance(placed, str) else placed) % shard_count
