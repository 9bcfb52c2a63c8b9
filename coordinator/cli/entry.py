"""The entry point of the ``txbatch`` script; checks that the command line's libraries are installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from coordinator.cli.exits import ExitCode

LIBRARIES = frozenset({"typer", "rich"})


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits with a code of `ExitCode`.

    Args:
        arguments: what was typed after ``txbatch``; None reads them from the process.
    """
    try:
        from coordinator.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        print("txbatch: the command line is not installed; run: pip install 'txbatch[cli]'", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    app(arguments, prog_name="txbatch")
    raise AssertionError("the application always exits")
