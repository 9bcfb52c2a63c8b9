"""A refold of a source without an end ends once the source gives nothing more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.operating.inspection.verify import refold
from coordinator.operating.inspection.verify.refold import StallWatch, stall_after_s
from coordinator.transactional.options import EngineName, RunOptions
from coordinator.watching.run_observer import RunEnded, TurnEnded


class Unending:
    """What a watch needs of a coordinator whose source has no end."""

    def __init__(self) -> None:
        self.statistics = SimpleNamespace(last_txid=0)
        self.is_drained = False

    def drain(self) -> None:
        self.is_drained = True


def test_a_run_is_drained_only_after_it_has_committed_nothing_for_long_enough():
    now = SimpleNamespace(s=100.0)
    coordinator: Any = Unending()
    watch = StallWatch(60.0, lambda: now.s)
    watch(TurnEnded(is_idle=True))
    watch.begin(coordinator)
    for now.s, coordinator.statistics.last_txid in ((100.0, 0), (159.0, 0), (159.5, 1), (219.0, 1)):
        watch(TurnEnded(is_idle=True))
        assert not coordinator.is_drained
    now.s = 219.5
    watch(RunEnded(None))
    assert not coordinator.is_drained
    watch(TurnEnded(is_idle=True))
    assert coordinator.is_drained


def test_a_refold_on_spark_is_watched(monkeypatch):
    now, coordinator = SimpleNamespace(s=100.0), Unending()
    topology: Any = SimpleNamespace(message_timeout_s=30.0)

    def unending_run(topology: Any, *, on_start: Any, observers: Any, **_: Any) -> None:
        on_start(coordinator)
        while not coordinator.is_drained:
            now.s += 1.0
            for observer in observers:
                observer(TurnEnded(is_idle=True))

    monkeypatch.setattr(refold, "run", unending_run)
    monkeypatch.setattr(refold, "time", SimpleNamespace(monotonic=lambda: now.s))
    refold.on_this_machine("module", master="local[1]", conf={}, engine=EngineName.SPARK)(
        topology, "unix://nowhere", RunOptions(), ()
    )
    assert now.s == 191.0, "three timeouts after the first turn"


@pytest.mark.parametrize(("timeout_s", "expected_s"), [(1.0, 60.0), (60.0, 180.0)])
def test_a_transaction_may_fail_before_its_run_counts_as_stalled(timeout_s: float, expected_s: float):
    assert stall_after_s(timeout_s) == expected_s
