"""Which prefix of a group is published, and that a decision is always reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committers.group_commit import Again, Group, GroupDecision, PublishStep, decide_group
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet, compose
from state.values.state_kind import StateKind, ValueType

A = tuple(TransactionAttempt(txid, 100 + txid) for txid in range(4, 8))
"""The group: txids 4 to 7."""
LATER = FailureKind.FAILED
NAMES = ["store", "report"]


def writes(**increments: int) -> WriteSet:
    if not increments:
        return WriteSet()
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, increments=dict[Any, Any](increments))})


def puts(**values: int) -> WriteSet:
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, puts=dict[Any, Any](values))})


def group_of(attempts=A, tasks=(2, 3), residues=None, operations_max=1000, is_flat=True):
    edges = residues or dict.fromkeys(attempts, 0)
    return Group(attempts, edges, frozenset(tasks), NAMES, operations_max, is_flat)


def failure(kind=LATER, text="no", component_id="store"):
    return Failure(kind, component_id, 0, text)


def report(
    task_id, *write_sets, composed=True, failed=None, reads=None, edges=None, component_id="store", results=None
):
    """One task's report: a write set for each attempt it finished, then maybe a failure."""
    made = TaskReport(task_id, component_id, composed=composed)
    for place in range(len(write_sets) if results is None else results):
        read = [["counts", key] for key in (reads or {}).get(place, [])]
        made.results.append(AttemptResult(A[place], edges=(edges or {}).get(place, 0), reads=read))
    if failed is not None:
        made.results.append(AttemptResult(A[len(made.results)], failed))
    made.write_sets = [compose(write_sets)] if composed else list(write_sets)
    return made


def test_a_group_all_tasks_have_finished_is_published_as_one():
    decision = decide_group(group_of(), [report(2, *[writes(a=1)] * 4), report(3, *[writes(a=2, b=1)] * 4)])
    assert decision == GroupDecision(PublishStep(A, writes(a=12, b=4)))


def test_a_group_ends_before_the_first_that_failed_and_the_finished_head_goes_out():
    reports = [report(2, *[writes(a=1)] * 2, failed=failure()), report(3, *[writes(b=1)] * 2, failed=failure())]
    decision = decide_group(group_of(), reports)
    assert decision.step == PublishStep(A[:2], writes(a=2, b=2))
    assert decision.failed == (A[2], failure())


def test_a_task_that_composed_more_than_the_good_prefix_is_asked_again():
    reports = [report(2, *[writes(a=1)] * 4), report(3, *[writes(b=1)] * 2, failed=failure())]
    decision = decide_group(group_of(), reports)
    assert decision.step == Again(A[:2], composed=True, reason="a task composed more than the good prefix")
    assert decision.failed == (A[2], failure())


def test_transaction_by_transaction_the_good_prefix_needs_no_second_run():
    reports = [
        report(2, *[writes(a=1)] * 4, composed=False),
        report(3, *[writes(b=1)] * 2, failed=failure(), composed=False),
    ]
    assert decide_group(group_of(), reports).step == PublishStep(A[:2], writes(a=2, b=2))


def test_if_the_first_fails_nothing_is_published():
    reports = [report(2, failed=failure(text="two")), report(3, *[writes(a=1)] * 4)]
    assert decide_group(group_of(), reports) == GroupDecision(PublishStep((), WriteSet()), (A[0], failure(text="two")))


@pytest.mark.parametrize("kinds", [(FailureKind.USER, LATER), (LATER, FailureKind.USER)])
def test_of_several_failures_the_most_telling_is_reported(kinds):
    reports = [report(task, failed=failure(kind, kind.name)) for task, kind in zip((2, 3), kinds, strict=True)]
    assert decide_group(group_of(), reports).failed == (A[0], failure(FailureKind.USER, "USER"))


def test_a_failure_of_a_higher_txid_waits_for_its_turn():
    """The lower failure decides, however telling the higher one is: it will be met again."""
    reports = [
        report(2, *[writes(a=1)] * 3, failed=failure(FailureKind.USER)),
        report(3, writes(a=1), failed=failure()),
    ]
    assert decide_group(group_of(), reports).failed == (A[1], failure())


def test_a_missing_verdict_is_a_failure():
    reports = [report(2, *[writes(a=1)] * 4, composed=False), report(3, *[writes(b=1)] * 2, composed=False)]
    decision = decide_group(group_of(), reports)
    assert decision.step == PublishStep(A[:2], writes(a=2, b=2))
    assert decision.failed == (
        A[2],
        Failure(FailureKind.INCOMPLETE, "commit", 0, f"task 3 sent no verdict on attempt {A[2]}"),
    )


@pytest.mark.parametrize("tasks", [(2,), (), (2, 3, 3), (2, 4)])
def test_one_report_from_each_commit_task_is_asked_for(tasks):
    decision = decide_group(group_of(), [report(task, *[writes(a=1)] * 4) for task in tasks])
    assert decision.step == PublishStep((), WriteSet())
    assert decision.failed is not None
    attempt, story = decision.failed
    assert attempt == A[0]
    assert story.kind is FailureKind.INCOMPLETE
    assert story.text == f"tasks {list(tasks)} sent reports, expected one from each of [2, 3]"


def test_the_residue_has_to_be_cancelled_by_the_edges_that_were_read():
    residues = {A[0]: 1 ^ 2, A[1]: 4 ^ 8, A[2]: 16, A[3]: 32}
    reports = [
        report(2, *[writes(a=1)] * 4, edges={0: 1, 1: 4, 2: 16, 3: 32}, composed=False),
        report(3, *[writes(b=1)] * 4, edges={0: 2, 1: 9}, composed=False),
    ]
    decision = decide_group(group_of(residues=residues), reports)
    assert decision.step == PublishStep(A[:1], writes(a=1, b=1))
    story = "commit tasks did not read what the processing phase sent"
    assert decision.failed == (A[1], Failure(FailureKind.INCOMPLETE, "commit", 0, story))


def test_without_commit_tasks_a_group_is_published_empty():
    assert decide_group(group_of(tasks=()), []) == GroupDecision(PublishStep(A, WriteSet()))


def test_without_commit_tasks_a_residue_is_a_failure():
    residues = dict.fromkeys(A, 0) | {A[1]: 5}
    assert decide_group(group_of(tasks=(), residues=residues), []).step == PublishStep(A[:1], WriteSet())


def test_changes_where_order_matters_are_asked_for_transaction_by_transaction():
    reports = [report(2, *[puts(a=1)] * 4), report(3, *[puts(a=2)] * 4)]
    step = decide_group(group_of(), reports).step
    assert isinstance(step, Again)
    assert (step.attempts, step.composed) == (A, False)
    assert step.reason == "two tasks changed the same field of a hash state, so compose transaction by transaction"


def test_changes_are_composed_by_txid_then_component_then_task_then_call():
    first = [report(3, puts(a=3), puts(a=13), composed=False), report(2, puts(a=2), puts(a=12), composed=False)]
    decision = decide_group(group_of(A[:2]), first)
    assert decision.step == PublishStep(A[:2], puts(a=13))
    below = [
        report(3, puts(a=3), writes(), composed=False, component_id="store"),
        report(2, puts(a=2), writes(), composed=False, component_id="report"),
    ]
    assert decide_group(group_of(A[:2]), below).step == PublishStep(A[:2], puts(a=2))


def test_one_transaction_needs_no_second_run_even_if_order_matters():
    reports = [report(2, puts(a=1)), report(3, puts(a=2))]
    assert decide_group(group_of(A[:1]), reports).step == PublishStep(A[:1], puts(a=2))


def test_a_group_that_read_is_asked_for_transaction_by_transaction():
    step = decide_group(group_of(), [report(2, *[writes(a=1)] * 4, reads={1: ["z"]}), report(3, *[writes()] * 4)]).step
    assert step == Again(A, composed=False, reason="committers read state, so compose transaction by transaction")


def test_one_transaction_that_read_is_published_at_once():
    decision = decide_group(group_of(A[:1]), [report(2, writes(a=1), reads={0: ["a"]}), report(3, writes())])
    assert decision.step == PublishStep(A[:1], writes(a=1))


def reading(reads, third=None):
    """Task 2 writes `a` in every transaction; task 3 reads as given."""
    return [
        report(2, *[writes(a=1)] * 4, composed=False),
        report(3, *[third or writes()] * 4, composed=False, reads=reads),
    ]


def test_a_group_ends_before_the_first_that_read_what_a_lower_one_wrote_in_another_task():
    step = decide_group(group_of(), reading({0: ["a"], 1: ["b"], 2: ["a"]})).step
    assert step == PublishStep(A[:2], writes(a=2))


def test_a_field_nobody_else_wrote_may_be_read():
    step = decide_group(group_of(), reading({place: ["b"] for place in range(4)}, writes(b=1))).step
    assert step == PublishStep(A, writes(a=4, b=4))


def test_what_another_task_writes_in_the_same_transaction_is_not_seen_and_no_conflict():
    step = decide_group(group_of(A[:1]), reading({0: ["a"]})).step
    assert isinstance(step, PublishStep)
    assert step.attempts == A[:1]


@pytest.mark.parametrize("composed", [False, True])
@pytest.mark.parametrize("by_reader", [False, True])
def test_an_attempt_that_failed_on_what_a_lower_one_has_changed_since_runs_again(composed, by_reader):
    def reports(reads, first):
        failing = [report(3, *[writes()] * first, composed=composed, reads=reads, failed=failure(FailureKind.USER))]
        if not by_reader:
            failing = [report(3, *[writes()] * 4, composed=composed, reads=reads)]
            failing += [report(4, *[writes()] * first, composed=composed, failed=failure(FailureKind.USER))]
        elif reads:
            failing[0].results.reads[first] = [["counts", key] for key in reads[first]]
        return [report(2, *[writes(a=1)] * 4, composed=composed), *failing]

    group = group_of(tasks=(2, 3) if by_reader else (2, 3, 4))
    stale = decide_group(group, reports({2: ["a"]}, 2))
    assert (stale.failed, stale.step.attempts) == (None, A[:2])
    assert decide_group(group, reports({2: ["b"]}, 2)).failed == (A[2], failure(FailureKind.USER))
    assert decide_group(group, reports({0: ["a"]}, 0)).failed == (A[0], failure(FailureKind.USER))


def test_reads_beyond_the_good_prefix_do_not_count():
    reports = [report(2, *[writes(a=1)] * 2, failed=failure()), report(3, *[writes(b=1)] * 2, failed=failure())]
    reports[1].results.reads[2] = [["counts", "a"]]
    assert decide_group(group_of(), reports).step == PublishStep(A[:2], writes(a=2, b=2))


@pytest.mark.parametrize("most", [5, 7])
def test_a_group_over_the_operation_limit_is_asked_again_half_as_long_for_a_part_may_have_most_changes(most):
    sets = [[writes(**{f"{task}{n}": 1}) for n in range(4)] for task in "st"]
    step = decide_group(group_of(operations_max=most), [report(2, *sets[0]), report(3, *sets[1])]).step
    assert step == Again(A[:2], composed=True, reason=f"8 operations exceed the limit of {most}")


def test_transaction_by_transaction_the_group_ends_at_the_operation_limit():
    sets = [[writes(**{f"{task}{n}": 1}) for n in range(4)] for task in "st"]
    reports = [report(2, *sets[0], composed=False), report(3, *sets[1], composed=False)]
    assert decide_group(group_of(operations_max=5), reports).step == PublishStep(A[:2], writes(s0=1, t0=1, s1=1, t1=1))
    assert decide_group(group_of(operations_max=1), reports).step == PublishStep(A[:1], writes(s0=1, t0=1))


def test_one_transaction_over_the_operation_limit_goes_alone():
    big = writes(**{f"f{n}": 1 for n in range(9)})
    for composed in (True, False):
        step = decide_group(group_of(A[:1], (2,), operations_max=1), [report(2, big, composed=composed)]).step
        assert step == PublishStep(A[:1], big)


def test_a_report_survives_the_wire():
    made = report(2, writes(a=1), failed=failure(), reads={0: ["a", "b"]}, edges={0: 2**64 - 1}, composed=False)
    made.results.counters[0] = {"lines": 3}
    assert TaskReport.from_wire(unpack(pack(made.to_wire()))) == made
    assert made.results.good_count() == 1
    assert TaskReport(2, "store").results.good_count() == 0


# Whatever tasks report, the loop of running again comes to an end.


@dataclass
class RandomTasks:
    """Commit tasks that do the same for an attempt each time they are run, or something else each time."""

    data: Any
    is_steady: bool
    done: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)

    def run(self, attempts, *, composed):
        return [self._report(task, attempts, composed=composed) for task in (2, 3)]

    def _report(self, task, attempts, *, composed):
        made, sets = TaskReport(task, "store", composed=composed), []
        for attempt in attempts:
            failing, written, read = self._of(task, attempt.txid)
            reads = [["counts", key] for key in sorted(read)]
            made.results.append(AttemptResult(attempt, failure() if failing else None, reads=reads))
            if failing:
                break
            sets.append(puts(**written) if task == 3 else writes(**written))
        made.write_sets = [compose(sets)] if composed else sets
        return made

    def _of(self, task, txid):
        if not self.is_steady or (task, txid) not in self.done:
            rarely = st.sampled_from([False] * 9 + [True])
            fields = st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), max_size=2)
            self.done[task, txid] = self.data.draw(
                st.tuples(rarely, fields, st.sets(st.sampled_from("abc"), max_size=1))
            )
        return self.done[task, txid]


@given(st.data(), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_again_always_makes_progress_until_something_is_published_or_fails(data, size, operations_max, is_steady):
    tasks = RandomTasks(data, is_steady)
    attempts = tuple(TransactionAttempt(txid, 1) for txid in range(1, size + 1))
    composed, measure = True, (size, 2)
    while True:
        group = group_of(attempts, operations_max=operations_max)
        decision = decide_group(group, tasks.run(attempts, composed=composed))
        if isinstance(decision.step, PublishStep):
            break
        attempts, composed = decision.step.attempts, decision.step.composed
        assert attempts
        assert (len(attempts), 1 + composed) < measure
        measure = (len(attempts), 1 + composed)
    step = decision.step
    assert step.attempts == attempts[: len(step.attempts)]
    assert step.attempts or decision.failed


def test_an_error_of_user_code_on_input_that_was_not_sent_is_replayed():
    """A commit phase may read what another execution of a task has left; what user code says of it proves nothing."""
    broken = failure(FailureKind.USER, "KeyError: 'a'")
    group = group_of(A[:1], residues={A[0]: 5})
    decision = decide_group(group, [report(2, failed=broken), report(3, writes(a=1))])
    assert decision.failed is not None
    attempt, found = decision.failed
    assert (attempt, found.kind) == (A[0], FailureKind.INCOMPLETE)
    assert "KeyError: 'a'" in found.text


@pytest.mark.parametrize(
    "group",
    [group_of(A[:1]), group_of(A[:1], residues={A[0]: 5}, is_flat=False)],
    ids=["read as it was sent", "commit tasks feed one another, so that edges do not tell"],
)
def test_an_error_of_user_code_on_what_may_have_been_sent_stops_the_run(group):
    broken = failure(FailureKind.USER, "KeyError: 'a'")
    assert decide_group(group, [report(2, failed=broken), report(3, writes(a=1))]).failed == (A[0], broken)
