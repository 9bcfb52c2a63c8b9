"""The entry point of the ``txbatch`` script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits with a code of `ExitCode`."""
    stdout = sys.stdout
    try:
        from coordinator.operating.cli.app import app  # here, since every import from this room imports this module
        from coordinator.operating.cli.standard_streams import code_after_output, prepare_streams

        prepare_streams()
        stdout = sys.stdout
        app(arguments, prog_name="txbatch")
    except (KeyboardInterrupt, InterruptedError):  # during the imports; commands handle interrupts themselves
        print("txbatch: stopped before anything was started", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except SystemExit as end:
        raise SystemExit(code_after_output(int(end.code or 0), stdout)) from None
    raise AssertionError("the application always exits")
