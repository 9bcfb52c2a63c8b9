"""The simulation with poison in the input: runs quarantine what they cannot process, and fixed ones replay it.

The state is at any moment the fold of the rows read so far without those of the quarantined batches, whose records say
exactly which these are, and of those that an operator has removed. A replay of fixed code that is not disturbed for
ever leaves the fold of everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

from coordinator.testing.simulated.process import Process
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from state.attempt import TransactionAttempt
from state.commits.quarantine import QuarantineRecord, unpack_record
from state.errors import (
    FencedError,
    NotDurableError,
    NotRepublishableError,
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    TopologyError,
    TransactionError,
    UserCodeError,
)
from state.keys import Keys
from state.records.transaction_history import RECEIPTS_KEPT
from tests.simulation.driver import Driver
from tests.simulation.invariants import Program, ViolatedError, records_of, state_of
from tests.simulation.operators import WAITS_S, Discard
from tests.simulation.scenario import PLAIN, Scenario
from tests.simulation.simulation import Simulation
from tests.simulation.workload import ROWS, SPOUTS, TOPOLOGY_ID, Audit, Post, World, topology
from tests.support.scenarios.transfers import PARTITIONS, transfer, weight

KEYS = Keys(TOPOLOGY_ID)
Rows = frozenset[tuple[int, int]]
"""(partition, row) of some rows."""
QUARANTINE = {"on_poison": "quarantine", "max_quarantined": 100, "retry_backoff_s": 0.1}
DISCARDS = 0.2
"""How often an operator looks at the batches, of the starts of runs."""
ENDS = (
    FencedError,
    NotDurableError,
    NotRepublishableError,  # of an opaque spout that was asked for rows under other circumstances
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    TopologyError,  # nothing is left to replay
    UserCodeError,  # poison that no attempt has told the end of
)


class PoisonPost(Post):
    """Raises on poison, unless it is fixed.

    Args:
        poison: (partition, row) that it cannot take.
        bad: (partition, row) that it puts among the dead letters.
    """

    def __init__(self, poison: Rows, bad: Rows = frozenset()) -> None:
        super().__init__()
        self._poison, self._bad = poison, bad

    def execute(self, tup):
        place = tup["partition"], tup["row"]
        if place in self._poison:
            raise ValueError(f"row {tup['row']} of {tup['partition']} is poison")
        if place in self._bad:
            self.collector.dead_letter(tup, "this row is bad")
        else:
            super().execute(tup)


class AddingAudit(Audit):
    """The same, by reading and putting: rows need not follow one another here."""

    def finish_batch(self):
        self.finish()
        for partition, found in self.rows.items():
            name = f"p{partition}"
            self.seen.put(name, (self.seen.get(name) or 0) + len(found))
            total = sum(weight(partition, row) for row in found)
            self.weights.put(name, (self.weights.get(name) or 0) + total)


class PoisonSimulation(Simulation):
    """The world of a scenario with poison.

    Attributes:
        set_aside: txids that were ever seen quarantined.
        replayed: how many records were seen to go, other than by an operator.
        discarded: receipt and rows of each batch that an operator has removed.
    """

    def __init__(self, scenario: Scenario) -> None:
        kind = kind_of(scenario.seed) if scenario.kind == PLAIN else scenario.kind
        super().__init__(replace(scenario, kind=kind, rows=ROWS))
        random = Random(f"{scenario.seed} poison")
        rows = [(random.randrange(PARTITIONS), random.randrange(ROWS)) for _ in range(random.randint(1, 3))]
        self._poison = frozenset(rows)
        self._max_attempts = random.randint(1, 3)
        self.set_aside: set[int] = set()
        self.replayed = 0
        self.discarded: list[tuple[bytes, Rows]] = []
        self._gone: tuple[Rows, ...] = ()
        self._quarantined: dict[int, Rows] = {}
        self._operator = Random(f"{scenario.seed} operator")
        self.faults.rule_out("server.tears_a_write")  # nobody drops anything here, which is the remedy
        if "opaque" in scenario.kind:  # it could not read the same again
            self.faults.rule_out("input.moves")

    def _start_driver(self) -> None:
        self._started += 1
        if self._is_calm or "opaque" in self._scenario.kind:
            World.known_rows = ROWS
        republish = self._next_replay()
        options = {**QUARANTINE, "max_attempts": self._max_attempts}
        self._run(self._program_for(republish), options=options, republish=republish)
        if not self._is_calm and self._scenario.exactly is None and self._operator.random() < DISCARDS:
            self.timeline.after(self._operator.choice(WAITS_S), object(), self._start_discard)

    def _start_discard(self) -> None:
        Discard(f"discard {self._started}", random=self._operator, ended=self._looked, **self._around())

    def _looked(self, operator: Process, error: TransactionError | None) -> None:
        if error is not None and not isinstance(error, ENDS):
            raise ViolatedError(f"{operator.name} ended by {type(error).__name__}: {error}") from error

    def _next_replay(self) -> RepublishChoice | LetterChoice | None:
        """What the next run replays: nothing else is left to do, or somebody has fixed the code early."""
        return RepublishChoice() if self._is_due(self._records_now()) else None

    def _is_due(self, stored: Sequence[Any]) -> bool:
        return bool(stored) and (self._is_read() or self._random.random() < 0.4)

    def _post(self, republish: RepublishChoice | LetterChoice | None) -> PoisonPost:
        """The bolt of the next run; who republishes has fixed it."""
        return PoisonPost(self._poison if republish is None else frozenset())

    def _program_for(self, republish: RepublishChoice | LetterChoice | None) -> Program:
        made = topology(
            self._scenario.kind,
            reads=False,
            tasks=[self._random.randint(1, 3) for _ in range(4)],
            post=self._post(republish),
            audit=AddingAudit() if self._scenario.reads else None,
        )
        states = dict.fromkeys(("balances", "seen", "weights"), "int")
        return Program(made, "transfers", states, adopts=self._is_calm, accepts_states=self._is_calm)

    def _ended(self, driver: Process, error: TransactionError | None) -> None:
        self.ends["done" if error is None else type(error).__name__] += 1
        if error is not None and not isinstance(error, ENDS):
            raise ViolatedError(f"a run ended by {type(error).__name__}: {error}") from error
        self._needs_drop |= error is not None and "is being dropped" in str(error)
        self._is_done = self._is_calm and not self._kept_aside() and self._is_read()

    def _changed(self, how: str) -> None:
        if how.startswith("server") or " drop_" in how:
            self._records.forget()
        committed, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        found = {record.txid: frozenset(rows_of(record)) for record in self._records_now()}
        if how.endswith(" discard OK"):
            (txid,) = self._quarantined.keys() - found.keys()
            self.discarded.append((receipts[txid], self._quarantined[txid]))
            self._gone += (self._quarantined[txid],)
        else:
            self.replayed += len(self._quarantined.keys() - found.keys())
            if how.startswith("server") or " drop_" in how:
                self._gone = self._now_gone()
        self._quarantined = found
        check(state_of(self.server.inner, TOPOLOGY_ID), self._left_out())
        self._records.check(committed, receipts, RECEIPTS_KEPT)
        if any(txid > committed for txid in found):
            raise ViolatedError(f"txids {sorted(found)} are quarantined, and committed is {committed}")
        self.set_aside |= found.keys()

    def _now_gone(self) -> tuple[Rows, ...]:
        """Which of the removed batches a server lacks that shows another moment: the operator may not have come yet.

        They were set aside under the receipt that is there, and unless they were replayed, the state has none of them.
        """
        state, kept = state_of(self.server.inner, TOPOLOGY_ID), self._kept_aside()
        receipts = records_of(self.server.inner, TOPOLOGY_ID)[1]
        may_be = [rows for receipt, rows in self.discarded if receipt in receipts.values() and not rows & set(kept)]
        for count in range(len(may_be), 0, -1):
            for gone in combinations(may_be, count):
                with suppress(ViolatedError):
                    check(state, [*kept, *(row for rows in gone for row in rows)])
                    return gone
        return ()

    def _is_confirmed(self, attempt: TransactionAttempt) -> bool:
        """The spout is told under its own numbers, which do not count replays."""
        self._told.add(attempt)
        driver = self.timeline.actor
        return isinstance(driver, Driver) and attempt.attempt_id in {known for _, known in driver.confirmed}

    def _check_told(self) -> None:
        if self._scenario.kind.startswith("told") and self._untold():
            raise ViolatedError(f"the spout was never told of txids {sorted(self._untold())}")

    def _untold(self) -> set[int]:
        """What the server holds and the spout has not heard of; of a quarantined batch it hears later."""
        _, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        told = {attempt.attempt_id for attempt in self._told}
        held = {txid for txid, receipt in receipts.items() if int(receipt.split()[0], 16) not in told}
        return held - self.set_aside

    def _left_out(self) -> list[tuple[int, int]]:
        """The rows that are read and not in the state."""
        return [*self._kept_aside(), *(row for rows in self._gone for row in rows)]

    def _kept_aside(self) -> list[tuple[int, int]]:
        """The rows that can still be replayed."""
        return [row for record in self._records_now() for row in rows_of(record)]

    def _is_read(self) -> bool:
        """Whether there is nothing left to read."""
        return _reach(state_of(self.server.inner, TOPOLOGY_ID), self._left_out()) == [ROWS] * PARTITIONS

    def _records_now(self) -> list[QuarantineRecord]:
        found = self.server.inner.hash(KEYS.quarantine)
        return [unpack_record(KEYS, txid.decode(), packed) for txid, packed in found.items()]


def check(state: dict[str, dict[str, int]], left_out: Sequence[tuple[int, int]]) -> None:
    """Whether the state is the fold of a prefix of each partition without the rows that are kept aside.

    Raises:
        ViolatedError: it is not.
    """
    if len(set(left_out)) < len(left_out):
        raise ViolatedError(f"rows are kept aside twice: {[key for key, n in Counter(left_out).items() if n > 1]}")
    ends = _reach(state, left_out)
    read = {(partition, row) for partition, end in enumerate(ends) for row in range(end)}
    if not read >= set(left_out) or max(ends) > ROWS:
        raise ViolatedError(f"rows up to {ends} were read, and {sorted(set(left_out) - read)} are kept aside")
    weights: Counter[str] = Counter()
    balances: Counter[str] = Counter()
    for partition, row in read - set(left_out):
        weights[f"p{partition}"] += weight(partition, row)
        debit, credit, amount = transfer(partition, row)
        balances[debit] -= amount
        balances[credit] += amount
    found: Counter[str] = Counter()
    for shard, amount in state["balances"].items():
        found[shard.partition("/")[0]] += amount
    if any(found[account] != balances[account] for account in {*found, *balances}):
        raise ViolatedError(f"balances without {sorted(left_out)} are {dict(found)}, expected {dict(balances)}")
    if any(state["weights"].get(name, 0) != weights[name] for name in {*weights, *state["weights"]}):
        raise ViolatedError(f"weights without {sorted(left_out)} are {state['weights']}, expected {dict(weights)}")


def _reach(state: dict[str, dict[str, int]], left_out: Sequence[tuple[int, int]]) -> list[int]:
    """How far each partition was read: what is counted, and what is kept aside."""
    aside = Counter(partition for partition, _ in left_out)
    return [state["seen"].get(f"p{partition}", 0) + aside[partition] for partition in range(PARTITIONS)]


def rows_of(record: QuarantineRecord) -> Iterator[tuple[int, int]]:
    """(partition, row) of a quarantined batch, whatever kind of spout has cut it."""
    for partition, bounds in enumerate(_bounds(record)):
        for row in range(*bounds):
            yield partition, row


def _bounds(record: QuarantineRecord) -> list[Any]:
    batch = record.batch
    if not isinstance(batch.metadata, int):
        return list(batch.metadata)
    positions = [batch.positions.get(f"partition.{partition}") for partition in range(PARTITIONS)]
    if any(isinstance(position, list) for position in positions):
        return [position or [0, 0] for position in positions]
    starts = [batch.starts.get(f"partition.{partition}", 0) for partition in range(PARTITIONS)]
    return [[start, start if end is None else end] for start, end in zip(starts, positions, strict=True)]


def kind_of(seed: int) -> str:
    """Kind of spout of a seed: plain topologies have no batches to set aside."""
    return sorted(SPOUTS)[seed % len(SPOUTS)]
