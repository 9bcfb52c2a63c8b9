"""A coordinated bolt finishes each batch once, tells everyone downstream, and forgets it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.components.batch_bolts import FinishedCallback, TimeoutCallback
from state.errors import BadInputError, FailedException, SourceError, StateRefusedError, StateUnreachableError
from tests.support.tasks.one_task import A, OneTask
from tests.support.tasks.wirings import Calls, RecordingBolt, attempt


def task_of(raising=None, *, upstream=(1,), targets=(21, 22), needs_id=False, bolt=None):
    return OneTask(bolt or RecordingBolt(raising), upstream=upstream, targets=targets, needs_id=needs_id)


def names():
    return [name for name, *_ in Calls.take()]


def test_finishing_tells_every_task_downstream_how_many_tuples_it_was_sent():
    task = task_of(upstream=(1, 2))
    task.regular(1, "a", "b", "c")
    task.coord(1, 3)
    assert task.reports() == []
    task.coord(2, 0)
    assert sorted(task.reports()) == [(21, 1), (22, 2)] or sorted(task.reports()) == [(21, 2), (22, 1)]
    finished = task.end()
    assert finished.failure is None
    assert finished.edges == task.sent.edges(A)
    assert finished.residue == 0
    assert finished.counters == {"finished": 1}


def test_a_surplus_after_the_batch_was_finished_fails_it_and_reaches_no_bolt():
    task = task_of()
    task.coord(1, 0)
    task.regular(1, "too late")
    failure = task.end().failure
    assert failure == Failure(FailureKind.INCOMPLETE, "bolt", 0, "task 1 sent 0 tuples, 1 arrived")
    assert names() == ["prepare", "finish_batch", "cleanup"]


@pytest.mark.case(id="P-02")
def test_an_id_is_not_a_tuple_and_starts_no_second_round():
    task = task_of(upstream=(1, 2), needs_id=True)
    task.id()
    task.coord(1, 0)
    task.coord(2, 0)
    task.id()
    assert names() == ["prepare", "finish_batch"]
    assert len(task.reports()) == 2


@pytest.mark.case(id="P-03")
def test_a_committer_that_failed_in_the_processing_phase_does_not_finish_with_its_id():
    task = task_of({"execute": FailedException("not this one")}, upstream=(1, 2), needs_id=True)
    task.regular(1, "a")
    task.coord(1, 1)
    task.coord(2, 0)
    task.id()
    assert task.reports() == []
    assert task.end().failure == Failure(
        FailureKind.FAILED, "bolt", 0, "FailedException: not this one", "Tuple(source/default: value='a')"
    )
    assert names() == ["prepare", "execute", "cleanup"]


@pytest.mark.case(id="P-11")
@pytest.mark.parametrize("last", ["regular", "coord", "id"])
def test_the_batch_is_finished_with_whichever_event_comes_last(last):
    task = task_of(upstream=(1, 2), needs_id=True)
    events = {"regular": lambda: task.regular(1, "a"), "coord": lambda: task.coord(1, 1), "id": task.id}
    task.coord(2, 0)
    for name in events.keys() - {last}:
        events[name]()
    assert "finish_batch" not in names()
    events[last]()
    assert names().count("finish_batch") == 1


@pytest.mark.case(id="P-15")
def test_attempts_of_one_txid_have_instances_of_their_own():
    task = task_of()
    old, new = attempt(7, 1), attempt(7, 2)
    task.regular(1, "old", of=old)
    task.regular(1, "new", of=new)
    task.coord(1, 1, of=new)
    assert task.end(new).failure is None
    assert names() == ["prepare", "execute", "prepare", "execute", "finish_batch", "cleanup"]
    task.coord(1, 1, of=old)
    assert task.end(old).failure is None


def test_after_a_failure_nothing_more_is_executed():
    task = task_of({"execute:b": FailedException("no")}, upstream=(1, 2))
    task.regular(1, "a", "b", "c")
    task.regular(2, "d")
    task.coord(1, 3)
    task.coord(2, 1)
    assert task.end().failure is not None
    assert [call for call in Calls.take() if call[0] == "execute"] == [("execute", "1", "a"), ("execute", "1", "b")]


@pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch", "cleanup"])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FailedException("later"), FailureKind.FAILED),
        (StateUnreachableError("no answer"), FailureKind.UNANSWERED),
        (StateRefusedError("wrong type"), FailureKind.STATE),
        (SourceError("file is gone"), FailureKind.SOURCE),
        (BadInputError("no number"), FailureKind.RECORD),
        (ValueError("mine"), FailureKind.USER),
        (AssertionError("mine too"), FailureKind.USER),
    ],
    ids=lambda part: getattr(part, "name", type(part).__name__),
)
def test_what_a_bolt_raises_fails_the_attempt_by_its_kind_and_never_the_task(where, error, kind):
    task = task_of({where: error})
    task.regular(1, "a")
    finished = task.finish(1)
    assert finished.failure.kind is kind
    assert str(error) in finished.failure.text
    assert finished.edges == 0
    assert finished.failure.halts() == (kind not in (FailureKind.FAILED, FailureKind.UNANSWERED))
    assert bool(finished.failure.tuple_text) is (where == "execute")


@pytest.mark.case(id="P-17")
@pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch", "cleanup", "nothing"])
def test_cleanup_is_always_called_last_and_once(where):
    task = task_of({where: ValueError("mine")})
    task.regular(1, "a")
    task.finish(1)
    called = names()
    assert called[-1] == "cleanup"
    assert called.count("cleanup") == 1


def test_a_users_exception_comes_with_its_traceback_and_the_tuple():
    task = task_of({"execute:b": ValueError("not a number: b")})
    task.regular(1, "a", "b")
    failure = task.finish(2).failure
    assert failure.tuple_text == "Tuple(source/default: value='b')"
    assert failure.text.startswith("Traceback (most recent call last):\n")
    assert 'raise self.raising[f"execute:{tup[0]}"]' in failure.text
    assert failure.text.endswith("ValueError: not a number: b\n")


@pytest.mark.parametrize(
    ("reported", "story"),
    [([], "1 tuple and no report"), ([3], "3 tuples, 1 arrived"), ([0], "0 tuples, 1 arrived")],
    ids=["no report", "deficit", "surplus"],
)
def test_what_a_bolt_raises_on_an_incomplete_batch_is_replayed_and_does_not_halt(reported, story):
    """As downstream of a task that raised a FailedException halfway: what follows from half a batch is not a bug."""
    task = task_of({"execute": ValueError("mine")})
    task.regular(1, "a")
    for tuple_count in reported:
        task.coord(1, tuple_count)
    failure = task.end().failure
    assert failure.kind is FailureKind.INCOMPLETE
    assert failure.text.startswith(f"task 1 sent {story}; given these tuples, the bolt raised: Traceback")
    assert "ValueError: mine" in failure.text


class EmitsTooLate(RecordingBolt):
    """Emits when nobody downstream waits for more."""

    def cleanup(self):
        self.collector.emit(["too late"])


def test_a_tuple_that_is_emitted_after_finish_batch_is_refused_and_not_lost():
    task = task_of(bolt=EmitsTooLate())
    failure = task.finish(0).failure
    assert failure.kind is FailureKind.USER
    assert "a tuple was emitted after finish_batch had returned" in failure.text


@pytest.mark.case(id="P-10")
def test_an_ended_attempt_leaves_nothing_behind():
    task = task_of()
    for one in (attempt(1), attempt(2)):
        task.regular(1, "a", of=one)
        task.end(one)
    bolt = task.bolt
    assert len(bolt._tracking) == 0
    assert (bolt._finished, bolt.executor._attempts) == ({}, {})


def test_the_engine_may_fail_an_attempt_before_anything_else():
    task = task_of()
    damaged = Failure(FailureKind.INCOMPLETE, "bolt", 0, "frame 0 from task 1 cannot be read")
    task.bolt.on(A, [damaged])
    task.regular(1, "a")
    assert task.finish(1).failure == damaged
    assert names() == []


@st.composite
def histories(draw):
    """Events of one attempt in any order: frames, reports, the ID; maybe one is lost or one too many."""
    sizes = {source: draw(st.lists(st.integers(1, 3), max_size=3)) for source in (1, 2)}
    needs_id = draw(st.booleans())
    events: list[tuple[Any, ...]] = [
        ("regular", s, *range(size)) for s, all_sizes in sizes.items() for size in all_sizes
    ]
    events += [("coord", source, sum(all_sizes)) for source, all_sizes in sizes.items()]
    events += [("id",)] * needs_id
    fault = draw(st.sampled_from(["none", "lost", "surplus"]))
    if fault == "lost":
        del events[draw(st.integers(0, len(events) - 1))]
    elif fault == "surplus":
        events.append(("regular", draw(st.sampled_from([1, 2])), "extra"))
    repeats = draw(st.lists(st.sampled_from([e for e in events if e[0] != "regular"] or [("id",)]), max_size=3))
    return draw(st.permutations(events + repeats)), needs_id, fault


@given(histories())
def test_a_batch_is_finished_once_exactly_when_everything_has_come(history):
    events, needs_id, fault = history
    Calls.take()
    task = task_of(upstream=(1, 2), needs_id=needs_id)
    finished_after = None
    for place, (name, *arguments) in enumerate(events):
        getattr(task, name)(*arguments)
        if finished_after is None and any(call[0] == "finish_batch" for call in Calls.log):
            finished_after = place
    finished = task.end()
    done = [call[0] for call in Calls.take()]
    assert done.count("finish_batch") <= 1
    assert done.count("prepare") == done.count("cleanup") <= 1
    if fault == "none":
        assert finished.failure is None
        assert done.count("finish_batch") == 1
        assert done.index("finish_batch") == len(done) - 2
        first_place = {event: place for place, event in reversed(list(enumerate(events))) if event[0] != "regular"}
        last_regular = max((place for place, event in enumerate(events) if event[0] == "regular"), default=-1)
        needed = [place for event, place in first_place.items() if event[0] == "coord" or needs_id]
        assert finished_after == max(last_regular, *needed)
        assert [target for target, _ in task.reports()] == [21, 22]
        assert sum(count for _, count in task.reports()) == done.count("execute")
    else:
        assert finished.failure.kind is FailureKind.INCOMPLETE
        assert finished.edges == 0


# Callbacks


class Told(RecordingBolt, FinishedCallback, TimeoutCallback):
    def finished_id(self, attempt):
        self._did("finished_id", attempt.txid)
        self.collector.emit(["at last"])

    def timeout_id(self, attempt):
        self._did("timeout_id", attempt.txid)


def test_finished_id_comes_after_finish_batch_and_may_still_emit():
    task = task_of(bolt=Told())
    task.regular(1, "a")
    assert task.finish(1).failure is None
    assert names() == ["prepare", "execute", "finish_batch", "finished_id", "cleanup"]
    assert sorted(task.reports()) == [(21, 1), (22, 1)]


@pytest.mark.parametrize(
    ("where", "seen"),
    [
        ("prepare", ["prepare", "timeout_id", "cleanup"]),
        ("execute", ["prepare", "execute", "timeout_id", "cleanup"]),
        ("finish_batch", ["prepare", "execute", "finish_batch", "timeout_id", "cleanup"]),
        ("finished_id", ["prepare", "execute", "finish_batch", "finished_id", "timeout_id", "cleanup"]),
    ],
)
def test_an_attempt_that_failed_is_told_once_before_the_cleanup_whatever_failed_it(where, seen):
    task = task_of(bolt=Told({where: FailedException("no")}))
    task.regular(1, "a")
    failure = task.finish(1).failure
    assert failure.text == "FailedException: no"
    assert names() == seen


@pytest.mark.parametrize("given", [(), (1,), (1, 1)], ids=["nothing reported", "deficit", "unlike reports"])
def test_an_attempt_that_stays_incomplete_is_told(given):
    task = task_of(bolt=Told())
    task.regular(1, "a", "b")
    for tuple_count, _ in enumerate(given, start=3):
        task.coord(1, tuple_count)
    assert task.end().failure.kind is FailureKind.INCOMPLETE
    assert names() == ["prepare", "execute", "execute", "timeout_id", "cleanup"]


@pytest.mark.parametrize("later", ["timeout_id", "cleanup"])
def test_what_is_raised_after_the_failure_hides_neither_it_nor_the_cleanup(later):
    task = task_of(bolt=Told({"execute": FailedException("first"), later: ValueError("second")}))
    task.regular(1, "a")
    assert task.end().failure.text == "FailedException: first"
    assert names() == ["prepare", "execute", "timeout_id", "cleanup"]


def test_a_cleanup_that_fails_the_attempt_comes_too_late_to_be_told():
    task = task_of(bolt=Told({"cleanup": FailedException("late")}))
    assert task.finish(0).failure.text == "FailedException: late"
    assert names() == ["prepare", "finish_batch", "finished_id", "cleanup"]


def test_no_bolt_is_made_only_to_be_told_of_an_attempt_nothing_came_of():
    task = task_of(bolt=Told())
    assert task.end().failure.kind is FailureKind.INCOMPLETE
    assert names() == []
