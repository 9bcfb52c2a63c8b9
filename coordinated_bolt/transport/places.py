"""Sets of places in a wave as bits of one integer: most attempts have nothing to tell of, and a zero takes a bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def places_in(mask: int) -> Iterator[int]:
    """Returns the places of the bits that are set, ascending."""
    bits = bin(mask)[:1:-1]  # without the prefix, lowest bit first
    place = bits.find("1")
    while place >= 0:
        yield place
        place = bits.find("1", place + 1)


def mask_to_bytes(mask: int) -> bytes:
    """Returns it as it travels."""
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")


def mask_from_bytes(packed: Any) -> int:
    """Inverse of `mask_to_bytes`.

    Raises:
        TypeError, ValueError: it is something else.
    """
    return int.from_bytes(packed, "little")
