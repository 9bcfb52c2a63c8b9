"""Whether plays find a bug that was planted."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def is_found(play: Callable[[int], object], seeds: Iterable[int]) -> bool:
    """Whether a seed raises: a wrong state, something left behind, a run that halts or never ends."""
    for seed in seeds:
        try:
            play(seed)
        except Exception:  # noqa: BLE001 - whatever a run with a bug raises shows it
            return True
    return False
