"""The command in this process, as `main` runs it."""

from __future__ import annotations

import pytest

from coordinator.cli import main


def txbatch(*arguments: str) -> int:
    """Runs a command to its end and returns its exit code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    code = end.value.code
    assert code is None or isinstance(code, int)
    return code or 0
