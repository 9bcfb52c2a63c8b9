"""``txbatch bench``: runs the benchmark of a source checkout; an installed package does not include it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import coordinator
from state.errors import TopologyError

SCRIPT = Path("benchmarks") / "commit_throughput.py"


def bench(arguments: Sequence[str], checkout: Path | None = None) -> int:
    """Runs the benchmark in a child process and returns its exit code.

    Args:
        arguments: of the benchmark.
        checkout: root of the checkout; None is the folder that holds our packages.

    Raises:
        TopologyError: the folder has no benchmark.
    """
    root = checkout or Path(coordinator.__file__).resolve().parent.parent
    script = root / SCRIPT
    if not script.is_file():
        raise TopologyError(f"benchmark {str(script)!r} does not exist; run the command in a source checkout")
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([sys.executable, str(script), *arguments], env=environment, check=False).returncode
