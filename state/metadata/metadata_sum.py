"""A checksum over all of a topology's stored metadata, updated one entry at a time.

Every write of the owner stores it next to the revision. It tells the next owner whether the metadata on the
server is exactly what the last write left: a missing, altered or surplus entry changes the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from state.codec import digest64


@dataclass(frozen=True, slots=True)
class MetadataSumChange:
    """How one write changes a `MetadataSum`; accepted once the server has applied the write.

    Attributes:
        sum_after: the checksum the write stores.
        digests: metadata field -> digest of its new entry, 0 if deleted.
    """

    sum_after: int
    digests: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.sum_after:016x}"


class MetadataSum:
    """The xor of one digest per entry, so order does not matter.

    Args:
        entries: metadata field -> packed value, for every stored entry.
    """

    def __init__(self, entries: Mapping[str, bytes]) -> None:
        self._digests: dict[str, int] = {}
        self._sum = 0
        self.accept(self.change(entries, ()))

    def change(self, puts: Mapping[str, bytes], forgets: Iterable[str]) -> MetadataSumChange:
        """Returns the change if `puts` are stored and `forgets` then deleted; does not apply it.

        Args:
            puts: metadata field -> packed value.
            forgets: fields, which need not exist.
        """
        digests = {field: digest64(field.encode(), packed) for field, packed in puts.items()}
        digests |= dict.fromkeys(forgets, 0)
        sum_after = self._sum
        for field, digest in digests.items():
            sum_after ^= self._digests.get(field, 0) ^ digest
        return MetadataSumChange(sum_after, digests)

    def accept(self, change: MetadataSumChange) -> None:
        """Applies a change, once the server has applied its write."""
        self._sum = change.sum_after
        for field, digest in change.digests.items():
            if digest:
                self._digests[field] = digest
            else:
                self._digests.pop(field, None)

    def __str__(self) -> str:
        return f"{self._sum:016x}"
