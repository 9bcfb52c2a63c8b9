"""A plain engine without threads: a wave has ended when it was begun, or ends while it is waited for."""

from __future__ import annotations

from typing import Any

from coordinator.plain.plain_engine import PlainWave


class WavesAtOnce:
    """Runs a wave with the subclass's `run_wave`.

    Attributes:
        overlaps: whether it runs only when its end is waited for, so that the driver fills the next one before.
    """

    overlaps = False
    _wave: PlainWave | None = None
    _ended: Any = None

    def run_wave(self, wave: PlainWave) -> Any:
        raise NotImplementedError

    def begin(self, wave: PlainWave) -> None:
        assert (self._wave, self._ended) == (None, None), "one wave at a time"
        if self.overlaps:
            self._wave = wave
        else:
            self._ended = self.run_wave(wave)

    def has_ended(self) -> bool:
        return not self.overlaps

    def end(self) -> Any:
        wave, self._wave = self._wave, None
        ended, self._ended = self._ended if wave is None else self.run_wave(wave), None
        return ended

    def close(self) -> None:
        """There is nothing to let go of."""
