"""Measures each case in a process of its own, so that no side inherits a warm JVM or a fragmented heap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measurement import Case, Result, TxbatchCase

TIMEOUT_S = 1800.0


class MeasurementError(Exception):
    """A measuring process failed; the message ends with its last output."""


def measure_in_fresh_process(case: Case) -> Result:
    """Runs one case and returns what it measured.

    Raises:
        MeasurementError: the process failed, or its counts are not exact.
    """
    module = "benchmarks.txbatch_side" if isinstance(case, TxbatchCase) else "benchmarks.control_side"
    finished = subprocess.run(
        [sys.executable, "-m", module, case.to_json()],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        timeout=TIMEOUT_S,
        check=False,
    )
    if finished.returncode:
        story = "\n".join(finished.stderr.splitlines()[-20:])
        raise MeasurementError(f"{module} ended with exit code {finished.returncode}:\n{story}")
    result = Result.from_json(finished.stdout.splitlines()[-1])
    if not result.is_exact:
        raise MeasurementError(f"{module} stored counts that differ from the independent count; case {case}")
    return result
