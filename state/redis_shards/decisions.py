"""Home's last decisions, kept by every shard: home recovers lost ones from them, and shards find missed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state.codec import pack, unpack
from state.redis_shards.shard import ShardProgress


@dataclass(frozen=True, slots=True)
class Decision:
    """The call by which home decides a group, as the shards keep it.

    Attributes:
        chain: the group's chain.
        last_txid: the group's last txid.
        keys, arguments: the call's, without the owner's arguments.
        puts, forgets: the call's changes of metadata, packed.
    """

    chain: str
    last_txid: int
    keys: Sequence[str]
    arguments: Sequence[str | bytes]
    puts: Mapping[str, bytes]
    forgets: Sequence[str]

    @property
    def first_txid(self) -> int:
        return int(self.arguments[2])  # see `commit_arguments`

    def packed(self) -> bytes:
        return pack([self.chain, self.last_txid, list(self.keys), list(self.arguments), self.puts, list(self.forgets)])

    @classmethod
    def unpacked(cls, packed: bytes) -> Decision:
        return cls(*unpack(packed))


def decided_after(standing: ShardProgress, decisions: Sequence[Decision]) -> list[Decision]:
    """Returns the decisions that a shard has not applied, [] if the shard's history does not fit them.

    It does not fit if the shard also lacks a group before the first decision: one too old to be kept, or imported.
    """
    applied = [each for each in decisions if each.last_txid <= standing.committed]
    if applied:
        is_known = (applied[-1].last_txid, applied[-1].chain) == (standing.committed, standing.chain)
    else:
        is_known = not standing.chain and [each.first_txid for each in decisions[:1]] == [standing.committed + 1]
    return list(decisions[len(applied) :]) if is_known else []
