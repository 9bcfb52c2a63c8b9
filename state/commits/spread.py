"""Splits the changes of a group among the shards of a topology. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from state.commits.packed_writes import PackedWrites, increment_blocks
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.values.shards import SPREAD_KINDS, shard_of
from state.values.state_kind import Field, StateKind


def split(write_set: WriteSet, shard_count: int) -> list[WriteSet]:
    """Returns each shard's share of a group's changes to states; called by the driver, once per group."""
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
    """Gives each shard its blocks, by their places if commit tasks have packed them by shard."""
    if writes.places:
        shares = [PackedWrites([], writes.reach, writes.retention) for _ in parts]
        for place, block in zip(writes.places, writes.blocks, strict=True):
            shares[place].blocks.append(block)
    else:
        increments = _by_shard(writes.items(), name, writes.kind, len(parts))
        shares = [PackedWrites(increment_blocks(each), writes.reach, writes.retention) for each in increments]
    for part, share in zip(parts, shares, strict=True):
        if share.blocks:
            part.states[name] = share


def _split_fields(parts: list[WriteSet], name: str, writes: StateWrites) -> None:
    """Gives each shard the changes to its fields; a shard without changes gets no entry for the state."""
    own = writes.settled()
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
