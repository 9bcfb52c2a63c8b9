"""The attempts of a wave in order; messages within the wave identify each attempt by its place.

Sets of places are bits of one integer: most attempts have nothing to report, and a zero takes one bit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from coordinated_bolt.transport.frames import WaveId
from state.attempt import TransactionAttempt
from state.codec import digest64

_ATTEMPT = struct.Struct(">QQ")


class WaveAttempts:
    """The attempts of a wave (executor, one for each task of a stage).

    Attributes:
        attempts: the attempts, ascending; an attempt's place is its index.
        places: attempt -> place.
        key: a digest of the attempts, which identifies the wave that a block's places refer to.
    """

    __slots__ = ("attempts", "key", "places")

    def __init__(self, attempts: Iterable[TransactionAttempt]) -> None:
        self.attempts = tuple(attempts)
        self.places = {attempt: place for place, attempt in enumerate(self.attempts)}
        packed = (_ATTEMPT.pack(attempt.txid, attempt.attempt_id) for attempt in self.attempts)
        self.key = WaveId(0, digest64(*packed))


def places_in(mask: int) -> Iterator[int]:
    """Returns the places of the bits that are set, ascending."""
    bits = bin(mask)[:1:-1]  # without the prefix, lowest bit first
    place = bits.find("1")
    while place >= 0:
        yield place
        place = bits.find("1", place + 1)


def mask_to_bytes(mask: int) -> bytes:
    """Returns a set of places as bytes."""
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")


def mask_from_bytes(packed: Any) -> int:
    """Inverse of `mask_to_bytes`.

    Raises:
        TypeError, ValueError: the argument is not bytes.
    """
    return int.from_bytes(packed, "little")
