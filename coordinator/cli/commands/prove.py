"""``txbatch prove``: plays the simulation of a source checkout; an installed package does not include it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

import coordinator
from coordinator.cli.command_options import command_errors
from state.errors import TopologyError

FOLDER = Path("tests") / "simulation"
REQUIRED = "lupa"
"""What a simulation needs and a run does not."""


def run_prove(arguments: Sequence[str], checkout: Path | None = None) -> int:
    """Plays the simulation in a child process and returns its exit code.

    Args:
        arguments: of the simulation.
        checkout: root of the checkout; None is the folder that holds our packages.

    Raises:
        TopologyError: the folder is not a checkout, or the test requirements are not installed.
    """
    root = checkout or Path(coordinator.__file__).resolve().parent.parent
    if not (root / FOLDER / "__main__.py").is_file():
        raise TopologyError(
            f"folder {str(root / FOLDER)!r} does not exist: the simulation is part of the source checkout, not of the "
            "installed package; clone the repository, install it there with pip install -e '.[test]', and run the "
            "command again"
        )
    if importlib.util.find_spec(REQUIRED) is None:
        raise TopologyError(f"module {REQUIRED!r} is not installed; run pip install -e '.[test]' in {str(root)!r}")
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-P", "-m", "tests.simulation", *arguments]  # -P: not the tests of the current folder
    return subprocess.run(command, env=environment, check=False).returncode


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def prove(context: typer.Context) -> None:
    """Play the simulation of this checkout, with the arguments that follow: --seeds N, --minutes M, --help."""
    with command_errors():
        code = run_prove(context.args)
    raise typer.Exit(code)
