"""The parts of the last groups, kept a second time by a shard on another server.

A server that goes back, as a replica does that lagged when it was promoted, may lose the part of a group that was
decided meanwhile. The shard that keeps its parts gives them back, so that one server alone can lose nothing for good.
"""

from __future__ import annotations

from collections import Counter
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

    def packed(self) -> bytes:
        return pack([self.number, self.chain, list(self.keys), self.sections])

    @classmethod
    def unpacked(cls, packed: bytes) -> PartCopy:
        number, chain, keys, sections = unpack(packed)
        return cls(number, chain, tuple(keys), sections)


def wards_of(places: Sequence[Hashable]) -> list[int]:
    """Returns whose parts each shard keeps, [] if all lie on one server.

    That one lies on another server, unless more than half of all lie on one.

    Args:
        places: which server each shard lies on.
    """
    count, largest = len(places), max(Counter(places).values())
    if largest == count:
        return []
    order = sorted(range(count), key=lambda number: (str(places[number]), number))
    wards = {order[(at + largest) % count]: number for at, number in enumerate(order)}
    return [wards[number] for number in range(count)]
