"""A refold of a source without an end ends once the source gives nothing more."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.operating.inspection.verify import refold
from coordinator.operating.inspection.verify.refold import StallWatch, stall_after_s


def run_with(drained: threading.Event) -> Any:
    """What a watch needs of a coordinator."""
    return SimpleNamespace(statistics=SimpleNamespace(last_txid=0), drain=drained.set)


def test_a_run_is_drained_only_after_it_has_committed_nothing_for_long_enough(monkeypatch):
    monkeypatch.setattr(refold, "LOOK_EVERY_S", 3600.0)
    now = SimpleNamespace(s=100.0)
    drained = threading.Event()
    run = run_with(drained)
    with StallWatch(60.0, lambda: now.s) as watch:
        watch.begin(run)
        watch.look()
        for now.s, run.statistics.last_txid in ((159.0, 0), (159.5, 1), (219.0, 1)):
            watch.look()
            assert not drained.is_set()
        now.s = 219.5
        watch.look()
        assert drained.is_set()


def test_the_thread_looks_by_itself_and_ends_with_the_run(monkeypatch):
    monkeypatch.setattr(refold, "LOOK_EVERY_S", 0.001)
    drained = threading.Event()
    with StallWatch(0.0, lambda: 0.0) as watch:
        watch.begin(run_with(drained))
        assert drained.wait(10.0)
    assert "txbatch-refold-stall" not in {thread.name for thread in threading.enumerate()}


def test_a_run_that_does_not_start_leaves_no_thread():
    with pytest.raises(ValueError, match="no start"), StallWatch(1.0, lambda: 0.0):
        raise ValueError("no start")
    assert "txbatch-refold-stall" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("timeout_s", "expected_s"), [(1.0, 60.0), (60.0, 180.0)])
def test_a_transaction_may_fail_before_its_run_counts_as_stalled(timeout_s: float, expected_s: float):
    assert stall_after_s(timeout_s) == expected_s
