"""``txbatch bench``: runs the benchmark of a source checkout, which an installed package does not include.

The checkout may also be the current folder. The benchmark then measures the code of that checkout, not the installed
code, since it times parts of its own version.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

import coordinator
from coordinator.operating.cli.command import command_errors
from coordinator.operating.cli.terminal import say
from state.errors import TopologyError

BENCHMARK = Path("benchmarks") / "suite" / "__main__.py"

bench = typer.Typer(add_completion=False, rich_markup_mode=None)


@bench.command(
    "bench", add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def bench_command(context: typer.Context) -> None:
    """Run the benchmark of this checkout, with the arguments that follow: --quick, --sides, --help."""
    with command_errors():
        code = run_bench(context.args)
    raise typer.Exit(code)


def run_bench(arguments: Sequence[str], checkout: Path | None = None, folder: Path | None = None) -> int:
    """Runs the benchmark in a child process and returns its exit code.

    It looks in `checkout`, by default the folder of our packages, and then in `folder`, by default the current one.
    """
    own = checkout or Path(coordinator.__file__).resolve().parent.parent
    here = (folder or Path.cwd()).resolve()
    root = next((found for found in (own, here) if (found / BENCHMARK).is_file()), None)
    if root is None:
        raise TopologyError(
            f"neither {str(own)!r} nor the current folder {str(here)!r} has {str(BENCHMARK)!r}: the benchmark is part "
            "of the source checkout, not of the installed package; clone the repository, run pip install -e '.[bench]' "
            "there, and run the command again in it"
        )
    if root != own:
        say(f"txbatch bench: measuring the checkout {root}, not the installed package in {own}", to=sys.stderr)
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "benchmarks.suite", *arguments],  # -P: not the one in the current folder
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C has reached the child, too, which still has its report to write
