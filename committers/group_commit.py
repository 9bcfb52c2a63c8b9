"""Decides what a group publishes: a prefix of its attempts, and their composed changes.

Pure. The result must not depend on how transactions are grouped, so the prefix ends

* before the first attempt that failed on any task, has edges that do not cancel its residue, or refused too many
  tuples;
* before the first attempt that read a field written by a lower attempt of the group on another task, even if it failed
  because of that;
* before the commit would exceed the operation limit.

Tasks compose their own good prefix before they report, which keeps the driver's work small. If that turns out to be the
wrong prefix, or order matters between tasks, the decision is `Again`: repeat the commit phase for a shorter prefix, or
transaction by transaction. The shuffled data still exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import xor

from committers.task_report import TaskReport
from coordinated_bolt.completeness.failure import Failure, FailureKind, most_telling
from state.attempt import TransactionAttempt
from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits, add_letters, too_many_letters
from state.commits.state_writes import OrderMattersError
from state.commits.write_set import WriteSet, compose
from state.values.state_kind import Field

Read = tuple[str, Field]
TaskLetters = Mapping[int, Sequence[bytes]]
"""Task id -> the packed tuples that the task refused, in order."""
_READ_OTHER = "commit tasks did not read what the processing phase sent"


@dataclass(frozen=True, slots=True)
class PublishStep:
    """Publish this prefix.

    Attributes:
        attempts: the prefix; may be empty.
        write_set: its composed changes.
    """

    attempts: tuple[TransactionAttempt, ...]
    write_set: WriteSet


@dataclass(frozen=True, slots=True)
class Again:
    """Repeat the commit phase over this prefix.

    Attributes:
        attempts: the prefix; never empty.
        composed: whether tasks compose one write set; False asks for one per transaction.
        reason: the reason, for the log.
    """

    attempts: tuple[TransactionAttempt, ...]
    composed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What to do with a group.

    Attributes:
        step: what to do with the good prefix.
        failed: the first failed attempt, if any, and its failure; it and all later attempts are replayed.
    """

    step: PublishStep | Again
    failed: tuple[TransactionAttempt, Failure] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The group as the driver sent it into the commit phase.

    Attributes:
        attempts: consecutive txids, ascending.
        residues: attempt -> xor of the edges into commit tasks.
        commit_tasks: every task that must report.
        component_order: component ids in the order in which their changes are composed.
        operations_max: most changes of a group with more than one transaction.
        is_flat: commit tasks send nothing to one another, so their edges are known even if one of them failed.
        letters: attempt -> task id -> tuples refused in its processing phase, if there are any.
        letter_limits: how many tuples an attempt may refuse in both phases, and how many letters may be stored.
        letters_taken: stored letters that the group republishes.
    """

    attempts: tuple[TransactionAttempt, ...]
    residues: Mapping[TransactionAttempt, int]
    commit_tasks: frozenset[int]
    component_order: Sequence[str]
    operations_max: int
    is_flat: bool = False
    letters: Mapping[TransactionAttempt, TaskLetters] = field(default_factory=dict)
    letter_limits: LetterLimits = DEFAULT_LETTER_LIMITS
    letters_taken: Sequence[bytes] = ()


def decide_group(group: Group, reports: Sequence[TaskReport]) -> GroupDecision:
    """Decides what to do with a group, from the reports of all commit tasks; called by the driver per group."""
    rank = {component_id: place for place, component_id in enumerate(group.component_order)}
    ordered = sorted(reports, key=lambda report: (rank[report.component_id], report.task_id))
    good, failure = _good_prefix(group, ordered)
    failed = None
    if failure is not None and not _failed_on_stale_state(ordered, good):
        failed = (group.attempts[good], failure)
    step = _step(group, ordered, good)
    if isinstance(step, PublishStep):
        letters = list(_letters(group, step.attempts, ordered))
        if letters or group.letters_taken:
            add_letters(step.write_set, letters, group.letter_limits.total, taken=group.letters_taken)
    return GroupDecision(step, failed)


def _step(group: Group, reports: Sequence[TaskReport], good: int) -> PublishStep | Again:
    prefix = group.attempts[:good]
    if not good or not reports:
        return PublishStep(prefix, WriteSet())
    has_read = any(place < good for report in reports for place in report.results.reads)
    if not reports[0].composed:
        return _from_transactions(group, reports, good, has_read=has_read)
    if any(report.results.good_count() != good for report in reports):
        return Again(prefix, composed=not has_read, reason="a task composed more than the good prefix")
    if good == 1:
        return _from_transactions(group, reports, good, has_read=has_read)
    if has_read:
        return Again(prefix, composed=False, reason="committers read state, so compose transaction by transaction")
    return _from_composed(group, reports, prefix)


def _good_prefix(group: Group, reports: Sequence[TaskReport]) -> tuple[int, Failure | None]:
    task_ids = [report.task_id for report in reports]
    if sorted(task_ids) != sorted(group.commit_tasks):
        story = f"tasks {task_ids} sent reports, expected one from each of {sorted(group.commit_tasks)}"
        return 0, _incomplete(story)
    # a task reports up to its first failure, so the attempts reported by all tasks end with the lowest failure
    reported = [reduce(xor, edges) for edges in zip(*(report.results.edges for report in reports), strict=False)]
    for place, attempt in enumerate(group.attempts):
        is_whole = place < len(reported) or not reports
        edges = group.residues[attempt] ^ (reported[place] if place < len(reported) else 0)
        failures = _failures(reports, place, attempt) if place >= len(reported) - 1 else []
        letter_count = sum(len(letters) for _, letters in _letters_at(group, place, reports))
        most = group.letter_limits.per_transaction
        if letter_count > most:
            failures.append(Failure(FailureKind.RECORD, "commit", 0, too_many_letters(letter_count, most)))
        has_read_other = edges != 0 and (group.is_flat or not failures)
        if has_read_other and is_whole:
            return place, _incomplete(_READ_OTHER, failures)  # user code's error on such input does not count
        if failures:
            return place, most_telling(failures)
    return len(group.attempts), None


def _letters(
    group: Group, prefix: Sequence[TransactionAttempt], reports: Sequence[TaskReport]
) -> Iterator[tuple[int, list[tuple[int, Sequence[bytes]]]]]:
    """Yields txid and letters of each published attempt with letters."""
    for place, attempt in enumerate(prefix):
        if found := _letters_at(group, place, reports):
            yield attempt.txid, found


def _letters_at(group: Group, place: int, reports: Sequence[TaskReport]) -> list[tuple[int, Sequence[bytes]]]:
    """Returns each task's refused tuples of the attempt at a place, in either phase."""
    attempt = group.attempts[place]
    found = [*group.letters[attempt].items()] if attempt in group.letters else []
    for report in reports:  # reports may include later attempts
        if place in report.results.letters:
            found += report.results.letters[place].items()
    return found


def _failures(reports: Sequence[TaskReport], place: int, attempt: TransactionAttempt) -> list[Failure]:
    """Returns the failures at a place, up to the last attempt that all tasks have reported."""
    failures = []
    for report in reports:
        if place >= len(report.results):
            failures.append(_incomplete(f"task {report.task_id} sent no verdict on attempt {attempt}"))
        elif place == report.results.good_count() and report.results.failure is not None:
            failures.append(report.results.failure)
    return failures


def _from_composed(
    group: Group, reports: Sequence[TaskReport], prefix: tuple[TransactionAttempt, ...]
) -> PublishStep | Again:
    total = WriteSet()
    try:
        for report in reports:
            for write_set in report.write_sets:
                total.merge(write_set)
    except OrderMattersError as error:
        return Again(prefix, composed=False, reason=f"{error}, so compose transaction by transaction")
    operation_count = total.operations()
    if operation_count > group.operations_max:
        # transactions share fields, so half of them make more than half of the changes: cut well below the limit, or
        # the commit phase is repeated many times for slightly shorter prefixes
        fitting = max(1, min(len(prefix) * group.operations_max // operation_count, -(-len(prefix) // 2)))
        reason = f"{operation_count} operations exceed the limit of {group.operations_max}"
        return Again(prefix[:fitting], composed=True, reason=reason)
    return PublishStep(prefix, total)


def _from_transactions(group: Group, reports: Sequence[TaskReport], good: int, *, has_read: bool) -> PublishStep:
    written: dict[int, set[Read]] = {report.task_id: set() for report in reports}
    watched = _read_by_others(reports) if has_read else {}
    total = WriteSet()
    count = 0
    for place in range(good):
        if place and _reads_anothers_write(reports, place, written):
            break
        parts = [report.write_sets[place] for report in reports]
        if place and total.operations() + sum(part.operations() for part in parts) > group.operations_max:
            break
        if watched:
            for report, part in zip(reports, parts, strict=True):
                written[report.task_id].update(part.fields(watched[report.task_id]))
        total.then(compose(parts))
        count += 1
    return PublishStep(group.attempts[:count], total)


def _failed_on_stale_state(reports: Sequence[TaskReport], place: int) -> bool:
    """Returns whether the failed attempt had read a field that another task wrote in a lower attempt: a stale value.

    Then its failure proves nothing: the group ends before it, and it runs again once the lower attempts are committed.
    """
    watched = _read_by_others(reports)
    written = {
        report.task_id: {
            field for write_set in report.write_sets[:place] for field in write_set.fields(watched[report.task_id])
        }
        for report in reports
    }
    return place > 0 and _reads_anothers_write(reports, place, written)


def _reads_anothers_write(reports: Sequence[TaskReport], place: int, written: Mapping[int, set[Read]]) -> bool:
    """Returns whether a task's attempt at a place has read a field that another task wrote in a lower attempt."""
    for report in reports:
        others = [fields for task_id, fields in written.items() if fields and task_id != report.task_id]
        reads = {(name, key) for name, key in report.results.reads.get(place, ())} if others else set()
        if not all(map(reads.isdisjoint, others)):
            return True
    return False


def _read_by_others(reports: Sequence[TaskReport]) -> dict[int, set[str]]:
    """Returns task id -> the names of the states that other tasks have read."""
    reads = {report.task_id: {name for some in report.results.reads.values() for name, _ in some} for report in reports}
    return {mine: set().union(*(names for task_id, names in reads.items() if task_id != mine)) for mine in reads}


def _incomplete(text: str, failures: Sequence[Failure] = ()) -> Failure:
    causes = "".join(f"; {f.component_id}[{f.task_index}] failed on it: {f.text}" for f in failures)
    return Failure(FailureKind.INCOMPLETE, "commit", 0, f"{text}{causes}")
