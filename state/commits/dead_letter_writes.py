"""What a commit changes in the dead letters of a topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeadLetterWrites:
    """The dead letters of a group; made by the driver just before it publishes, so never composed or sent.

    Attributes:
        added: new letter as it is stored -> its txid.
        taken: stored letters that go; the server refuses the commit if one of them is not there.
        total_max: most letters that may be stored afterwards, or the server refuses the commit.
    """

    added: dict[bytes, float]
    taken: Sequence[bytes]
    total_max: int

    def operations(self) -> int:
        """Returns how many changes the server will make."""
        return len(self.added) + len(self.taken)
