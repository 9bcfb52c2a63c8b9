"""When the bridge from Structured Streaming returns a micro-batch to Spark, which then lets go of it."""

from __future__ import annotations

from typing import Any

from coordinator.exactly_once import _BoundRun
from coordinator.watching.statistics.run_statistics import RunStatistics


class ScriptedRun:
    """A coordinator whose turns do what a script says: (last txid, released txid) after each."""

    def __init__(self, *turns: tuple[int, int], last_txid: int = 0, released_txid: int = 0) -> None:
        self.statistics = RunStatistics(last_txid=last_txid, released_txid=released_txid)
        self.turns = list(turns)
        self.awaited: list[bool] = []
        self.confirmed = 0

    def confirm(self) -> None:
        self.confirmed += 1

    def turn(self, *, is_awaited: bool = False) -> bool:
        self.awaited.append(is_awaited)
        self.statistics.last_txid, self.statistics.released_txid = self.turns.pop(0)
        return False


class OneBatch:
    """A source whose batch is always the same transaction."""

    query_id = "q"

    def __init__(self, txid: int) -> None:
        self._txid = txid

    def txid_of(self, batch: Any, committed_txid: int) -> int:
        return self._txid


def committed(run: ScriptedRun, txid: int) -> ScriptedRun:
    source: Any = OneBatch(txid)
    bound = _BoundRun(None, source)
    coordinator: Any = run
    bound.coordinator = coordinator
    batch: Any = "batch"
    bound.commit(batch, "rows")
    assert bound.rows is None
    return run


def test_a_batch_is_returned_once_it_is_released_and_not_when_it_is_committed():
    run = committed(ScriptedRun((0, 0), (1, 0), (1, 0), (1, 1)), 1)
    assert run.turns == []
    assert run.awaited == [True] * 4


def test_a_batch_that_is_committed_and_was_never_confirmed_is_confirmed_before_it_is_returned():
    """Spark repeats it after a crash: it may be committed and lost again by a power cut."""
    run = committed(ScriptedRun((7, 0), (7, 7), last_txid=7), 7)
    assert run.turns == []
    assert run.confirmed == 1


def test_a_batch_that_is_released_takes_no_turn():
    assert committed(ScriptedRun(last_txid=7, released_txid=7), 7).awaited == []
