"""``txbatch bench``: runs the benchmark of a source checkout; an installed package does not include it.

An installed txbatch runs the one of the current folder if that is a checkout. The benchmark then measures that
checkout's code, not the installed one: it times parts of the very version it belongs to.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

import coordinator
from coordinator.cli.command_options import command_errors
from coordinator.cli.streams.terminal import say
from state.errors import TopologyError

MODULE = "benchmarks.suite"
SCRIPT = Path("benchmarks") / "suite" / "__main__.py"


def run_bench(arguments: Sequence[str], checkout: Path | None = None, folder: Path | None = None) -> int:
    """Runs the benchmark in a child process and returns its exit code.

    Args:
        arguments: of the benchmark.
        checkout: root of the checkout; None is the folder that holds our packages.
        folder: where to look if that is not a checkout; None is the current folder.

    Raises:
        TopologyError: neither folder is a checkout.
    """
    own = checkout or Path(coordinator.__file__).resolve().parent.parent
    here = (folder or Path.cwd()).resolve()
    root = next((found for found in (own, here) if (found / SCRIPT).is_file()), None)
    if root is None:
        raise TopologyError(
            f"neither {str(own)!r} nor the current folder {str(here)!r} has {str(SCRIPT)!r}: the benchmark is part of "
            "the source checkout, not of the installed package; clone the repository, run pip install -e '.[bench]' "
            "there, and run the command again in it"
        )
    if root != own:
        say(f"txbatch bench: measuring the checkout {root}, not the installed package in {own}", to=sys.stderr)
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-P", "-m", MODULE, *arguments]  # -P: not the benchmarks of the current folder
    process = subprocess.Popen(command, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C has reached the child, too, which still has its report to write


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmark of this checkout, with the arguments that follow: --quick, --sides, --help."""
    with command_errors():
        code = run_bench(context.args)
    raise typer.Exit(code)
