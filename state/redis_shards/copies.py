"""Second copies of the last groups' parts, kept by shards on other servers.

A server that returns to an earlier state, such as a replica that lagged when it was promoted, may lose its part of a
group that was decided meanwhile. The shard with the copy gives the part back, so the failure of one server loses
nothing for good.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from state.codec import pack, unpack


@dataclass(frozen=True, slots=True)
class PartCopy:
    """A copy of a shard's part of a group, kept by another shard.

    Attributes:
        number: the number of the shard whose part it is.
        chain: the group's chain.
        keys, sections: see `ShardWrites`.
    """

    number: int
    chain: str
    keys: tuple[str, ...]
    sections: bytes

    @staticmethod
    def all_packed(copies: Sequence[PartCopy]) -> bytes:
        """Returns the packed copies of one group; empty without copies."""
        return pack([[each.number, each.chain, list(each.keys), each.sections] for each in copies]) if copies else b""

    @classmethod
    def all_unpacked(cls, packed: bytes) -> list[PartCopy]:
        return [cls(number, chain, tuple(keys), sections) for number, chain, keys, sections in unpack(packed)]


def copy_keepers(places: Sequence[Hashable]) -> list[list[int]]:
    """Returns for each shard the shards whose parts it keeps; a shard's keeper is on another server, if there is one.

    Args:
        places: the server of each shard.
    """
    order = sorted(range(len(places)), key=lambda number: (str(places[number]), number))
    wards: list[list[int]] = [[] for _ in places]
    for at, number in enumerate(order):
        others = [other for other in order[at + 1 :] + order[:at] if places[other] != places[number]]
        if others:
            wards[min(others, key=lambda other: len(wards[other]))].append(number)
    return wards
