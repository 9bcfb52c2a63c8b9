"""The entry point of the ``txbatch`` script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits with a code of `ExitCode`.

    Args:
        arguments: what was typed after ``txbatch``; None reads them from the process.
    """
    from coordinator.cli.app import app  # here, since every import from this room imports this module

    app(arguments, prog_name="txbatch")
    raise AssertionError("the application always exits")
