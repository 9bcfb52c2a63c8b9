"""A table that holds something else whenever its rows are computed, below the real stages, in this process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import Any

from coordinator.engines.spark.intake.row_intake import Role, RowIntake, RowStage
from coordinator.engines.waves.stage import WaveInput
from coordinator.engines.waves.stage_context import StageContext
from coordinator.engines.waves.task_stages import Output, TaskStages
from coordinator.sources.data_frame_batches import Catalogue, Unit
from coordinator.testing.simulated.executors import Executors
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed
from state.attempt import TransactionAttempt
from state.codec import digest64, unpack
from tests.support.runs.in_process_engine import InProcessEngine

KIND, ROWS = "by column 'id'", 5


class Lie(Enum):
    """What a computation finds, compared with the one before."""

    HOLDS = "the same rows"
    MOVES = "the same rows, in another order and other partitions"
    CHANGES = "as many rows with other values, as of rand()"
    GROWS = "one row more"
    SHRINKS = "one row less"


def row_hash(row: str) -> int:
    """In place of the hash that Spark computes: 64 bits with a sign."""
    return digest64(row.encode()) - 2**63


class LyingTable:
    """Units of five rows each; takes a lie at every computation of one.

    Args:
        plan: the lies, in order; afterwards the rows stay as they are.
        units: how many there are.

    Attributes:
        computed: unit -> every content that was ever computed of it.
    """

    def __init__(self, plan: Sequence[Lie], units: int = 4) -> None:
        self._left, self.units = list(plan), units
        self._now: dict[int, list[str]] = {unit: self._rows(unit, 0, ROWS) for unit in range(units)}
        self._changes = 0
        self.computed: dict[int, list[Counter[str]]] = defaultdict(list)

    def catalogue(self, after: Any) -> Catalogue:
        """What there was when each run begins, which is asked before anything is read."""
        units = [Unit(KIND, unit, unit, ROWS, (ROWS * (unit + 1), 0)) for unit in range(self.units)]
        done = 0 if after is None else int(after) + 1
        return Catalogue((ROWS * done, 0), tuple(units[done:]))

    def compute(self, unit: int, partition_count: int) -> list[list[tuple[str, int]]]:
        """The rows of a unit as they are now, by partition, each with its hash."""
        lie = self._left.pop(0) if self._left else Lie.HOLDS
        rows = self._now[unit]
        self._changes += 1
        match lie:
            case Lie.MOVES:
                rows = rows[2:] + rows[:2]
            case Lie.CHANGES:
                rows = self._rows(unit, self._changes, len(rows))
            case Lie.GROWS:
                rows = [*rows, *self._rows(unit, self._changes, 1)]
            case Lie.SHRINKS:
                rows = rows[:-1]
        self._now[unit] = rows
        self.computed[unit].append(Counter(rows))
        hashed = [(row, row_hash(row)) for row in rows]
        return [hashed[number::partition_count] for number in range(partition_count)]

    @staticmethod
    def _rows(unit: int, version: int, count: int) -> list[str]:
        return [f"{unit}.{version}.{number}" for number in range(count)]


class TableStages(TaskStages):
    """Feeds stage 0 with a table."""

    has_task_partitions = False

    def __init__(self, plan: Plan, executors: Executors, table: LyingTable, *, is_exact: bool) -> None:
        super().__init__(plan, executors)
        self._table, self._is_exact = table, is_exact
        expected = (lambda metadata: Unit.from_plain(metadata, "").row_count) if is_exact else None
        self._intake = RowIntake(("value",), lambda metadata: None, expected)  # type: ignore[arg-type, return-value]

    def first(self, entry: StageContext[Plan], wave: WaveInput) -> list[Output]:
        tasks = self._plan.chain.stages[0].tasks
        roles, partitions = [], []
        for index, batch in enumerate(wave.batches):
            unit = Unit.from_plain(unpack(batch.packed_metadata), "").first
            assert isinstance(unit, int)
            partitions += self._table.compute(unit, len(tasks))
            roles += [(Role(index, task, (None,) * (1 + self._is_exact)),) for task in tasks]
        rows = RowStage(entry, wave, tuple(roles), self._is_exact)
        if not self._is_exact:
            partitions = [[row[:1] for row in part] for part in partitions]  # type: ignore[misc] # no hash is asked for
        return [list(rows(place, part)) for place, part in enumerate(partitions)]

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        return self._intake.checked(wave, processed)


class TableEngine(InProcessEngine):
    """Runs on a table, and may have lost what was shuffled when the commit phase begins.

    Args:
        plan: what to run.
        random: draws the order of delivery.
        table: what is read.
        recomputes: for each commit phase, whether it computes the table once more; then no more.
        is_exact: whether a transaction has to have the same rows whenever it is read, as one of a `DataFrameBatches`
            has; a micro-batch may differ from attempt to attempt.
    """

    def __init__(
        self, plan: Plan, random: Random, table: LyingTable, recomputes: Sequence[bool], *, is_exact: bool
    ) -> None:
        super().__init__(plan, random)
        self._table, self._recomputes, self._is_exact = table, list(recomputes), is_exact

    def stages(self) -> TaskStages:
        return TableStages(self._plan, self._executors, self._table, is_exact=self._is_exact)

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        if self._recomputes and self._recomputes.pop(0):
            self._waves[wave_id]._kept = None
        super().commit(wave_id, attempts, composed=composed)
