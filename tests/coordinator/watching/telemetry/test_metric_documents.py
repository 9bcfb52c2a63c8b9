"""The manual lists exactly the metrics that runs export, and the reasons of failures as `inspect` says them."""

from __future__ import annotations

import re
from pathlib import Path

from coordinator.watching.failure_cause import FailureCause
from tests.support.telemetry.metric_names import documented_names

ROOT = Path(__file__).resolve().parents[4]
MANUAL = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
INSIDE = (ROOT / "docs/see-inside.md").read_text(encoding="utf-8")


def test_the_manual_lists_exactly_the_metrics_that_are_exported():
    section = MANUAL.partition("| Metric | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(txbatch_\w+)`", section)) == documented_names()


def test_the_manual_lists_exactly_the_reasons_of_failures():
    rows = INSIDE.partition("| Reason | |")[2].partition("\n\n")[0].splitlines()[2:]
    reasons = [reason.strip() for row in rows for reason in row.split("|")[1].split(",")]
    assert sorted(reasons) == sorted(cause.words for cause in FailureCause)
