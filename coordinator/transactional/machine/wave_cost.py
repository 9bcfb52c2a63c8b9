"""What a wave costs: a time of its own, whatever is in it, and one for each attempt. Pure.

Least squares over the waves that have ended, of which older ones count less and less, since Java gets faster and
transactions change.
"""

from __future__ import annotations

MEMORY = 0.75
"""What an earlier wave still counts for after each later one."""
SPREAD = 0.1
"""The least standard deviation of sizes, as a part of their mean, that tells the two costs apart."""
FADING = 0.95
"""What is left of the wave's own cost after each wave that could not confirm it: sizes then move, and tell it again."""


class WaveCost:
    """The costs of a run's waves.

    Attributes:
        fixed_s: the part of a wave's time that does not depend on its size; None before sizes have differed.
    """

    def __init__(self) -> None:
        self.fixed_s: float | None = None
        self._weight = self._size = self._seconds = 0.0
        self._sizes_squared = self._sizes_by_seconds = 0.0

    def note(self, size: int, seconds: float) -> None:
        """Notes a wave of `size` attempts that took `seconds`."""
        self._weight = MEMORY * self._weight + 1
        self._size = MEMORY * self._size + size
        self._seconds = MEMORY * self._seconds + seconds
        self._sizes_squared = MEMORY * self._sizes_squared + size * size
        self._sizes_by_seconds = MEMORY * self._sizes_by_seconds + size * seconds
        size_mean, seconds_mean = self._size / self._weight, self._seconds / self._weight
        variance = self._sizes_squared / self._weight - size_mean**2
        if variance >= (SPREAD * size_mean) ** 2:
            attempt_s = (self._sizes_by_seconds / self._weight - size_mean * seconds_mean) / variance
            self.fixed_s = min(seconds_mean, max(0.0, seconds_mean - size_mean * attempt_s))
        elif self.fixed_s is not None:
            self.fixed_s *= FADING
