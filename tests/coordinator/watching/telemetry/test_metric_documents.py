"""The manual lists exactly the metrics that runs export, and exactly the reasons that failures are counted by."""

from __future__ import annotations

import re
from pathlib import Path

from coordinator.watching.failure_cause import FailureCause
from tests.support.telemetry.metric_names import documented_names

ROOT = Path(__file__).resolve().parents[4]
MANUAL = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")


def test_the_manual_lists_exactly_the_metrics_that_are_exported():
    section = MANUAL.partition("| Metric | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(txbatch_\w+)`", section)) == documented_names()


def test_the_manual_lists_exactly_the_reasons_of_failures():
    section = MANUAL.partition("| `reason` | |")[2].partition("\n\n")[0]
    reasons = {
        name
        for line in section.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    }
    assert reasons == {cause.value for cause in FailureCause}
