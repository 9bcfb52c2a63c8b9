"""The parts of the last groups, kept a second time by shards on other servers.

A server that goes back, as a replica does that lagged when it was promoted, may lose the part of a group that was
decided meanwhile. The shard that keeps its parts gives them back, so that one server alone can lose nothing for good.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from state.codec import pack, unpack


@dataclass(frozen=True, slots=True)
class PartCopy:
    """A shard's part of a group, as another one keeps it.

    Attributes:
        number: of the shard whose part it is.
        chain: of the group.
        keys, sections: see `ShardWrites`.
    """

    number: int
    chain: str
    keys: tuple[str, ...]
    sections: bytes

    @staticmethod
    def all_packed(copies: Sequence[PartCopy]) -> bytes:
        """Returns the copy of one group; empty if nothing is."""
        return pack([[each.number, each.chain, list(each.keys), each.sections] for each in copies]) if copies else b""

    @classmethod
    def all_unpacked(cls, packed: bytes) -> list[PartCopy]:
        return [cls(number, chain, tuple(keys), sections) for number, chain, keys, sections in unpack(packed)]


def wards_of(places: Sequence[Hashable]) -> list[list[int]]:
    """Returns whose parts each shard keeps: those of each are kept by one on another server, if there is any.

    Args:
        places: which server each shard lies on.
    """
    order = sorted(range(len(places)), key=lambda number: (str(places[number]), number))
    wards: list[list[int]] = [[] for _ in places]
    for at, number in enumerate(order):
        others = [other for other in order[at + 1 :] + order[:at] if places[other] != places[number]]
        if others:
            wards[min(others, key=lambda other: len(wards[other]))].append(number)
    return wards
