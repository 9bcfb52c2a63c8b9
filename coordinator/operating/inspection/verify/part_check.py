"""The check of one part of what is stored: it collects findings, and names the first few of many faults. Pure.

So a sentence stays readable whatever a server holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.operating.inspection.finding import Finding, fail, ok, warn
from state.keys import Keys
from state.printable import one_line

SHOWN = 5
"""Most items that one finding names."""
RESTORE = "restore the server's data from a copy taken at one moment, or start over with `txbatch drop {id}`"
"""The remedy for damaged records; the name of the topology is filled in."""


def restore(keys: Keys) -> str:
    """Returns the remedy for damaged records of a topology."""
    return RESTORE.format(id=keys.topology_id)


class PartCheck:
    """Collects the findings about one part.

    Args:
        keys: of the topology.
        subject: of the findings.
    """

    def __init__(self, keys: Keys, subject: str) -> None:
        self.keys, self._subject = keys, subject
        self._findings: list[Finding] = []

    def damaged(self, found: object, why: str, remedy: str = "") -> None:
        """Adds a finding that has to be fixed; if no remedy is given, by restoring what was stored."""
        self._findings.append(fail(self._subject, str(found), why, remedy or restore(self.keys)))

    def doubtful(self, found: str, why: str, remedy: str) -> None:
        """Adds a finding that a run survives."""
        self._findings.append(warn(self._subject, found, why, remedy))

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found so far."""
        return not self._findings

    def findings(self, sound: str = "") -> list[Finding]:
        """Returns what was found, or one finding that says in which way all is well; none if there is no such text."""
        return self._findings or ([ok(self._subject, sound)] if sound else [])


class Faults:
    """Collects faults of one kind: keeps the text of the first few, and counts all.

    Attributes:
        count: number of faults.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        """Adds a fault."""
        self.count += 1
        if len(self._shown) < SHOWN:
            self._shown.append(text)

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        more = self.count - len(self._shown)
        return ", ".join(self._shown) + (f" and {more:,} more" if more else "")


def first_few(items: Iterable[object]) -> str:
    """Returns the first items, separated by commas, and how many more there are."""
    found = Faults()
    for item in items:
        found.add(str(item))
    return str(found)


def bytes_shown(stored: bytes | None) -> str:
    """Returns the beginning of a stored value, quoted; None is nothing."""
    return "nothing" if stored is None else repr(one_line(stored[:60].decode("utf-8", "backslashreplace"), 60))
