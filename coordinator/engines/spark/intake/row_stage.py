"""Stage 0 of a spout over DataFrames: each Spark partition runs the spout's tasks that it was given.

A wave has a partition for each task of each attempt that has rows to read; tasks without rows share one
partition, since every task has to report that it sent nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from coordinated_bolt.batches.wave_outbox import WaveOutbox
from coordinated_bolt.transport.blocks import pack_block
from coordinator.engines.spark.frame_flow import Addressed, Post
from coordinator.engines.spark.intake.row_values import Shape, row_converter
from coordinator.engines.spark.stage import WaveInput
from coordinator.engines.spark.stage_entry import StageEntry, StageTask
from coordinator.engines.spark.worker import settle_worker
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.emitter_task import EmitterTask, chained_to, report_chain
from state.errors import SourceError

ROW_COUNT, HASH_SUM = "__rows", "__row_hashes"
"""Counters that tell the driver what was read; users do not see them."""


@dataclass(frozen=True, slots=True)
class Role:
    """What one Spark partition does for one attempt.

    Attributes:
        batch_index: which batch of the wave.
        task_id: as which task of the spout.
        shapes: how the values of its rows are converted; empty if it has none.
        fault: why the rows cannot be had; fails the attempt.
    """

    batch_index: int
    task_id: int
    shapes: tuple[Shape, ...] = ()
    fault: str = ""


class RoleRows:
    """The rows of one role (executor).

    Args:
        role: what the partition does.
        records: its Spark rows; with a 64-bit hash as their last value if the wave is tallied.
        is_tallied: whether rows are added up.
    """

    def __init__(self, role: Role, records: Iterable[Any], *, is_tallied: bool) -> None:
        self._role, self._records, self._is_tallied = role, records, is_tallied
        self._row_count, self._hash_sum = 0, 0

    def __iter__(self) -> Iterator[list[Any]]:
        """See `Rows`.

        Raises:
            SourceError: they cannot be had.
        """
        if self._role.fault:
            raise SourceError(self._role.fault)
        if not self._role.shapes:
            return
        convert = row_converter(self._role.shapes)
        if not self._is_tallied:
            yield from map(convert, self._records)
            return
        for record in self._records:
            row = convert(record)
            self._hash_sum += row.pop()
            self._row_count += 1
            yield row

    def tally(self) -> dict[str, int]:
        """See `Rows`."""
        if not self._is_tallied:
            return {}
        half = 2**63  # counters are signed
        return {ROW_COUNT: self._row_count, HASH_SUM: (self._hash_sum + half) % (2 * half) - half}


@dataclass(frozen=True, slots=True)
class RowStage:
    """Runs the spout's tasks over rows.

    Attributes:
        entry: of the wave's job.
        wave: the attempts.
        roles: Spark partition -> what it does; only a partition with a single role has rows.
        is_tallied: whether rows end with their hash, and are added up.
    """

    entry: StageEntry[Plan]
    wave: WaveInput
    roles: tuple[tuple[Role, ...], ...]
    is_tallied: bool = False

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.entry.plan.value
        routes, wave = plan.chain.routes_into(1), self.wave.attempts()
        for role in self.roles[partition]:
            task = StageTask(plan, role.task_id, routes, self.entry)
            post = Post(routes, pack_block)
            outbox = WaveOutbox(wave, post.send)
            wiring = plan.wirings[role.task_id]
            rows = RoleRows(role, records, is_tallied=self.is_tallied)
            chained = chained_to(plan, role.task_id, outbox.carrier, clock=perf_counter_ns)
            emitter = EmitterTask(wiring, outbox.carrier, {}, rows=rows, new_outbox=chained.outboxes(wiring))
            with task.alarm(wiring) as alarm:
                batch = self.wave.batches[role.batch_index]
                for result in emitter.run([batch], alarm.begin):
                    report_chain(
                        plan, role.task_id, batch.attempt, result, chained, begin=alarm.begin, send=outbox.report
                    )
            outbox.flush()
            yield from post.take()
