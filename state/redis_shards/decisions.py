"""The last decisions of home, which every shard keeps: what home takes back from them, and what a shard has missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state.codec import pack, unpack
from state.redis_shards.shard import ShardStanding


@dataclass(frozen=True, slots=True)
class Decision:
    """The call by which home decides a group, as it is kept by the shards.

    Attributes:
        chain: of the group.
        last_txid: of the group.
        keys, arguments: of the call, but for its owner's.
        puts, forgets: the metadata that it changes, packed.
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


def decided_after(standing: ShardStanding, decisions: Sequence[Decision]) -> list[Decision]:
    """Returns the decisions that a shard has not applied, [] if it has another history than these.

    So has a shard that lacks one before the first: what was decided longer ago than is kept, or what was imported.
    """
    applied = [each for each in decisions if each.last_txid <= standing.committed]
    if applied:
        is_known = (applied[-1].last_txid, applied[-1].chain) == (standing.committed, standing.chain)
    else:
        is_known = not standing.chain and [each.first_txid for each in decisions[:1]] == [standing.committed + 1]
    return list(decisions[len(applied) :]) if is_known else []
