"""When is a batch complete: every order, repeat, loss and surplus of what a task may hear."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.completeness.tracking import Tracking, TrackingStatus
from tests.support.tasks.wirings import attempt

WAITING, COMPLETE, FAILED = TrackingStatus.WAITING, TrackingStatus.COMPLETE, TrackingStatus.FAILED
A = attempt(1)


def make(upstream=(1, 2), *, single_groups=(), needs_id=False):
    return Tracking(upstream, single_groups=single_groups, needs_id=needs_id, component_id="bolt", task_index=0)


def tell(tracking, event, of=A):
    name, *arguments = event
    getattr(tracking, name)(of, *arguments)
    return tracking.status(of)


def tell_all(tracking, *events):
    return [tell(tracking, event) for event in events]


def failure(kind=FailureKind.FAILED, text="no"):
    return Failure(kind, "bolt", 0, text)


@st.composite
def batches(draw):
    """What one attempt's sources send: (source -> tuple counts of its frames)."""
    source_count = draw(st.integers(1, 4))
    return {source: draw(st.lists(st.integers(1, 5), max_size=3)) for source in range(1, source_count + 1)}


def events_of(batch):
    regular = [("regular", source, size) for source, sizes in batch.items() for size in sizes]
    return regular + [("coord", source, sum(sizes)) for source, sizes in batch.items()]


def expected_status(heard, sources, *, needs_id):
    """Said apart from the implementation: all reports are in, each count is what came, the ID is there."""
    received: Counter[int] = Counter()
    reported: dict[int, set[int]] = {}
    for name, *arguments in heard:
        if name == "regular":
            received[arguments[0]] += arguments[1]
        elif name == "coord":
            reported.setdefault(arguments[0], set()).add(arguments[1])
    if any(len(counts) > 1 for counts in reported.values()) or reported.keys() - sources:
        return FAILED
    if needs_id and ("id",) not in heard:
        return WAITING
    matches = all(reported.get(source) == {received[source]} for source in set(sources) | received.keys())
    return COMPLETE if matches else WAITING


@given(batches(), st.booleans(), st.randoms(use_true_random=False), st.data())
def test_any_order_with_any_repeats_of_reports_completes_with_the_last_missing_event(batch, needs_id, random, data):
    events: list[tuple[Any, ...]] = events_of(batch) + [("id",)] * needs_id
    reports = [event for event in events if event[0] != "regular"]
    events += data.draw(st.lists(st.sampled_from(reports), max_size=4))
    random.shuffle(events)
    tracking = make(batch, needs_id=needs_id)
    for place, event in enumerate(events, start=1):
        assert tell(tracking, event) is expected_status(events[:place], batch.keys(), needs_id=needs_id)
    assert tracking.status(A) is COMPLETE


@pytest.mark.case(id="P-07")
@given(batches(), st.booleans(), st.randoms(use_true_random=False), st.data())
def test_one_event_lost_never_completes(batch, needs_id, random, data):
    events: list[tuple[Any, ...]] = events_of(batch) + [("id",)] * needs_id
    random.shuffle(events)
    del events[data.draw(st.integers(0, len(events) - 1))]
    tracking = make(batch, needs_id=needs_id)
    heard = tell_all(tracking, *events)
    assert COMPLETE not in heard[-1:]
    assert tracking.failure(A).kind is FailureKind.INCOMPLETE


@given(batches(), st.randoms(use_true_random=False), st.data())
def test_one_surplus_never_stays_complete(batch, random, data):
    events = [*events_of(batch), ("regular", data.draw(st.sampled_from([*batch, 99])), 1)]
    random.shuffle(events)
    tracking = make(batch)
    tell_all(tracking, *events)
    assert tracking.status(A) is WAITING
    assert tracking.failure(A).kind is FailureKind.INCOMPLETE


@pytest.mark.case(id="P-15")
@given(st.lists(st.tuples(st.integers(0, 2), batches()), max_size=4, unique_by=lambda e: e[0]), st.data())
def test_attempts_are_told_apart(several, data):
    """Attempts at the same txid share nothing: each completes by its own events, however they mix."""
    tracking = make(range(1, 5))
    pending = []
    for attempt_id, batch in several:
        whole = {source: batch.get(source, []) for source in range(1, 5)}
        pending += [(attempt(7, attempt_id), event) for event in events_of(whole)]
    left = Counter(of for of, _ in pending)
    for of, event in data.draw(st.permutations(pending)):
        left[of] -= 1
        assert (tell(tracking, event, of) is COMPLETE) == (left[of] == 0)
    assert len(tracking) == len(several)


@st.composite
def single_batches(draw):
    """Groups of tasks of which one reports, that task, and what an attempt's sources send."""
    groups, following = [], 100
    for _ in range(draw(st.integers(1, 3))):
        groups.append(range(following, following + draw(st.integers(1, 3))))
        following += 10
    batch = draw(st.one_of(st.just({}), batches()))
    chosen = [draw(st.sampled_from(group)) for group in groups]
    return groups, batch, chosen, {task: draw(st.lists(st.integers(1, 5), max_size=3)) for task in chosen}


@given(single_batches(), st.booleans(), st.randoms(use_true_random=False), st.data())
def test_of_a_single_group_one_report_completes_whoever_sends_it_in_any_order(several, needs_id, random, data):
    groups, batch, _, singles = several
    whole = batch | singles
    events: list[tuple[Any, ...]] = events_of(whole) + [("id",)] * needs_id
    reports = [event for event in events if event[0] != "regular"]
    events += data.draw(st.lists(st.sampled_from(reports), max_size=4))
    random.shuffle(events)
    tracking = make(batch, single_groups=groups, needs_id=needs_id)
    for place, event in enumerate(events, start=1):
        assert tell(tracking, event) is expected_status(events[:place], whole.keys(), needs_id=needs_id)
    assert tracking.status(A) is COMPLETE
    assert not tracking.is_lost(A)


@pytest.mark.case(id="P-07")
@given(single_batches(), st.randoms(use_true_random=False), st.data())
def test_a_single_group_of_which_one_event_is_lost_never_completes(several, random, data):
    groups, batch, _, singles = several
    events = events_of(batch | singles)
    random.shuffle(events)
    del events[data.draw(st.integers(0, len(events) - 1))]
    tracking = make(batch, single_groups=groups)
    assert COMPLETE not in tell_all(tracking, *events)[-1:]
    assert tracking.failure(A).kind is FailureKind.INCOMPLETE


@given(single_batches(), st.integers(0, 3), st.randoms(use_true_random=False), st.data())
def test_a_second_report_of_a_single_group_fails_the_attempt(several, tuple_count, random, data):
    groups, batch, chosen, singles = several
    second = data.draw(st.sampled_from([task for group in groups for task in group] + [99]))
    events = [*events_of(batch | singles), ("coord", second, tuple_count)]
    random.shuffle(events)
    tracking = make(batch, single_groups=groups)
    tell_all(tracking, *events)
    is_repeat = second in chosen and tuple_count == sum(singles[second])
    assert tracking.status(A) is (COMPLETE if is_repeat else FAILED)


def test_a_single_group_says_who_reported_and_who_did_not():
    tracking = make(upstream=(1,), single_groups=[(5, 6, 7)])
    assert tell_all(tracking, ("coord", 1, 0), ("regular", 6, 2)) == [WAITING, WAITING]
    assert tracking.failure(A).text == "none of tasks [5, 6, 7] reported; task 6 sent 2 tuples and no report"
    assert tell(tracking, ("coord", 7, 1)) is WAITING
    assert tracking.failure(A).text == "task 6 sent 2 tuples and no report; task 7 sent 1 tuple, 0 arrived"
    assert tell(tracking, ("coord", 6, 2)) is FAILED
    assert tracking.failure(A).text == "tasks [6, 7] reported, but only one of them may"


def test_an_attempt_is_lost_once_it_failed_or_more_came_than_was_sent():
    tracking = make(upstream=(1, 2))
    heard = [("regular", 1, 2), ("coord", 2, 1), ("regular", 2, 1), ("coord", 1, 3), ("regular", 1, 1)]
    for event in heard:
        tell(tracking, event)
        assert not tracking.is_lost(A)
    assert tracking.status(A) is COMPLETE
    tell(tracking, ("regular", 1, 1))
    assert tracking.is_lost(A)
    tracking.fail(attempt(2), failure())
    assert tracking.is_lost(attempt(2))


@pytest.mark.case(id="P-17")
def test_a_surplus_of_one_source_does_not_hide_a_deficit_of_another():
    tracking = make()
    tell_all(tracking, ("coord", 1, 3), ("coord", 2, 3), ("regular", 1, 2), ("regular", 2, 4))
    assert tracking.status(A) is WAITING
    assert tracking.failure(A).text == "task 1 sent 3 tuples, 2 arrived; task 2 sent 3 tuples, 4 arrived"


@pytest.mark.case(id="P-03")
def test_a_failure_before_the_first_report_sticks():
    tracking = make(upstream=(1,), needs_id=True)
    tracking.fail(A, failure())
    assert tell_all(tracking, ("regular", 1, 1), ("coord", 1, 1), ("id",)) == [FAILED] * 3
    assert tracking.failure(A) == failure()


@pytest.mark.case(id="P-11")
@pytest.mark.parametrize(
    "order",
    [
        [("coord", 1, 2), ("coord", 2, 0), ("id",), ("regular", 1, 2)],
        [("coord", 1, 2), ("regular", 1, 2), ("id",), ("coord", 2, 0)],
        [("coord", 1, 2), ("regular", 1, 2), ("coord", 2, 0), ("id",)],
    ],
    ids=["regular last", "coord last", "id last"],
)
def test_whichever_event_is_last_completes_the_batch(order):
    assert tell_all(make(needs_id=True), *order) == [WAITING, WAITING, WAITING, COMPLETE]


def test_a_task_without_sources_is_complete_from_the_start():
    assert make(upstream=()).status(A) is COMPLETE
    committer = make(upstream=(), needs_id=True)
    assert committer.status(A) is WAITING
    assert tell(committer, ("id",)) is COMPLETE


def test_a_report_is_compared_on_repeat_and_never_added():
    tracking = make(upstream=(1,))
    assert tell_all(tracking, ("coord", 1, 1), ("coord", 1, 1), ("regular", 1, 1)) == [WAITING, WAITING, COMPLETE]
    assert tell(tracking, ("coord", 1, 2)) is FAILED
    assert tracking.failure(A).text == "task 1 reported 1 tuple first, then 2"


def test_a_report_of_a_task_that_is_no_source_fails_the_attempt():
    tracking = make()
    assert tell(tracking, ("coord", 3, 0)) is FAILED
    assert tracking.failure(A).text == "task 3 sent a report but is not upstream"


def test_the_most_telling_failure_is_kept_and_of_equal_ones_the_first():
    tracking = make(upstream=())
    kinds = [FailureKind.INCOMPLETE, FailureKind.FAILED, FailureKind.FAILED, FailureKind.USER, FailureKind.STATE]
    for number, kind in enumerate(kinds):
        tracking.fail(A, failure(kind, f"failure {number}"))
    assert tracking.failure(A) == failure(FailureKind.USER, "failure 3")
    second = attempt(2)
    tracking.fail(second, failure(text="first"))
    tracking.fail(second, failure(text="second"))
    assert tracking.failure(second).text == "first"


@pytest.mark.parametrize("kind", FailureKind)
def test_a_failure_that_halts_counts_only_if_all_that_was_sent_has_come(kind):
    tracking = make(upstream=(1,))
    tell_all(tracking, ("coord", 1, 2), ("regular", 1, 1))
    tracking.fail(A, failure(kind, "the story"))
    found = tracking.failure(A)
    if kind <= FailureKind.UNREACHABLE:
        story = "task 1 sent 2 tuples, 1 arrived; given these tuples, the bolt raised: the story"
        assert found == Failure(FailureKind.INCOMPLETE, "bolt", 0, story)
    else:
        assert found == failure(kind, "the story")
    tell(tracking, ("regular", 1, 1))
    assert tracking.failure(A) == failure(kind, "the story")


def test_a_missing_id_is_named():
    tracking = make(upstream=(1,), needs_id=True)
    tell(tracking, ("coord", 1, 0))
    assert tracking.failure(A) == Failure(FailureKind.INCOMPLETE, "bolt", 0, "the ID tuple did not arrive")


def test_forgotten_attempts_leave_nothing_behind():
    tracking = make()
    tell(tracking, ("coord", 1, 0))
    assert len(tracking) == 1
    tracking.forget(A)
    tracking.forget(A)
    assert len(tracking) == 0
    assert tell(tracking, ("coord", 2, 0)) is WAITING
