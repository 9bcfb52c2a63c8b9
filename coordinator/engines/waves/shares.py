"""Shares: attempts of a wave that a single Spark task runs from the spout to the committers, without a shuffle.

A shuffle costs Spark more than processing the many small transactions of a wave. So each slot takes a share of
the wave's attempts and runs all tasks of all components on them, stage after stage. What tasks send each other stays in
memory; frames, counts, edges and reports are the same as in a shuffle, and are checked in the same way. Committers,
too, run on each share, and the driver combines their reports on a group.

No frames are kept. If a job 2 is needed nevertheless, it begins at the input again, as it would if an executor had been
lost, and the residue shows whether it has read the same.
"""

from __future__ import annotations

import pickle
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from committers.task_report import TaskReport
from coordinator.engines.waves.stage import (
    EmitterStage,
    MeetingStage,
    ProcessingStage,
    WaveInput,
    wave_processed,
)
from coordinator.engines.waves.stage_context import Addressed, StageContext
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, GroupExecuted, WaveProcessed
from state.attempt import TransactionAttempt

Attempts = tuple[TransactionAttempt, ...]
TASK_ID = struct.Struct("!I")

LEAST_ATTEMPTS = 4
"""The fewest attempts of a share, if there are several: with fewer, one long attempt would occupy a slot alone."""
SMALL_WAVE_BYTES = 256 * 1024
"""A wave that reads no more than this is faster in a single task than in several with a shuffle."""
SPREAD_BYTES_MAX = 128 * 1024
"""The most input of an attempt, times the slots: shares' state changes are not merged, and grow with both."""


@dataclass(frozen=True, slots=True)
class Share:
    """Consecutive attempts of a wave, with the groups among them that commit early."""

    wave: WaveInput
    early: EarlyCommit


def shares_of(plan: Plan, wave: WaveInput, early: EarlyCommit) -> tuple[Share, ...]:
    """Returns the shares of a wave, ascending; none if it has to be shuffled (driver)."""
    if plan.commit_tasks and not early.groups:
        return ()
    count = _share_count(plan, [batch.byte_count for batch in wave.batches])
    borders = [len(wave.batches) * place // max(1, count) for place in range(count + 1)]
    return tuple(_share(wave, early, begin, end) for begin, end in pairwise(borders))


def _share_count(plan: Plan, byte_counts: Sequence[int]) -> int:
    slots = plan.slots or max(len(stage.partitions) for stage in plan.stages)
    most = slots if plan.has_independent_batches else 1
    count = max(1, min(most, len(byte_counts) // LEAST_ATTEMPTS))
    if plan.is_one_partition():
        return count
    if not plan.has_independent_batches:
        return 0
    if all(byte_counts) and sum(byte_counts) <= SMALL_WAVE_BYTES:
        return count
    return count if count == most and sum(byte_counts) * most <= SPREAD_BYTES_MAX * len(byte_counts) else 0


def _share(wave: WaveInput, early: EarlyCommit, begin: int, end: int) -> Share:
    batches = wave.batches[begin:end]
    own = {batch.attempt for batch in batches}
    groups = (tuple(attempt for attempt in group if attempt in own) for group in early.groups)
    return Share(
        WaveInput(wave.wave_id, batches, wave.stored), EarlyCommit(tuple(filter(None, groups)), early.composed)
    )


def shares_processed(
    plan: Plan, shares: Sequence[Share], early: EarlyCommit, answers: Iterable[tuple[int, bytes]]
) -> WaveProcessed:
    """Returns the results of a wave from its shares' tasks, with groups that span several shares combined (driver).

    Raises:
        CodecError: an answer is damaged.
    """
    wave_id = shares[0].wave.wave_id
    verdicts: list[list[tuple[int, bytes]]] = [[] for _ in shares]
    for place, answer in answers:
        task_id, verdict = opened(answer)
        verdicts[place].append((task_id, verdict))
    parts = [wave_processed(plan, wave_id, share.early, of) for share, of in zip(shares, verdicts, strict=True)]
    outcomes = tuple(outcome for part in parts for outcome in part.outcomes)
    executed = {group.attempts: group.reports for part in parts for group in part.executed}
    whole = (_put_together(wave_id, group, [share.early for share in shares], executed) for group in early.groups)
    return WaveProcessed(wave_id, outcomes, tuple(filter(None, whole)))


def opened(answer: bytes) -> tuple[int, bytes]:
    """Returns the task that gave an answer, and its verdict."""
    return TASK_ID.unpack_from(answer)[0], answer[TASK_ID.size :]


def _put_together(
    wave_id: int,
    group: Attempts,
    shares: Iterable[EarlyCommit],
    executed: Mapping[Attempts, Sequence[TaskReport]],
) -> GroupExecuted | None:
    """Returns a group as if it had run in one piece, from its parts in the shares; None if a part has not run."""
    own = frozenset(group)
    parts = [part for share in shares for part in share.groups if part[0] in own]
    if not all(part in executed for part in parts):
        return None
    reports = {report.task_id: report for report in executed[parts[0]]}
    for part in parts[1:]:
        reports = {report.task_id: reports[report.task_id].then(report) for report in executed[part]}
    return GroupExecuted(wave_id, group, tuple(reports.values()))


@dataclass(frozen=True, slots=True)
class ShareStage:
    """All stages of job 1 in one task, for one share; yields (partition, answer) for each task of the meeting stage.

    Attributes:
        packed_shares: each partition unpacks its own.
    """

    entry: StageContext[Plan]
    packed_shares: tuple[bytes, ...]

    @classmethod
    def of(cls, entry: StageContext[Plan], shares: Iterable[Share]) -> ShareStage:
        """Packs the shares of a wave (driver)."""
        return cls(entry, tuple(pickle.dumps(share, pickle.HIGHEST_PROTOCOL) for share in shares))

    def __call__(self, partition: int, records: Iterable[object]) -> Iterator[tuple[int, bytes]]:
        share: Share = pickle.loads(self.packed_shares[partition])
        plan, lean = self.entry.plan.value, share.wave.without_content()
        emitters, meeting = EmitterStage(self.entry, share.wave), MeetingStage(self.entry, share.wave, share.early)
        sent = _by_partition(out for place in range(len(plan.stages[0].partitions)) for out in emitters(place, ()))
        for index in range(1, plan.meeting_stage):
            bolts = ProcessingStage(self.entry, lean, index)
            places = range(len(plan.stages[index].partitions))
            sent = _by_partition(out for place in places for out in bolts(place, sent.pop(place, ())))
        places_met = plan.meeting_partitions(with_commit=bool(share.early.groups))
        for place in places_met:
            for task_id, verdict in meeting(place, sent.pop(place, ())):
                yield partition, TASK_ID.pack(task_id) + verdict


def _by_partition(sent: Iterable[Addressed]) -> dict[int, list[Addressed]]:
    found: defaultdict[int, list[Addressed]] = defaultdict(list)
    for frame in sent:
        found[frame[0]].append(frame)
    return found
