"""Battle after battle in one arena, until the time is up: strikes drawn from a seed, everything counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

from tests.support.chaos.nemesis.arenas import Arena
from tests.support.chaos.nemesis.battle import Battle
from tests.support.chaos.nemesis.fates import draw_fate, drop_points
from tests.support.chaos.nemesis.ledger_job import SPOUTS
from tests.support.chaos.nemesis.record import Record
from tests.support.chaos.nemesis.strikes import Strike, pause_between
from tests.support.chaos.nemesis.verifier import Complaint, Verifier

DROP_TRIES = 3


class Campaign:
    """Plays battles in an arena.

    Args:
        arena: where.
        draw: the only source of chance.
        record: where everything is counted.
        only: these strikes and no others; None draws from all of the arena's by their weights.
        bug: planted in every driver.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        arena: Arena,
        draw: Random,
        record: Record,
        *,
        only: Sequence[Strike] | None = None,
        bug: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._arena, self._draw, self._record = arena, draw, record
        self._only, self._bug, self._clock = only, bug, clock
        self._verifier = Verifier()
        self._battles = 0

    def play_until(self, deadline_s: float) -> None:
        """Plays battles until that time of the clock; the last one comes to its end all the same."""
        while self._clock() < deadline_s:
            self.play(self._arena.strikes_a_battle, deadline_s)

    def play(self, strikes: int, deadline_s: float = float("inf")) -> list[Complaint]:
        """Plays one battle with so many strikes, fewer if the time is up, and returns what was wrong."""
        return self._play([self._next_strike() for _ in range(strikes)], deadline_s)

    def play_each(self) -> list[Complaint]:
        """Plays one battle in which each of the strikes strikes once."""
        return self._play(list(self._arena.strikes if self._only is None else self._only), float("inf"))

    def _play(self, strikes: list[Strike], deadline_s: float) -> list[Complaint]:
        battle = self.begin()
        try:
            battle.await_progress()
            for strike in strikes:
                if self._clock() >= deadline_s or battle.found:
                    break
                strike(battle)
                pause_between(battle)
            if not battle.found:
                battle.close_input()
                battle.finish()
            if not battle.found and not self._arena.on_spark:
                self._drop(battle)
        finally:
            battle.close()
        return battle.found

    def begin(self) -> Battle:
        """Begins one battle, which the caller closes."""
        arena, draw = self._arena, self._draw
        kind, reads = draw.choice(sorted(SPOUTS)), draw.random() < 0.5
        self._battles += 1
        topology_id = f"{arena.name}-{self._battles}"
        arena.refresh(draw)
        return Battle(
            arena.folder,
            arena.starter,
            arena.spec(topology_id, kind, reads=reads, bug=self._bug, draw=draw),
            draw,
            connect=arena.connect,
            record=self._record,
            verifier=self._verifier,
            next_fate=arena.next_fate,
            patience_s=arena.patience_s,
            fate_timeout_s=arena.fate_timeout_s,
        )

    def _next_strike(self) -> Strike:
        if self._only is not None:
            return self._draw.choice(self._only)
        strikes = self._arena.strikes
        return self._draw.choices(list(strikes), list(strikes.values()))[0]

    def _drop(self, battle: Battle) -> None:
        """Drops the topology; the first tries are killed on the way, the last one has to leave nothing."""
        with battle.onlooker.going_back():
            battle.onlooker.stop()
        for _ in range(self._draw.randrange(DROP_TRIES)):
            fate = draw_fate(self._draw, drop_points(), self._record.points)
            battle.start_driver(fate, drops=True).wait(self._arena.patience_s)
            battle.collect()
        final = battle.start_driver(drops=True)
        final.wait(self._arena.patience_s)
        battle.collect()
        with self._arena.connect() as client:
            left = client.keys(f"{{{battle.spec.topology_id}}}:*")
        if left:
            battle.complain(Complaint("ending", f"a drop has left {left}"))
