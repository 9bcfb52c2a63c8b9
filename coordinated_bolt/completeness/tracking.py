"""When is a batch complete? The one place where expected and received are compared.

Pure: events in, a verdict out. The events of an attempt may come in any order and a report may come
twice; whichever event makes the counts match completes the attempt, exactly once. Everything is kept
per attempt and per task upstream, because one sum for all of them lets a surplus of one hide a deficit
of another. A failure sticks, also one that comes before anything else.

Source: backtype.storm.coordination.CoordinatedBolt.TrackingInfo and .SourceArgs. Differs from Storm: counts are per
task upstream; completion on any event; repeats are compared, not added; failure is sticky.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from coordinated_bolt.completeness.failure import Failure, FailureKind
from state.attempt import TransactionAttempt


class SourceArgs(Enum):
    """How many tasks of a component upstream report each batch.

    Source: backtype.storm.coordination.CoordinatedBolt.SourceArgs.
    """

    SINGLE = "single"
    """Exactly one, whichever it is: a component each of whose tasks begins batches of its own."""
    ALL = "all"
    """Every one."""


class TrackingStatus(Enum):
    """Where an attempt stands on one task."""

    WAITING = "waiting"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(slots=True)
class _Attempt:
    received: dict[int, int] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)
    received_id: bool = False
    failure: Failure | None = None


class Tracking:
    """Counts what one task receives, for all attempts in its hands.

    Args:
        upstream: task ids that each have to report for every attempt.
        single_groups: groups of further task ids; of each group exactly one has to report for an attempt.
        needs_id: an ID tuple is awaited too (committers).
        component_id: whose task this is, for messages.
        task_index: which task of it.
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
        self._report_count = len(self._upstream) + len(self._groups)
        self._needs_id = needs_id
        self._where = (component_id, task_index)
        self._attempts: dict[TransactionAttempt, _Attempt] = {}

    def regular(self, attempt: TransactionAttempt, task: int, tuple_count: int = 1) -> None:
        """REGULAR tuples were executed."""
        received = self._entry(attempt).received
        received[task] = received.get(task, 0) + tuple_count

    def coord(self, attempt: TransactionAttempt, task: int, tuple_count: int) -> None:
        """A COORD tuple came: the task upstream says how many tuples it has sent to this task."""
        entry = self._entry(attempt)
        known = entry.expected.setdefault(task, tuple_count)
        if task not in self._upstream:
            self._check_single(attempt, entry, task)
        if known != tuple_count:
            self.fail(attempt, self._incomplete(f"task {task} reported {known} tuples, then {tuple_count}"))

    def id(self, attempt: TransactionAttempt) -> None:
        """The ID tuple came: the attempt's commit phase has begun."""
        self._entry(attempt).received_id = True

    def fail(self, attempt: TransactionAttempt, failure: Failure) -> None:
        """The attempt has failed here; the first failure of the most telling kind is kept."""
        entry = self._entry(attempt)
        if entry.failure is None or failure.kind < entry.failure.kind:
            entry.failure = failure

    def status(self, attempt: TransactionAttempt) -> TrackingStatus:
        """Where the attempt stands after the events so far."""
        entry = self._entry(attempt)
        if entry.failure is not None:
            return TrackingStatus.FAILED
        if self._needs_id and not entry.received_id:
            return TrackingStatus.WAITING
        if len(entry.expected) < self._report_count:
            return TrackingStatus.WAITING  # asked at every event, so what is cheap to see comes first
        return TrackingStatus.WAITING if self._mismatches(entry) else TrackingStatus.COMPLETE

    def is_lost(self, attempt: TransactionAttempt) -> bool:
        """Whether the attempt can never be complete: it has failed, or more has come than was sent."""
        entry = self._entry(attempt)
        return entry.failure is not None or any(
            entry.received.get(task, 0) > expected for task, expected in entry.expected.items()
        )

    def noted(self, attempt: TransactionAttempt) -> Failure | None:
        """The failure that was noted so far, whatever else has come."""
        return self._entry(attempt).failure

    def failure(self, attempt: TransactionAttempt) -> Failure:
        """Why an attempt that is not complete has failed, once nothing more can come.

        What user code raised halts the run only if it had been given what was sent: of a batch that lacks
        tuples, as behind a task that has failed, or has one twice, it may raise anything.
        """
        entry = self._entry(attempt)
        mismatches = "; ".join(self._mismatches(entry))
        if entry.failure is not None:
            if mismatches and entry.failure.halts():
                return self._incomplete(f"{mismatches}; of these it made: {entry.failure.text}")
            return entry.failure
        if self._needs_id and not entry.received_id:
            return self._incomplete("the ID tuple is missing")
        return self._incomplete(mismatches or "the batch was never finished")

    def forget(self, attempt: TransactionAttempt) -> None:
        """Drops all that is known of an attempt."""
        self._attempts.pop(attempt, None)

    def __len__(self) -> int:
        return len(self._attempts)

    def _entry(self, attempt: TransactionAttempt) -> _Attempt:
        entry = self._attempts.get(attempt)
        if entry is None:
            entry = self._attempts[attempt] = _Attempt()
        return entry

    def _mismatches(self, entry: _Attempt) -> list[str]:
        stories = []
        reporters = self._upstream | entry.received.keys()
        if self._groups:
            silent = (group for group in self._groups if group.isdisjoint(entry.expected))
            stories += [f"none of tasks {sorted(group)} reported" for group in silent]
            reporters |= entry.expected.keys()
        for task in reporters:
            expected, received = entry.expected.get(task), entry.received.get(task, 0)
            if expected is None:
                stories.append(f"task {task} sent {received} tuples and no report")
            elif expected != received:
                stories.append(f"task {task} sent {expected} tuples, {received} came")
        return sorted(stories)

    def _check_single(self, attempt: TransactionAttempt, entry: _Attempt, task: int) -> None:
        """Fails the attempt unless `task` is the only one of its group that has reported."""
        group = self._group_of.get(task)
        if group is None:
            self.fail(attempt, self._incomplete(f"task {task} sent a report but is not upstream"))
        elif len(reported := sorted(group & entry.expected.keys())) > 1:
            self.fail(attempt, self._incomplete(f"tasks {reported} reported, of which only one may"))

    def _incomplete(self, text: str) -> Failure:
        return Failure(FailureKind.INCOMPLETE, *self._where, text)
