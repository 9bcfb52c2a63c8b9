"""Imports exported state into a topology that has, or had, many slots: shards first, then home.

Each slot changes in one step. An import that ends between two steps leaves shards and home with different generations;
the next run refuses them by name, and repeating the import repairs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from state.keys import RESERVED_NAME
from state.records.stored_records import Entries, StoredPiece
from state.redis_admin.importing import AsOf, RedisImport
from state.redis_client.function_library import SHARDED_FORMAT
from state.values.shards import SPREAD_KINDS, shard_of

SHARDS_LEFT = "shards_left"
"""Field of home's control hash: the number of shards before an import into fewer, which may be unfinished."""


class ShardedImport:
    """One import into a topology that has, or had, many slots (driver); used like a `RedisImport`.

    Args:
        home: imports into the topology's own slot.
        shards: import into the topology's new shards; none if its state will be at home.
        had: how many shards the topology had.
        drop_others: called at the end; drops surplus shards.
    """

    def __init__(
        self, home: RedisImport, shards: Sequence[RedisImport], had: int, drop_others: Callable[[], int]
    ) -> None:
        self._home, self._shards, self._had, self._drop_others = home, tuple(shards), had, drop_others

    @property
    def left(self) -> tuple[str, ...]:
        """The keys below the topology's tags that are not its own, sorted; see `RedisImport`."""
        return tuple(sorted(key for each in (self._home, *self._shards) for key in each.left))

    def existing(self) -> list[str]:
        """Returns the keys that the topology owns, without leftovers of an unfinished import."""
        return [key for each in (self._home, *self._shards) for key in each.existing()]

    def begin(self) -> None:
        """Deletes the leftovers of unfinished imports, and begins this one; raises as `RedisImport.refuse_taken`."""
        for each in (self._home, *self._shards):
            each.refuse_taken()
        for each in (self._home, *self._shards):
            each.begin()

    def stage(self, piece: StoredPiece) -> None:
        """Stages entries at home or on their shards."""
        if piece.name.startswith(f"{RESERVED_NAME}:") or not self._shards:
            self._home.stage(piece)
        elif piece.kind not in SPREAD_KINDS:
            self._shards[shard_of(piece.name, piece.kind, "", len(self._shards))].stage(piece)
        else:
            self._stage_spread(piece)

    def _stage_spread(self, piece: StoredPiece) -> None:
        shares: list[Entries] = [[] for _ in self._shards]
        for field, value in piece.entries:
            shares[shard_of(piece.name, piece.kind, field, len(shares))].append((field, value))
        for entries, shard in zip(shares, self._shards, strict=True):
            if entries:
                expiries = {field: piece.expiries[field] for field, _ in entries if field in piece.expiries}
                shard.stage(replace(piece, entries=entries, expiries=expiries))

    def restore(self, control: Mapping[str, str], *, generation: str, replaces: bool, as_of: AsOf | None = None) -> int:
        """Puts everything staged into place; see `RedisImport.restore`."""
        assert as_of is None, "each slot changes by itself"
        of_shard = {name: control[name] for name in ("committed", "topology")}
        of_shard |= {"chain": "", "format": SHARDED_FORMAT}
        replaced = sum(each.restore(of_shard, generation=generation, replaces=replaces) for each in self._shards)
        left = {SHARDS_LEFT: str(self._had)} if self._had > len(self._shards) else {}
        left |= {"format": SHARDED_FORMAT} if self._shards else {}
        replaced += self._home.restore({**control, **left}, generation=generation, replaces=replaces)
        return replaced + self._drop_others()
