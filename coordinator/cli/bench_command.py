"""``txbatch bench``: the benchmark of this checkout; it is not part of what is installed."""

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
    """Runs the benchmark in a process of its own and returns its exit code.

    Args:
        arguments: handed on.
        checkout: where it is looked for; None for where our packages are.

    Raises:
        TopologyError: this is not a checkout.
    """
    root = checkout or Path(coordinator.__file__).resolve().parent.parent
    script = root / SCRIPT
    if not script.is_file():
        raise TopologyError(f"the benchmark is part of the source checkout and not installed: {script} is missing")
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([sys.executable, str(script), *arguments], env=environment, check=False).returncode
