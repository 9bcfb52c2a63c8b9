"""The real stages without Spark: the same callables, a shuffle made of lists, and faults on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from random import Random
from types import SimpleNamespace
from typing import Any

from coordinator.engines.spark.shares import ShareStage, shares_of, shares_processed
from coordinator.engines.spark.stage import (
    CommitStage,
    EmitterStage,
    MeetingStage,
    ProcessingStage,
    Reading,
    WaveInput,
    reports_among,
    wave_processed,
)
from coordinator.engines.spark.stage_entry import FrameFault, StageEntry
from coordinator.spouts.batch_emitters import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, Event, GroupExecuted
from state.attempt import TransactionAttempt

Records = dict[int, list[tuple[int, bytes]]]


class InProcessEngine:
    """Runs waves and groups at once, in the caller's thread; frames are delivered in a random order.

    Args:
        plan: what to run.
        random: draws the order of delivery.
        frame_fault: as tests install it.
        nonce: of the run, for its readers.
    """

    overlaps = True
    queues = False
    has_task_partitions = True
    """Whether emitters read by themselves, as in `Intake`."""

    def __init__(self, plan: Plan, random: Random, frame_fault: FrameFault | None = None, *, nonce: str = "") -> None:
        self._reading = Reading("", nonce)
        self._plan = plan
        shipped: Any = SimpleNamespace(value=plan)
        self._entry: StageEntry[Plan] = StageEntry(shipped, frame_fault)
        self._random = random
        self._events: deque[Event] = deque()
        self._waves: dict[int, WaveInput] = {}
        self._meetings: dict[int, Records] = {}

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        plan, copied = self._plan, {scope: dict(values) for scope, values in stored.items()}
        wave = self._waves[wave_id] = WaveInput(wave_id, batches, copied)
        shares = shares_of(plan, wave, early) if self.has_task_partitions else ()
        if shares:
            run = ShareStage.of(self._entry, shares)
            answers = [answer for place in range(len(shares)) for answer in run(place, [])]
            self._events.append(shares_processed(plan, shares, early, answers))
            return
        records = self._meetings[wave_id] = self._processed(wave)
        stage = MeetingStage(self._entry, wave, early)
        partitions = plan.meeting_partitions(with_commit=bool(early.groups))
        verdicts = [verdict for p in partitions for verdict in stage(p, records.get(p, []))]
        self._events.append(wave_processed(plan, wave_id, early, verdicts))

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        if wave_id not in self._meetings:  # nothing was shuffled
            self._meetings[wave_id] = self._processed(self._waves[wave_id])
        plan, records = self._plan, self._meetings[wave_id]
        collected: list[tuple[int, bytes]] = []
        wave = self._waves[wave_id].attempts().attempts
        for index in range(plan.meeting_stage, len(plan.stages)):
            stage = CommitStage(self._entry, index, wave, attempts, composed, self._reading)
            collected = [out for p in range(len(plan.stages[index].partitions)) for out in stage(p, records.get(p, []))]
            records = self._shuffled(collected)
        reports = reports_among(packed for _, packed in collected)
        self._events.append(GroupExecuted(wave_id, attempts, tuple(reports)))

    def cancel(self, wave_id: int) -> None:
        """What runs has run already."""

    def release(self, wave_id: int) -> None:
        del self._waves[wave_id]
        self._meetings.pop(wave_id, None)

    def next_event(self, timeout_s: float) -> Event | None:
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        assert not self._waves, "every wave has been released"

    def _processed(self, wave: WaveInput) -> Records:
        """Runs the processing stages; gives what each partition of the meeting stage reads."""
        plan, lean, emitters = self._plan, wave.without_content(), EmitterStage(self._entry, wave)
        records = self._shuffled(out for p in range(len(plan.stages[0].partitions)) for out in emitters(p, []))
        for index in range(1, plan.meeting_stage):
            bolts = ProcessingStage(self._entry, lean, index)
            records = self._shuffled(
                out for p in range(len(plan.stages[index].partitions)) for out in bolts(p, records.get(p, []))
            )
        return records

    def _shuffled(self, outputs: Iterable[tuple[int, bytes]]) -> Records:
        records: Records = {}
        for partition, packed in outputs:
            records.setdefault(partition, []).append((partition, packed))
        for each in records.values():
            self._random.shuffle(each)
        return records
