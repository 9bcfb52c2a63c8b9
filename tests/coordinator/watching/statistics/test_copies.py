"""A copy of a run's figures stays as it is, whatever the run adds to its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pytest

from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.watching.statistics.run_statistics import RunStatistics


@pytest.mark.parametrize("figures", [RunStatistics(), PlainStatistics()])
def test_a_copy_shares_nothing_that_the_run_changes_in_place(figures: RunStatistics | PlainStatistics) -> None:
    copy = figures.copied()
    shared = [
        field.name
        for field in fields(figures)
        if isinstance(getattr(figures, field.name), list | Mapping)
        and getattr(figures, field.name) is getattr(copy, field.name)
    ]
    assert shared == []
    assert figures.history.moments is not copy.history.moments
