"""Decides when a batch is complete; the one place where expected and received counts are compared.

Pure: events in, a verdict out. The events of an attempt may arrive in any order, and a report may arrive twice;
whichever event makes the counts match completes the attempt, exactly once. Counts are kept per attempt and per task
upstream, because in one sum over tasks a surplus from one could hide a deficit from another. A failure sticks, even if
it arrives before anything else.

Source: backtype.storm.coordination.CoordinatedBolt.TrackingInfo and .SourceArgs. Differs from Storm: counts are per
task upstream; completion on any event; repeats are compared, not added; failure is sticky.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from coordinated_bolt.completeness.failure import Failure, FailureKind, most_telling
from state.attempt import TransactionAttempt
from state.printable import counted

NOTHING: Mapping[int, int] = MappingProxyType({})


class SourceArgs(Enum):
    """How many tasks of a component upstream report each batch.

    Source: backtype.storm.coordination.CoordinatedBolt.SourceArgs.
    """

    SINGLE = "single"
    """Exactly one task, any: each task of the component begins its own batches."""
    ALL = "all"
    """Every task."""


class TrackingStatus(Enum):
    """The status of an attempt on one task."""

    WAITING = "waiting"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(slots=True)
class _Attempt:
    """One task's knowledge of one attempt; counts of 0 are left out.

    Attributes:
        received: task upstream -> tuples that have arrived.
        expected: task upstream -> tuples it has reported as sent.
        reporters: the tasks that have reported.
    """

    received: dict[int, int] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)
    reporters: frozenset[int] = frozenset()
    received_id: bool = False
    failure: Failure | None = None


class Tracking:
    """Counts what one task receives, for all of its attempts; every `CoordinatedBolt` has one.

    In a sub-topology of a plain topology, an attempt stands for a batch.

    Args:
        upstream: task ids, each of which must report for every attempt.
        single_groups: groups of further task ids; exactly one task of each must report for an attempt.
        needs_id: whether the ID tuple must arrive too (committers).
        component_id: the task's component, for messages.
        task_index: the task's index in its component, for messages.
    """

    def __init__(
        self,
        upstream: Iterable[int],
        *,
        single_groups: Iterable[Iterable[int]] = (),
        needs_id: bool,
        component_id: str,
        task_index: int,
    ) -> None:
        self._upstream = frozenset(upstream)
        self._groups = [frozenset(group) for group in single_groups]
        self._group_of = {task: group for group in self._groups for task in group}
        self._reported_by_all: frozenset[int] | None = None
        self._report_count = len(self._upstream) + len(self._groups)
        self._needs_id = needs_id
        self._where = (component_id, task_index)
        self._attempts: dict[TransactionAttempt, _Attempt] = {}

    def regular(self, attempt: TransactionAttempt, task: int, tuple_count: int = 1) -> None:
        """Counts REGULAR tuples."""
        if tuple_count:
            received = self._entry(attempt).received
            received[task] = received.get(task, 0) + tuple_count

    def coord(self, attempt: TransactionAttempt, task: int, tuple_count: int) -> None:
        """Records a COORD tuple, in which a task upstream reports how many tuples it has sent to this task."""
        entry = self._entry(attempt)
        if task not in entry.reporters:
            self._note_first(attempt, entry, frozenset((task,)), {task: tuple_count} if tuple_count else {})
        elif (known := entry.expected.get(task, 0)) != tuple_count:
            text = f"task {task} reported {counted(known, 'tuple')} first, then {tuple_count:,}"
            self.fail(attempt, self._incomplete(text))

    def coords(self, attempt: TransactionAttempt, reporters: frozenset[int], tuple_counts: Mapping[int, int]) -> None:
        """Records the COORD tuples of several tasks upstream; tasks without a count have sent none to this task."""
        entry = self._entry(attempt)
        if entry.reporters.isdisjoint(reporters):
            self._note_first(attempt, entry, reporters, tuple_counts)
        else:
            for task in reporters:
                self.coord(attempt, task, tuple_counts.get(task, 0))

    def is_complete(
        self,
        reporters: frozenset[int],
        expected: Mapping[int, int] = NOTHING,
        received: Mapping[int, int] = NOTHING,
        *,
        has_id: bool = True,
    ) -> bool:
        """Returns whether an attempt with exactly this input is complete; records nothing.

        Args:
            reporters: the tasks that have reported.
            expected: task upstream -> tuples it has reported as sent, without zeros.
            received: task upstream -> tuples that have arrived, without zeros.
            has_id: whether the ID tuple has arrived.
        """
        if reporters is not self._reported_by_all:  # often the same object
            if reporters != self._upstream or self._groups:
                return False
            self._reported_by_all = reporters
        return received == expected and (has_id or not self._needs_id)

    def id(self, attempt: TransactionAttempt) -> None:
        """Records the ID tuple: the attempt's commit phase has begun."""
        self._entry(attempt).received_id = True

    def fail(self, attempt: TransactionAttempt, failure: Failure) -> None:
        """Records that the attempt failed here; of several failures, keeps the `most_telling`."""
        entry = self._entry(attempt)
        entry.failure = most_telling((entry.failure, failure))

    def status(self, attempt: TransactionAttempt) -> TrackingStatus:
        """Returns the attempt's status after the events so far."""
        entry = self._entry(attempt)
        if entry.failure is not None:
            return TrackingStatus.FAILED
        if self._needs_id and not entry.received_id:
            return TrackingStatus.WAITING
        if len(entry.reporters) < self._report_count:
            return TrackingStatus.WAITING  # runs at every event, so the cheap check goes first
        return TrackingStatus.COMPLETE if self._is_matched(entry) else TrackingStatus.WAITING

    def is_lost(self, attempt: TransactionAttempt) -> bool:
        """Returns whether the attempt can never be complete: it has failed, or more has arrived than was sent."""
        entry = self._entry(attempt)
        return entry.failure is not None or any(
            received > entry.expected.get(task, 0)
            for task, received in entry.received.items()
            if task in entry.reporters
        )

    def noted(self, attempt: TransactionAttempt) -> Failure | None:
        """Returns the failure recorded so far, whatever else has arrived."""
        return self._entry(attempt).failure

    def failure(self, attempt: TransactionAttempt) -> Failure:
        """Returns why an incomplete attempt has failed, once nothing more can arrive.

        An exception from user code halts the run only if the bolt was given exactly the tuples that were sent: a batch
        with missing tuples, for instance after a failure upstream, or doubled ones may make it raise anything.
        """
        entry = self._entry(attempt)
        mismatches = "; ".join(self._mismatches(entry))
        if entry.failure is not None:
            if mismatches and entry.failure.halts():
                return self._incomplete(f"{mismatches}; given these tuples, the bolt raised: {entry.failure.text}")
            return entry.failure
        if self._needs_id and not entry.received_id:
            return self._incomplete("the ID tuple did not arrive")
        return self._incomplete(mismatches or "the batch was never finished")

    def forget(self, attempt: TransactionAttempt) -> None:
        """Drops everything known about an attempt."""
        self._attempts.pop(attempt, None)

    def __len__(self) -> int:
        return len(self._attempts)

    def _entry(self, attempt: TransactionAttempt) -> _Attempt:
        entry = self._attempts.get(attempt)
        if entry is None:
            entry = self._attempts[attempt] = _Attempt()
        return entry

    def _note_first(
        self, attempt: TransactionAttempt, entry: _Attempt, reporters: frozenset[int], tuple_counts: Mapping[int, int]
    ) -> None:
        """Records the first reports of some tasks."""
        entry.reporters = entry.reporters | reporters if entry.reporters else reporters
        entry.expected.update(tuple_counts)
        for task in reporters - self._upstream:
            self._check_single(attempt, entry, task)

    def _is_matched(self, entry: _Attempt) -> bool:
        return entry.received == entry.expected

    def _mismatches(self, entry: _Attempt) -> list[str]:
        silent_groups = [group for group in self._groups if group.isdisjoint(entry.reporters)]
        stories = [f"none of tasks {sorted(group)} reported" for group in silent_groups]
        for task in self._upstream | entry.received.keys() | entry.reporters:
            expected, received = entry.expected.get(task, 0), entry.received.get(task, 0)
            if task not in entry.reporters:
                stories.append(f"task {task} sent {counted(received, 'tuple')} and no report")
            elif expected != received:
                stories.append(f"task {task} sent {counted(expected, 'tuple')}, {received:,} arrived")
        return sorted(stories)

    def _check_single(self, attempt: TransactionAttempt, entry: _Attempt, task: int) -> None:
        """Fails the attempt unless `task` is the only one of its group that has reported."""
        group = self._group_of.get(task)
        if group is None:
            self.fail(attempt, self._incomplete(f"task {task} sent a report but is not upstream"))
        elif len(reported := sorted(group & entry.reporters)) > 1:
            self.fail(attempt, self._incomplete(f"tasks {reported} reported, but only one of them may"))

    def _incomplete(self, text: str) -> Failure:
        return Failure(FailureKind.INCOMPLETE, *self._where, text)
