"""Everything that is kept aside, at a level that waits: poison is quarantined, bad rows become dead letters.

Both are replayed by runs with fixed code, at times before the input was read to its end, and the server may lose
whatever no barrier has confirmed. The state is at any moment the fold of the rows read so far without those that are
kept aside, and what was released upstream stays, under the attempt that was released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from coordinator.topology.building.letter_streams import with_letter_streams
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from state.attempt import TransactionAttempt
from state.commits.dead_letters import DEAD_LETTERS_STATE, DeadLetter, letter_of
from tests.simulation.driver import Driver
from tests.simulation.durable import DurableServer, kept_by_a_level
from tests.simulation.fault_rates import swarm_rates
from tests.simulation.invariants import Program, ViolatedError, records_of
from tests.simulation.poison import KEYS, PoisonPost, PoisonSimulation
from tests.simulation.scenario import Scenario
from tests.simulation.workload import ROWS, TOPOLOGY_ID
from tests.support.scenarios.transfers import PARTITIONS

LEVELS = ("memory", "fsync", "replica")
ALL = ("WITHSCORES", "LIMIT", "0", str(PARTITIONS * ROWS))
LETTERS_KEY = KEYS.state(DEAD_LETTERS_STATE)


class AsideSimulation(PoisonSimulation):
    """The world of a scenario with poison and bad rows; at a level other than memory, faults are those it bears.

    Attributes:
        refused: rows that were ever seen among the dead letters.
        reclaimed: how many dead letters were seen to go.
    """

    def __init__(self, scenario: Scenario, level: str) -> None:
        if level != "memory":
            rates = kept_by_a_level(swarm_rates(scenario.seed))
            scenario = replace(scenario, rates=tuple(rates.items()))
        super().__init__(scenario)
        self.server: DurableServer = self._new_server(DurableServer, level=level)
        random = Random(f"{scenario.seed} bad")
        rows = {(random.randrange(PARTITIONS), random.randrange(ROWS)) for _ in range(random.randint(1, 4))}
        self._bad = frozenset(rows)
        self.refused: set[tuple[int, int]] = set()
        self.reclaimed = 0
        self._letters: set[tuple[int, int]] = set()
        self._committed = 0
        self._replays: set[int] = set()
        self._released: dict[int, int] = {}

    def _next_replay(self) -> RepublishChoice | LetterChoice | None:
        due = [choice for choice, stored in self._stored() if self._is_due(stored)]
        return self._random.choice(due) if due else None

    def _stored(self) -> list[tuple[RepublishChoice | LetterChoice, Sequence[Any]]]:
        return [(RepublishChoice(), self._records_now()), (LetterChoice(), self._letters_now())]

    def _post(self, republish: RepublishChoice | LetterChoice | None) -> PoisonPost:
        is_fixed = isinstance(republish, LetterChoice)
        return PoisonPost(self._poison if republish is None else frozenset(), frozenset() if is_fixed else self._bad)

    def _program_for(self, republish: RepublishChoice | LetterChoice | None) -> Program:
        program = super()._program_for(republish)
        if not isinstance(republish, LetterChoice):
            return program
        return replace(program, topology=with_letter_streams(program.topology))

    def _kept_aside(self) -> list[tuple[int, int]]:
        return [*super()._kept_aside(), *map(_row, self._letters_now())]

    def _changed(self, how: str) -> None:
        super()._changed(how)
        now = set(map(_row, self._letters_now()))
        if not now <= self._bad:
            raise ViolatedError(f"rows {sorted(now - self._bad)} are dead letters, and nothing is wrong with them")
        gone, committed = self._letters - now, records_of(self.server.inner, TOPOLOGY_ID)[0]
        if gone:
            self._replays.update(range(self._committed + 1, committed + 1))
        self._committed = committed
        self.reclaimed += len(gone)
        self.refused |= now
        self._letters = now
        if self.server.durability != "memory":
            self._check_released()

    def _is_confirmed(self, attempt: TransactionAttempt) -> bool:
        driver = self.timeline.actor
        if isinstance(driver, Driver):
            self._released |= {number: txid for txid, number in driver.confirmed if number == attempt.attempt_id}
        return super()._is_confirmed(attempt)

    def _untold(self) -> set[int]:
        return super()._untold() - self._replays  # letters are not of the spout

    def _check_released(self) -> None:
        """Whether the server holds what was released upstream, each under the txid it was committed with."""
        committed, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        for attempt_id, txid in self._released.items():
            if txid > committed or (txid in receipts and int(receipts[txid].split()[0], 16) != attempt_id):
                raise ViolatedError(f"txid {txid} was released upstream, and is lost; committed is {committed}")

    def _letters_now(self) -> list[DeadLetter]:
        found = self.server.inner.execute_command("ZRANGEBYSCORE", LETTERS_KEY, "0", "inf", *ALL)
        return [letter_of(int(float(txid)), member) for member, txid in zip(found[::2], found[1::2], strict=True)]


def _row(letter: DeadLetter) -> tuple[int, int]:
    return letter["partition"], letter["row"]
