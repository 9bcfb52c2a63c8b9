"""The commit order of a run; read it from top to bottom. Pure.

1. The lowest processed attempts become a group, if no other is in its commit phase; its committers run (`start_next`).
2. Their reports show which prefix of the group is good (`executed`). A failed attempt is retried with all later ones; a
   good prefix runs again if its changes cannot be separated, else one atomic step publishes it (`_publish`).
3. The store has published it (`published`), or refused it and changed nothing (`refused`).
4. `Releases` waits until the commit is as durable as the run requires; then the spout's committer is notified.

Events out of turn follow at the end: a crash, a failure by hand, a phase that takes too long.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from committers.group_commit import Again, Group, PublishStep, decide_group
from committers.group_size import FEW_OPERATIONS, GroupSize
from committers.task_report import TaskReport, work_of
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import EarlyCommit, FailedByHand, GroupCrashed, GroupExecuted
from coordinator.transactional.machine.early_commits import EarlyCommits
from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.releases import Releases
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import CancelWave, Decision, Publish, Published, Refused, StartCommit
from coordinator.transactional.machine.transaction_record import AttemptState
from coordinator.transactional.machine.transaction_records import COMMITTING
from coordinator.watching.failure_cause import CrashKind, Phase
from coordinator.watching.log_records import fields
from coordinator.watching.statistics.bad_records import BadRecords
from state.attempt import Attempts, TransactionAttempt
from state.commits.commit import GROUP_BYTES_AIM
from state.errors import ProtocolError
from state.printable import counted
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch")


@dataclass(slots=True)
class CommitPhase:
    """The group in its commit phase.

    Attributes:
        attempts: the attempts whose commit phase currently runs.
        asked: the group's size at first.
        started_s: when the phase began, or was last found overdue.
        early: the group's reports, if it ran in the wave's job; the engine then runs nothing more for it.
        publish: the commit sent to the store and not answered yet.
    """

    attempts: tuple[TransactionAttempt, ...]
    asked: int
    started_s: float
    early: GroupExecuted | None = None
    publish: Publish | None = None


class Commits:
    """Commits one group after another; at most one is in its commit phase.

    Args:
        books: the run's books.
        failures: handles failed attempts.
        releases: takes over committed transactions.

    Attributes:
        phase: the group in its commit phase, None if there is none.
        early: the groups whose commit phase runs with their wave.
    """

    def __init__(self, books: RunBooks, failures: Failures, releases: Releases) -> None:
        self._books, self._failures, self._releases = books, failures, releases
        options = books.options
        self._target_s = options.commit_target_s or 0.0
        self._size = GroupSize(options.commit_group_max, options.commit_operations_max, GROUP_BYTES_AIM, self._target_s)
        self._stall_s = 0.0  # the stall that was last warned of
        self._composed = True
        self._bad_records, self._tuples = BadRecords(), 0  # of committed batches; only with a limit
        self.phase: CommitPhase | None = None
        self.early = EarlyCommits(is_on=options.early_commit and books.plan.may_commit_early)

    # 1. A group, and its committers

    def start_next(self, commit_limit: int | None) -> Iterator[Decision]:
        """Starts the commit phase of the next processed attempts, unless another group is in its commit phase."""
        if self.phase is not None:
            return
        transactions = self._books.transactions
        self.early.forget_all_but(transactions.is_current)
        limit = self.early.limit(transactions.currtx, self._size.limit())
        attempts = transactions.consecutive_processed(limit if commit_limit is None else min(limit, commit_limit))
        if not attempts or not self._releases.has_room(len(attempts)):
            return
        attempts, bad = self._within_fraction(attempts)
        if bad is not None:
            yield from self._failures.failed(attempts[0], Phase.COMMIT, bad)
            return
        transactions.move(attempts, AttemptState.COMMITTING)
        self.phase = CommitPhase(attempts, len(attempts), self._books.now_s, self.early.take(attempts))
        if self.phase.early is None:
            yield StartCommit(transactions.wave_of(attempts), attempts, self._composed)

    def _within_fraction(self, attempts: Attempts) -> tuple[Attempts, Failure | None]:
        """Returns the attempts that keep bad records within the limit, or why the first attempt ends the run.

        That attempt is not committed: the next run reads its batch again.
        """
        fraction = self._books.options.max_bad_fraction
        if fraction is None:
            return attempts, None
        outcomes = self._books.transactions.outcomes(attempts).values()
        good, story = self._bad_records.how_many_within(fraction, self._tuples, outcomes)
        if good:
            return attempts[:good], None
        text = (
            f"more records are bad than --max-bad-fraction {fraction:g} allows: with txid {attempts[0].txid}, {story} "
            "in this run; everything below it is committed, and the next run reads it again; fix the input or its "
            "format, or raise the limit"
        )
        return attempts, Failure(FailureKind.SOURCE, self._books.plan.spout_id, 0, text, trouble=Trouble.BAD_RECORD)

    def early_groups(self, attempts: Attempts) -> EarlyCommit:
        """Returns the groups of a new wave that are to run early."""
        return self.early.plan(attempts, self._size.limit(), composed=self._composed)

    def keep_early(self, executed: Iterable[GroupExecuted]) -> None:
        """Keeps groups whose commit phase ran with their wave, as long as their attempts are current."""
        is_current = self._books.transactions.is_current
        self.early.keep(group for group in executed if all(map(is_current, group.attempts)))

    # 2. What the group's committers have reported

    def judge_early(self) -> Iterator[Decision]:
        """Judges a group that ran with its wave; called last in a turn, while the turn's new wave already runs."""
        if self.phase is not None and self.phase.early is not None:
            yield from self.executed(self.phase.early)

    def executed(self, event: GroupExecuted) -> Iterator[Decision]:
        """Handles a group whose commit phase has run."""
        self._books.causes.ended(event.wave_id)
        if self.phase is not None and self.phase.attempts == event.attempts:  # else this group was given up
            yield from self._judge(self.phase, event)

    def _judge(self, phase: CommitPhase, event: GroupExecuted) -> Iterator[Decision]:
        decision = decide_group(self._group(event.attempts), event.reports)
        if decision.failed is not None:
            attempt, failure = decision.failed
            place = event.attempts.index(attempt)
            worked = work_of(event.reports, slice(place, place + 1))
            yield from self._failures.failed(attempt, Phase.COMMIT, failure, worked)
        step = decision.step
        self._books.transactions.defer(event.attempts[len(step.attempts) :])
        if phase.early is not None:
            self.early.settled(is_wasted=isinstance(step, Again) and decision.failed is None)
        if isinstance(step, Again):
            _LOG.debug("commit phase of %d of %d repeated: %s", len(step.attempts), len(event.attempts), step.reason)
            self._composed = self._composed and step.composed
            phase.attempts, phase.started_s, phase.early = step.attempts, self._books.now_s, None
            yield StartCommit(event.wave_id, step.attempts, step.composed)
        elif step.attempts:
            phase.publish = self._publish(step, event.reports)
            yield phase.publish
        else:
            self.phase = None

    def _group(self, attempts: Attempts) -> Group:
        outcomes, republished = self._books.transactions.outcomes(attempts), self._republished(attempts)
        return Group(
            attempts=attempts,
            residues={attempt: outcome.residue for attempt, outcome in outcomes.items()},
            commit_tasks=self._books.plan.commit_tasks,
            component_order=self._books.plan.component_order,
            operations_max=self._size.operations_limit,
            is_flat=self._books.plan.may_commit_early,
            letters={attempt: outcome.letters for attempt, outcome in outcomes.items() if outcome.letters},
            letter_limits=self._books.plan.letter_limits,
            letters_taken=() if republished is None else republished.letters,
        )

    def _publish(self, step: PublishStep, reports: tuple[TaskReport, ...]) -> Publish:
        books, republished, last = self._books, self._republished(step.attempts), step.attempts[-1].txid
        books.transactions.move(step.attempts, AttemptState.PUBLISHING)
        number = None if republished is None else republished.batch_number
        # the spout's next batch begins as if nothing had been republished
        positions = books.positions.uncommitted() if number is None else {last: books.metadata.carried_to(last)}
        metadata = books.metadata.commit_changes(last, positions, books.transactions.notes(), republished_number=number)
        notified_txid = self._releases.notified_txid
        return Publish(step.attempts, step.write_set, metadata, notified_txid, republished=republished, reports=reports)

    def _republished(self, attempts: Attempts) -> Republication | None:
        """Returns the batch that a group republishes; it is then the group's only transaction."""
        return self._books.transactions[attempts[-1].txid].republished

    # 3. What the store has answered

    def published(self, published: Published) -> Iterator[Decision]:
        """Records that the store has committed the group, and forgets the group."""
        books, (phase, publish) = self._books, self._answered()
        books.now_s = published.now_s
        books.metadata.committed(publish.attempts[-1].txid, publish.metadata)
        ended = books.transactions.committed(publish.attempts)
        for record in ended:
            books.waves.let_go(record.wave_id, record.attempt)
            if books.options.max_bad_fraction is not None and record.outcome is not None:
                self._bad_records.add(record.outcome)
                self._tuples += record.outcome.tuple_count
        self._learn(phase.asked, publish, published)
        yield from self._releases.published(publish.attempts)

    def refused(self, refused: Refused) -> Iterator[Decision]:
        """Handles a refusal, which changed nothing: transactions commit one by one until the culprit ends the run."""
        _, publish = self._answered()
        self._books.transactions.move(publish.attempts, AttemptState.PROCESSED, f"refused: {refused.error}")
        self._size.one_by_one()
        if len(publish.attempts) == 1:
            yield from self._failures.refused(publish.attempts[0], refused.error)

    def _answered(self) -> tuple[CommitPhase, Publish]:
        phase, self.phase = self.phase, None
        if phase is None or phase.publish is None:
            raise ProtocolError("the store answered a commit that was not sent")
        return phase, phase.publish

    def _learn(self, asked: int, publish: Publish, published: Published) -> None:
        """Learns from a commit how large groups may be; the group had `asked` transactions at first."""
        self._size.published(
            asked=asked,
            published=len(publish.attempts),
            operation_count=publish.write_set.operations(),
            byte_count=published.byte_count,
            call_s=published.call_s,
        )
        self._warn_of_stall(publish, published)

    def _warn_of_stall(self, publish: Publish, published: Published) -> None:
        """Warns of a single transaction that keeps the server busy for too long; again once its time doubles."""
        call_s, operations, attempt = published.call_s, publish.write_set.operations(), publish.attempts[0]
        is_large = operations >= FEW_OPERATIONS or published.byte_count > GROUP_BYTES_AIM
        if len(publish.attempts) > 1 or not is_large or not 0 < self._target_s < call_s or call_s < 2 * self._stall_s:
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

    # Out of turn

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

    def failed_by_hand(self, event: FailedByHand, executed: GroupExecuted) -> Iterator[Decision]:
        """Fails an attempt of the group whose commit phase has run but was not reported; lower attempts wait again."""
        if self.phase is None or self.phase.attempts != executed.attempts:
            raise ProtocolError(
                f"attempt {event.attempt} was failed by hand in a group that is not in its commit phase"
            )
        self.phase = None
        place = executed.attempts.index(event.attempt)
        worked = work_of(executed.reports, slice(place, None))
        yield from self._failures.failed(event.attempt, Phase.COMMIT, event.failure, worked)
        self._books.transactions.defer(executed.attempts[:place])

    def give_up(self) -> Iterator[Decision]:
        """Gives up the group in its commit phase, because the run commits nothing more; its attempts are dropped."""
        phase, self.phase = self.phase, None
        if phase is not None and phase.early is None:
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
        """Restarts the clock of a commit phase, because none of its tasks is running."""
        if self.phase is not None and self._books.transactions.wave_of(self.phase.attempts) == wave_id:
            self.phase.started_s = self._books.now_s

    def validate(self) -> None:
        """Checks that the group and the attempts in their commit phase agree.

        Raises:
            AssertionError: they disagree.
        """
        phase, active = self.phase, self._books.transactions.active()
        committing = sorted((each for each in active if each.state in COMMITTING), key=lambda each: each.attempt)
        assert len({each.wave_id for each in committing}) <= 1, "a group of two waves"
        found = tuple(each.attempt for each in committing)
        if phase is None:
            assert not found, "attempts commit without a group"
        elif phase.publish is not None:
            assert found == phase.publish.attempts, "the group that was sent is not the one that publishes"
        else:
            assert found == phase.attempts, "the group that runs is not the one that commits"
