"""Pausing: nothing new is cut, what is under way commits, and the run goes on until it is told to end."""

from __future__ import annotations

from typing import Any

import pytest

from state.errors import FailedException, UserCodeError
from tests.support.runs.scripted import Run
from tests.support.topologies.components import LinesCoordinator


class Told(LinesCoordinator):
    """Writes down when it is told of a pause and when it cuts."""

    def __init__(self, count):
        super().__init__(count)
        self.log: list[Any] = []
        self.raising: dict[str, list[Exception]] = {}

    def initialize_transaction(self, txid, previous):
        self.log.append(txid)
        return super().initialize_transaction(txid, previous)

    def activate(self):
        self.told("activate")

    def deactivate(self):
        self.told("deactivate")

    def told(self, what):
        self.log.append(what)
        if self.raising.get(what):
            raise self.raising[what].pop()


def paused(count=6, **options):
    source = Told(count)
    return source, Run(source=source, max_spout_pending=2, **options)


def test_a_pause_lets_what_is_under_way_commit_and_the_run_go_on():
    source, run = paused()
    run.on_progress = lambda statistics: run.coordinator.deactivate() if statistics.committed == 1 else None
    seen: list[Any] = []

    def look():
        seen.append((run.store.committed_txid, list(source.log)))

    run.engine.waits.extend([look, look, look, run.coordinator.activate])
    run()
    committed, log = seen[0]
    assert (committed, log[-1]) == (log[-2], "deactivate"), "all that was cut is committed, and nothing more is cut"
    assert seen == [seen[0]] * 3
    assert source.log[len(log) :] == ["activate", *range(committed + 1, 7)]
    assert run.store.committed_txid == 6


def test_a_run_may_begin_paused():
    source, run = paused()
    run.coordinator.deactivate()
    run.engine.waits.extend([lambda: None, run.coordinator.activate])
    run()
    assert source.log == ["deactivate", "activate", 1, 2, 3, 4, 5, 6]


def test_a_run_whose_input_has_ended_does_not_end_while_it_is_paused():
    _, run = paused(0)
    run.coordinator.deactivate()
    run.engine.waits.extend([lambda: None] * 5 + [run.coordinator.activate])
    assert run() == []
    assert not run.engine.waits


def test_a_drain_ends_a_paused_run():
    _, run = paused()
    run.coordinator.deactivate()
    run.engine.waits.extend([lambda: None, run.coordinator.drain])
    run()
    assert run.store.committed_txid == 0
    assert run.coordinator.statistics.is_interrupted


def test_a_pause_that_nobody_noticed_is_not_told():
    source, run = paused(2)
    run.coordinator.deactivate()
    run.coordinator.activate()
    run()
    assert source.log == [1, 2]


def test_during_a_pause_failed_attempts_are_replayed():
    _, run = paused(2)
    first = [True]

    def on_wave(wave_id, attempts):
        run.coordinator.deactivate()
        return (
            run.engine.crashed(wave_id, attempts) if first and first.pop() else run.engine.processed(wave_id, attempts)
        )

    run.engine.on_wave = on_wave
    run.engine.waits.append(run.coordinator.activate)
    run()
    assert run.store.committed_txid == 2
    assert run.coordinator.statistics.failed_attempts > 0


@pytest.mark.parametrize("hook", ["activate", "deactivate"])
def test_what_a_hook_raises_ends_the_run_after_what_is_under_way(hook):
    source, run = paused()
    source.raising[hook] = [ValueError("mine")]
    run.on_progress = lambda statistics: run.coordinator.deactivate() if statistics.committed == 1 else None
    run.engine.waits.append(run.coordinator.activate)
    with pytest.raises(UserCodeError, match=f"{hook} of component 'lines' failed"):
        run()
    assert run.store.committed_txid == max(txid for txid in source.log if isinstance(txid, int)) >= 1


def test_a_hook_that_asks_for_later_is_told_again_before_anything_is_cut():
    source, run = paused(1)
    run.coordinator.deactivate()
    source.raising["activate"] = [FailedException("not yet"), FailedException("not yet")]
    run.engine.waits.append(run.coordinator.activate)
    run()
    assert source.log == ["deactivate", "activate", "activate", "activate", 1]


def test_by_default_a_spout_takes_no_notice():
    source = Run(1).coordinator._spout
    source.active = False
    source.notify_activity()
    assert not source.is_ready()
    source.active = True
    source.notify_activity()
    assert source.is_ready()
