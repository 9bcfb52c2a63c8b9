"""The command in this process, as `main` runs it, and a clock for what it shows."""

from __future__ import annotations

import pytest

from coordinator.operating.cli import main


def txbatch(*arguments: str) -> int:
    """Runs a command to its end and returns its exit code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    code = end.value.code
    assert code is None or isinstance(code, int)
    return code or 0


class HandClock:
    """Stands still until its `now_s` is set."""

    def __init__(self, now_s: float = 100.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
