"""A checksum over all of a topology's stored metadata, kept up to date one entry at a time.

Stored next to the revision by every write of the owner, it tells the next owner whether the metadata it was
given is the very metadata the last write left: an entry that is missing, altered or left over changes
the sum, whatever kind of spout wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from state.codec import digest64


@dataclass(frozen=True, slots=True)
class MetadataSumChange:
    """What a write makes of a `MetadataSum`, once it is known to be applied.

    Attributes:
        sum_after: the checksum the write stores.
        digests: metadata field -> digest of its new entry; 0 for one that is deleted.
    """

    sum_after: int
    digests: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.sum_after:016x}"


class MetadataSum:
    """The xor of one digest per entry, so order does not matter.

    Args:
        entries: metadata field -> packed value, all there are.
    """

    def __init__(self, entries: Mapping[str, bytes]) -> None:
        self._digests: dict[str, int] = {}
        self._sum = 0
        self.accept(self.change(entries, ()))

    def change(self, puts: Mapping[str, bytes], forgets: Iterable[str]) -> MetadataSumChange:
        """The sum after these entries are stored and then those fields deleted; nothing changes here yet.

        Args:
            puts: metadata field -> packed value.
            forgets: fields, whether they are there or not.
        """
        digests = {field: digest64(field.encode(), packed) for field, packed in puts.items()}
        digests |= dict.fromkeys(forgets, 0)
        sum_after = self._sum
        for field, digest in digests.items():
            sum_after ^= self._digests.get(field, 0) ^ digest
        return MetadataSumChange(sum_after, digests)

    def accept(self, change: MetadataSumChange) -> None:
        """The write was applied."""
        self._sum = change.sum_after
        for field, digest in change.digests.items():
            if digest:
                self._digests[field] = digest
            else:
                self._digests.pop(field, None)

    def __str__(self) -> str:
        return f"{self._sum:016x}"
