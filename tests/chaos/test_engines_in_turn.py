"""A run that is killed half-way on one engine is continued on the other: what was committed is exact."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.chaos.jobs import Kill, await_true
from tests.support.chaos.killed.case import play
from tests.support.chaos.killed.ledger import Ledger

TRANSFERS, SEED, TIMEOUT_S = 30_000, 7, 240.0
ENGINES: dict[str, tuple[str, ...]] = {"spark": (), "local": ("--engine", "local")}

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S * 3),
]


class LedgerOnBoth(Ledger):
    """The first run is killed on one engine, the second one ends on another."""

    def __init__(self, folder: Path, first: str, second: str) -> None:
        super().__init__(folder, TRANSFERS, SEED, TIMEOUT_S)
        self._first, self._second = ENGINES[first], ENGINES[second]

    def under_fire(self, kills: int) -> list[Kill]:
        job = self.site.start(*self._first)
        await_true(lambda: not job.is_running() or (self.site.committed() or 0) > self.total // 3, self.timeout_s)
        seen, has_ended = self.site.committed(), not job.is_running()
        job.kill()
        return [Kill("commits", time.monotonic() - job.started_s, seen, has_ended)]

    def finish(self) -> dict[str, Any]:
        return self.site.finish(*self._second)


@pytest.mark.nightly
@pytest.mark.parametrize(("first", "second"), [("spark", "local"), ("local", "spark")])
def test_a_run_killed_on_one_engine_is_continued_on_the_other(tmp_path: Path, first: str, second: str) -> None:
    outcome = play(LedgerOnBoth(tmp_path, first, second), kills=1)
    (kill,) = outcome.kills
    assert outcome.wrong == []
    assert not kill.in_vain
    assert 0 < outcome.said["committed"] < TRANSFERS // 50
