"""Makes each measurement in a process of its own, so that no side inherits a warm JVM or a fragmented heap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.suite.cells import Assignment, Measurement
from benchmarks.suite.rounds import MeasurementError
from benchmarks.suite.sides.table import SIDES

TIMEOUT_S = 1800.0
SHOWN_LINES = 20


def measure_in_own_process(assignment: Assignment) -> Measurement:
    """Makes one measurement.

    Raises:
        MeasurementError: the process failed or took too long; it and its children are ended.
    """
    module = SIDES[assignment.cell.side].module
    process = subprocess.Popen(
        [sys.executable, "-m", module, assignment.to_json()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        said, complaints = process.communicate(timeout=TIMEOUT_S)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise MeasurementError(f"{module} had no result after {TIMEOUT_S:.0f} s") from error
        raise
    if process.returncode:
        story = "\n".join(complaints.splitlines()[-SHOWN_LINES:])
        raise MeasurementError(f"{module} ended with exit code {process.returncode}:\n{story}")
    return Measurement.from_fields(json.loads(said.splitlines()[-1]))
