"""A run on a terminal: it says from the first second what it does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.cli.terminal import on_terminal

ROOT = Path(__file__).resolve().parents[4]
STEPS = ["starting the private server in 'd'", "starting Spark with master local[2]", "preparing 3 tasks in 2 stages"]
SCRIPT = f"""
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from coordinator.operating.cli.run_command import execute
from coordinator.server_choice import ServerChoice
from coordinator.watching.statistics.run_statistics import RunStatistics
from tests.support.cli.typed_runs import typed_run


def runner(topology, asked):
    for step in {STEPS}:
        asked.on_step(step)
    statistics = RunStatistics(first_wave_s=time.monotonic(), attempts=64, active=64, cut_txid=64)
    asked.on_start(SimpleNamespace(drain=None, statistics=statistics))
    for txid in range(1, 65):
        statistics.last_txid = statistics.committed = statistics.changes = txid
        statistics.active, statistics.tuples, statistics.last_result_s = 64 - txid, 10 * txid, time.monotonic()
        statistics.fraction = None if "endless" in sys.argv else 1.0
        asked.on_progress(statistics)
        time.sleep(0.01)  # 0.6 s in all, of which the terminal shows every 0.2 s
    return statistics


sys.exit(execute(typed_run(server=ServerChoice(None, Path("d"))), runner))
"""


@pytest.mark.parametrize(("columns", "given"), [(100, "finite"), (60, "finite"), (60, "endless")])
def test_a_terminal_shows_every_step_in_its_order_and_then_figures_that_fit(folder, columns, given) -> None:
    folder.write_job()
    shown = on_terminal(
        [sys.executable, "-c", SCRIPT, given], folder.path, {**os.environ, "PYTHONPATH": str(ROOT)}, columns=columns
    )
    assert shown.code == 0, shown.screen
    at = [shown.screen.index(f"lines: {step}") for step in ["starting ", *STEPS, "running the first wave"]]
    assert at == sorted(at)
    live = [line for line in shown.screen[at[-1] :].splitlines() if " committed" in line and "lines: " not in line]
    assert live, shown.screen
    assert max(map(len, live)) <= columns
    assert ("━" in live[-1], "%" in live[-1]) == ((True, True) if given == "finite" else (False, False))
    assert "lines: 64 transactions committed" in shown.screen
