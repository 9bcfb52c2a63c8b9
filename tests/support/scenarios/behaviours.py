"""What the bolts of random topologies do to tuples: the user's side, shared by bolts and reference fold."""

from __future__ import annotations

from collections.abc import Iterable

Row = tuple[str, int]
KEYS = "abcde"


def code(key: str) -> int:
    """A number of a key, the same everywhere."""
    return sum(map(ord, key))


def neighbour(key: str) -> str:
    """The next key, which may be on another task."""
    return KEYS[(KEYS.find(key) + 1) % len(KEYS)]


def mapped(behaviour: str, row: Row) -> list[Row]:
    """What one tuple becomes."""
    key, value = row
    match behaviour:
        case "pass":
            return [row]
        case "filter":
            return [row] if value % 3 else []
        case "multiply":
            return [(key, value + number) for number in range(value % 3)]
        case "rekey":
            return [(KEYS[(code(key) + value) % len(KEYS)], value)]
    return []


def sums(rows: Iterable[Row]) -> dict[str, int]:
    """Key -> sum of its values."""
    found: dict[str, int] = {}
    for key, value in rows:
        found[key] = found.get(key, 0) + value
    return found


def fate(total: int) -> str:
    """What becomes of a fleeting field."""
    return ("delete", "increment", "put", "put")[total % 4]
