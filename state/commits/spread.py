"""Which shard of a topology holds what. Pure.

A hash, a set and a sorted set are spread by their fields, so each shard holds a share of every one. What cannot be
taken apart (a value, a list, a stream, a HyperLogLog) lies on one shard, chosen by its name; with parts, by the name of
the part. The CRC-32 of a field as it is stored tells its shard, so a program in any language finds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from zlib import crc32

from state.commits.packed_writes import PackedWrites, increment_blocks, unpacked
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
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


def split(write_set: WriteSet, shard_count: int) -> list[WriteSet]:
    """Returns what each shard is to write of the changes to states; called by the driver, once a group."""
    parts = [WriteSet() for _ in range(shard_count)]
    for name, writes in write_set.states.items():
        if isinstance(writes, PackedWrites):
            _split_packed(parts, name, writes)
        elif writes.kind not in SPREAD_KINDS:
            parts[shard_of(name, writes.kind, "", shard_count)].states[name] = writes
        else:
            _split_fields(parts, name, writes)
    return parts


def _split_packed(parts: list[WriteSet], name: str, writes: PackedWrites) -> None:
    for part, increments in zip(parts, _by_shard(writes.items(), name, writes.kind, len(parts)), strict=True):
        if increments:
            part.states[name] = PackedWrites(increment_blocks(increments), writes.reach, writes.retention)


def _split_fields(parts: list[WriteSet], name: str, writes: StateWrites) -> None:
    """Gives each shard the changes to its fields; what no shard has anything of, none is given."""
    own = unpacked(writes).settled()
    fields = ("puts", "increments", "deletes", "overwritten", "expiries")
    shares = [_by_shard(getattr(own, each).items(), name, own.kind, len(parts)) for each in fields]
    for part, share in zip(parts, zip(*shares, strict=True), strict=True):
        if any(share):
            changes: dict[str, Any] = dict(zip(fields, share, strict=True))
            part.states[name] = replace(own, **changes)


def _by_shard(
    items: Iterable[tuple[Field, Any]], name: str, kind: StateKind, shard_count: int
) -> list[dict[Field, Any]]:
    shares: list[dict[Field, Any]] = [{} for _ in range(shard_count)]
    for field, value in items:
        shares[shard_of(name, kind, field, shard_count)][field] = value
    return shares
