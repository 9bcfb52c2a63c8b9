"""The group whose turn it is to commit, from its commit phase to the answer of the store. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from committers.group_commit import Again, Group, PublishStep, decide_group
from committers.group_size import FEW_OPERATIONS, GroupSize
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import EarlyCommit, FailedByHand, GroupCrashed, GroupExecuted
from coordinator.transactional.machine.early_commits import EarlyCommits
from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.poison import Poison
from coordinator.transactional.machine.releases import Releases
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import CancelWave, Decision, Publish, Published, Refused, StartCommit
from coordinator.transactional.machine.transaction_record import AttemptState
from coordinator.transactional.machine.transaction_records import IN_COMMIT_PHASE
from coordinator.watching.failure_cause import CrashKind, Phase
from coordinator.watching.log_records import fields
from coordinator.watching.run_observer import AttemptsIssued
from coordinator.watching.statistics.run_statistics import work_of
from state.attempt import Attempts, TransactionAttempt
from state.commits.commit import GROUP_BYTES_AIM
from state.commits.dead_letters import add_letters, letter_count
from state.commits.write_set import WriteSet
from state.errors import ProtocolError
from state.metadata import MetadataChanges
from state.printable import counted
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch")
TaskLetters = list[tuple[int, Sequence[bytes]]]
"""(task id, what the task refused, in order)."""


def letters_of_group(
    attempts: Sequence[TransactionAttempt],
    outcomes: Mapping[TransactionAttempt, AttemptResult],
    reports: Sequence[TaskReport],
) -> Iterator[tuple[int, TaskLetters]]:
    """Yields the txid and the letters of each attempt that is published and has any.

    Args:
        attempts: a prefix of the group.
        outcomes: of their processing phase.
        reports: of all commit tasks, which may report on later attempts too.
    """
    for place, attempt in enumerate(attempts):
        found: TaskLetters = list(outcomes[attempt].letters.items())
        for report in reports:
            found += report.results.letters.get(place, {}).items()
        if found:
            yield attempt.txid, found


@dataclass(slots=True)
class CommitPhase:
    """The group in its commit phase.

    Attributes:
        attempts: those for which the commit phase currently runs.
        asked: how many there were at first.
        started_s: when it began, or was last found to take too long.
        ran_early: what was reported of it, if it ran in the wave's job; the engine then runs nothing for it.
        publishing: what was sent to the store and is not answered yet.
        reports: of the commit tasks, about what was sent.
        metadata: what was sent stores and forgets of it.
        poison: the batch that is set aside by what was sent.
    """

    attempts: tuple[TransactionAttempt, ...]
    asked: int
    started_s: float
    ran_early: GroupExecuted | None = None
    publishing: PublishStep | None = None
    reports: tuple[TaskReport, ...] = ()
    metadata: MetadataChanges = field(default_factory=MetadataChanges)
    poison: Poison | None = None


class Commits:
    """Commits one group after another; at most one is in its commit phase.

    Args:
        books: of the run.
        failures: handles what fails.
        releases: takes over what is committed.

    Attributes:
        phase: the group in its commit phase, None if there is none.
        early: the groups whose commit phase runs with their wave.
        has_judged_early: this turn has judged one of them.
    """

    def __init__(self, books: RunBooks, failures: Failures, releases: Releases) -> None:
        self._books, self._failures, self._releases = books, failures, releases
        options = books.options
        self._target_s = options.commit_target_s or 0.0
        self._size = GroupSize(options.commit_group_max, options.commit_operations_max, GROUP_BYTES_AIM, self._target_s)
        self._stall_s = 0.0  # of the last warning
        self._composed = True
        self.phase: CommitPhase | None = None
        self.has_judged_early = False
        self.early = EarlyCommits(is_on=options.early_commit and books.plan.may_commit_early)

    def early_groups(self, attempts: Attempts) -> EarlyCommit:
        """Returns the groups of a new wave that are to run early."""
        return self.early.plan(attempts, self._size.limit(), composed=self._composed)

    def keep_early(self, executed: Iterable[GroupExecuted]) -> None:
        """Keeps groups whose commit phase ran with their wave, as long as their attempts are current."""
        is_current = self._books.transactions.is_current
        self.early.keep(group for group in executed if all(map(is_current, group.attempts)))

    def start_next(self, commit_limit: int | None) -> Iterator[Decision]:
        """Starts the commit phase of the next processed attempts, unless another group is in its commit phase."""
        self.has_judged_early = False
        if self.phase is not None:
            return
        transactions = self._books.transactions
        self.early.forget_all_but(transactions.is_current)
        limit = self.early.limit(transactions.currtx, self._size.limit())
        attempts = transactions.consecutive_processed(limit if commit_limit is None else min(limit, commit_limit))
        if not attempts or not self._releases.has_room(len(attempts)):
            return
        fraction, known = self._books.options.max_bad_fraction, self._books.statistics
        if fraction is not None:
            outcomes = transactions.outcomes(attempts).values()
            good, story = known.bad_records.how_many_within(fraction, known.tuples, outcomes)
            if not good:
                yield from self._too_bad(attempts[0], fraction, story)
                return
            attempts = attempts[:good]
        transactions.move(attempts, AttemptState.COMMITTING)
        self.phase = CommitPhase(attempts, len(attempts), self._books.now_s, self.early.take(attempts))
        if self.phase.ran_early is None:
            yield self._start(self.phase, attempts, self._composed)

    def _too_bad(self, attempt: TransactionAttempt, fraction: float, story: str) -> Iterator[Decision]:
        """Ends the run before a transaction, of which nothing is committed: the next run reads it again."""
        text = (
            f"more records are bad than --max-bad-fraction {fraction:g} allows: with txid {attempt.txid}, {story} in "
            "this run; everything below it is committed, and the next run reads it again; fix the input or its format, "
            "or raise the limit"
        )
        failure = Failure(FailureKind.SOURCE, self._books.plan.spout_id, 0, text, trouble=Trouble.BAD_RECORD)
        yield from self._failures.failed(attempt, Phase.COMMIT, failure)

    def judge_early(self) -> Iterator[Decision]:
        """Judges the group of this turn if it ran with its wave; called last, so that the next wave runs meanwhile."""
        if self.phase is not None and self.phase.ran_early is not None:
            self.has_judged_early = True
            yield from self._judge(self.phase, self.phase.ran_early)

    def _start(self, phase: CommitPhase, attempts: Attempts, composed: bool) -> StartCommit:
        phase.attempts, phase.started_s, phase.ran_early = attempts, self._books.now_s, None
        return StartCommit(self._books.transactions.wave_of(attempts), attempts, composed)

    # What engines report

    def executed(self, event: GroupExecuted) -> Iterator[Decision]:
        """Handles a group whose commit phase has run."""
        self._books.causes.ended(event.wave_id)
        if self.phase is not None and self.phase.attempts == event.attempts:  # else this group was given up
            yield from self._judge(self.phase, event)

    def failed_by_hand(self, event: FailedByHand, executed: GroupExecuted) -> Iterator[Decision]:
        """Fails an attempt of the group whose commit phase has run and was not reported; those below it wait again."""
        if self.phase is None or self.phase.attempts != executed.attempts:
            raise ProtocolError(
                f"attempt {event.attempt} was failed by hand in a group that is not in its commit phase"
            )
        self.phase = None
        place = executed.attempts.index(event.attempt)
        self._books.statistics.worked(work_of(executed.reports, slice(place, None)), is_committed=False)
        yield from self._failures.failed(event.attempt, Phase.COMMIT, event.failure)
        self._books.transactions.defer(executed.attempts[:place])

    def crashed(self, event: GroupCrashed) -> Iterator[Decision]:
        """Handles a group whose commit phase ended without a report."""
        if self.phase is None or self.phase.attempts != event.attempts:
            self._books.causes.ended(event.wave_id)
            return  # this group was given up
        self.phase = None
        reason, kind = self._books.causes.of(event)
        if kind is not CrashKind.WAITED:
            self._books.waves.size.halve(len(event.attempts))
        what = f"the commit phase of {counted(len(event.attempts), 'attempt')}"
        yield from self._failures.crashed(event.attempts, Phase.COMMIT, what, reason, kind)

    def _judge(self, phase: CommitPhase, event: GroupExecuted) -> Iterator[Decision]:
        decision = decide_group(self._group(event.attempts), event.reports)
        if decision.failed is not None:
            attempt, failure = decision.failed
            place = event.attempts.index(attempt)
            self._books.statistics.worked(work_of(event.reports, slice(place, place + 1)), is_committed=False)
            yield from self._failures.failed(attempt, Phase.COMMIT, failure)
        step = decision.step
        self._books.transactions.defer(event.attempts[len(step.attempts) :])
        if phase.ran_early is not None:
            self.early.settled(is_wasted=isinstance(step, Again) and decision.failed is None)
        if isinstance(step, Again):
            _LOG.debug("commit phase of %d of %d repeated: %s", len(step.attempts), len(event.attempts), step.reason)
            self._composed = self._composed and step.composed
            yield self._start(phase, step.attempts, step.composed)
        elif step.attempts:
            yield self._publish(phase, step, event.reports)
        else:
            self.phase = None

    def _group(self, attempts: Attempts) -> Group:
        outcomes = self._books.transactions.outcomes(attempts)
        return Group(
            attempts=attempts,
            residues={attempt: outcome.residue for attempt, outcome in outcomes.items()},
            commit_tasks=self._books.plan.commit_tasks,
            component_order=self._books.plan.component_order,
            operations_max=self._size.operations_limit,
            is_flat=self._books.plan.may_commit_early,
            letter_counts={attempt: outcome.letter_count for attempt, outcome in outcomes.items()},
            letters_max=self._books.plan.letter_limits.per_transaction,
        )

    # The store

    def _publish(self, phase: CommitPhase, step: PublishStep, reports: tuple[TaskReport, ...]) -> Publish:
        books, last = self._books, step.attempts[-1].txid
        letters = letters_of_group(step.attempts, books.transactions.outcomes(step.attempts), reports)
        books.transactions.move(step.attempts, AttemptState.PUBLISHING)
        phase.publishing, phase.reports = step, reports
        republished = books.transactions[last].republished
        taken = () if republished is None else republished.letters
        add_letters(step.write_set, letters, books.plan.letter_limits.total, taken=taken)
        metadata = phase.metadata = books.metadata.commit_changes(
            last, self._positions(phase, last), books.transactions.notes(), republished_number=_number_of(republished)
        )
        told_txid = self._releases.told_txid
        return Publish(step.attempts, step.write_set, metadata, told_txid, republished=republished, reports=reports)

    def set_aside(self, poison: Poison) -> Iterator[Decision]:
        """Commits the transaction of a batch that is given up: nothing but the record of the batch, in order.

        Called when everything lower is committed, so that nothing else is in flight.
        """
        if not self._releases.has_room(1):
            return
        transactions = self._books.transactions
        attempt = transactions.issue(poison.txid)
        yield AttemptsIssued((attempt,))
        transactions.move((attempt,), AttemptState.SETTING_ASIDE, poison.cause.reason)
        step = PublishStep((attempt,), WriteSet())
        self.phase = phase = CommitPhase((attempt,), 1, self._books.now_s, publishing=step, poison=poison)
        positions, notes = self._positions(phase, poison.txid), transactions.notes()
        metadata = phase.metadata = self._books.metadata.commit_changes(poison.txid, positions, notes)
        yield Publish(step.attempts, step.write_set, metadata, self._releases.told_txid, poison=poison)

    def _positions(self, phase: CommitPhase, last: int) -> Mapping[int, Mapping[str, Any]]:
        """Returns the positions that the commit up to `last` stores, by txid.

        The next batch begins where one that is set aside ends, and as if nothing had been republished.
        """
        if phase.poison is not None:
            return {last: phase.poison.batch.positions}
        if self._books.transactions[last].republished is not None:
            return {last: self._books.metadata.carried_to(last)}
        return self._books.positions.uncommitted()

    def published(self, published: Published) -> Iterator[Decision]:
        """Takes down that the store has committed what was sent, and forgets it."""
        books = self._books
        books.now_s = published.now_s
        phase, step = self._answered()
        last, count = step.attempts[-1].txid, len(step.attempts)
        republished = books.transactions[last].republished
        books.metadata.committed(phase.metadata)
        ended = books.transactions.committed(step.attempts)
        if phase.poison is not None:
            self._failures.set_aside()
            books.statistics.set_aside(last, books.now_s)
            yield from self._releases.published(step.attempts)
            return
        if republished is not None and not republished.letters:
            books.statistics.replayed[republished.txid] = last
        elif republished is not None:
            books.statistics.replayed_letters += len(republished.letters)
        self._size.published(
            asked=phase.asked,
            published=count,
            operation_count=step.write_set.operations(),
            byte_count=published.byte_count,
            call_s=published.call_s,
        )
        self._warn_of_stall(step, published)
        for record in ended:
            books.waves.let_go(record.wave_id, record.attempt)
            assert record.outcome is not None
            books.statistics.committed_one(record.attempt.txid, record.outcome)
        counted = (own for report in phase.reports for place, own in report.results.counters.items() if place < count)
        letters, changes = letter_count(step.write_set), sum(own.operations() for own in step.write_set.states.values())
        books.statistics.committed_group(books.now_s, changes, counted)
        books.statistics.dead_letters += letters
        books.statistics.expired_parts += published.expired_count
        books.statistics.worked(work_of(phase.reports, slice(count)), is_committed=True)
        yield from self._releases.published(step.attempts)

    def _warn_of_stall(self, step: PublishStep, published: Published) -> None:
        """Warns of a transaction that alone keeps the server busy for too long; again once the time has doubled."""
        call_s, operations, attempt = published.call_s, step.write_set.operations(), step.attempts[0]
        is_large = operations >= FEW_OPERATIONS or published.byte_count > GROUP_BYTES_AIM
        if len(step.attempts) > 1 or not is_large or not 0 < self._target_s < call_s or call_s < 2 * self._stall_s:
            return
        self._stall_s = call_s
        _LOG.warning(
            "transaction %d, with %s, kept the server busy for %.2f s in one call, and the target is %g s "
            "(--commit-target-ms): its other clients waited; a transaction commits whole, so cut smaller ones",
            attempt.txid,
            counted(operations, "change"),
            call_s,
            self._target_s,
            extra=fields(attempt),
        )

    def refused(self, refused: Refused) -> Iterator[Decision]:
        """Handles a refusal, which changed nothing: transactions commit one by one until the culprit ends the run."""
        phase, step = self._answered()
        if phase.poison is not None:
            self._books.transactions.move(step.attempts, AttemptState.WAITING, f"refused: {refused.error}")
            yield from self._failures.not_set_aside(step.attempts[0], refused.error)
            return
        self._books.transactions.move(step.attempts, AttemptState.PROCESSED, f"refused: {refused.error}")
        self._size.one_by_one()
        if len(step.attempts) == 1:
            yield from self._failures.refused(step.attempts[0], refused.error)

    def _answered(self) -> tuple[CommitPhase, PublishStep]:
        phase, self.phase = self.phase, None
        if phase is None or phase.publishing is None:
            raise ProtocolError("the store answered a commit that was not sent")
        return phase, phase.publishing

    # Giving up, and checks

    def give_up(self) -> Iterator[Decision]:
        """Gives up the group in its commit phase, because nothing more is to be committed; its attempts are dropped."""
        phase, self.phase = self.phase, None
        if phase is not None and phase.ran_early is None:
            yield CancelWave(self._books.transactions.wave_of(phase.attempts))

    def give_up_overdue(self) -> Iterator[Decision]:
        """Cancels a commit phase that exceeds the message timeout."""
        phase, books = self.phase, self._books
        if phase is None or books.now_s - phase.started_s <= books.plan.cancel_after_s:
            return
        _LOG.warning(
            "the commit phase of %s exceeds the message timeout and is cancelled",
            counted(len(phase.attempts), "attempt"),
            extra=fields(txid=phase.attempts[0].txid, last_txid=phase.attempts[-1].txid, phase=str(Phase.COMMIT)),
        )
        phase.started_s = books.now_s  # reported once per timeout
        wave_id = books.transactions.wave_of(phase.attempts)
        books.causes.cancelled(wave_id)
        yield CancelWave(wave_id)

    def waits(self, wave_id: int) -> None:
        """Begins the time of a commit phase again: none of its tasks runs."""
        if self.phase is not None and self._books.transactions.wave_of(self.phase.attempts) == wave_id:
            self.phase.started_s = self._books.now_s

    def validate(self) -> None:
        """Checks that the group and the attempts in their commit phase agree.

        Raises:
            AssertionError: they disagree.
        """
        phase, active = self.phase, self._books.transactions.active()
        committing = sorted((each for each in active if each.state in IN_COMMIT_PHASE), key=lambda each: each.attempt)
        assert len({each.wave_id for each in committing}) <= 1, "a group of two waves"
        found = tuple(each.attempt for each in committing)
        if phase is None:
            assert not found, "attempts commit without a group"
        elif phase.publishing is not None:
            assert found == phase.publishing.attempts, "the group that was sent is not the one that publishes"
        else:
            assert found == phase.attempts, "the group that runs is not the one that commits"


def _number_of(republished: Republication | None) -> int | None:
    """Returns what the spout knows a republished batch by; 0 for dead letters, of which it is never told."""
    if republished is None:
        return None
    return 0 if republished.letters else republished.batch.number
