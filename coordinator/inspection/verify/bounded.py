"""Names the first few of many, so that one sentence stays readable whatever a server holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 5
"""Most items that one finding names."""


def first_few(items: Iterable[object], shown: int = SHOWN) -> str:
    """Returns the first items, separated by commas, and how many more there are."""
    known: Sequence[object] = list(items)
    more = f" and {len(known) - shown:,} more" if len(known) > shown else ""
    return ", ".join(map(str, known[:shown])) + more


class Faults:
    """Collects faults of one kind: keeps the text of the first few, and counts all.

    Attributes:
        count: number of faults.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        """Notes a fault."""
        self.count += 1
        if len(self._shown) < SHOWN:
            self._shown.append(text)

    def __str__(self) -> str:
        more = self.count - len(self._shown)
        return ", ".join(self._shown) + (f" and {more:,} more" if more else "")
