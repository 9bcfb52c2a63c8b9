"""The attempts of a wave in their order; what travels within the wave names each of them by its place."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from state.attempt import TransactionAttempt
from state.codec import digest64

_ATTEMPT = struct.Struct(">QQ")


class WaveAttempts:
    """The attempts of a wave (executor, one for each task of a stage).

    Attributes:
        attempts: the attempts, ascending; an attempt's place is its index.
        places: attempt -> place.
        key: 64-bit digest of the attempts, by which a block says whose places it means.
    """

    __slots__ = ("attempts", "key", "places")

    def __init__(self, attempts: Iterable[TransactionAttempt]) -> None:
        self.attempts = tuple(attempts)
        self.places = {attempt: place for place, attempt in enumerate(self.attempts)}
        self.key = digest64(*(_ATTEMPT.pack(attempt.txid, attempt.attempt_id) for attempt in self.attempts))
