"""The acker of a wave: an attempt is processed when every task has reported and its tree has closed."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import xor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.batches.attempt_reports import TaskReports
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_acker import BatchAcker
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.watching.metrics import TaskMetrics
from state.codec import pack, unpack
from tests.support.case_names import shown
from tests.support.tasks.wirings import attempt

ACKER, EMITTER, LEFT, RIGHT, COMMIT = 50, 1, 2, 3, 9
COMPONENTS = {EMITTER: ("lines", 0), LEFT: ("split", 0), RIGHT: ("split", 1)}
E12, E13, E19, E29, E39 = (0x9E3779B97F4A7C15 * n % 2**64 for n in range(1, 6))
A, B = attempt(1), attempt(2)
METADATA = {"partition.0": [0, 17]}
SENT = TaskMetrics(emitted={"default": 5}, transferred={"default": 5}, batches=1)


def done(tuple_count, time_ns):
    run = {"lines/default": tuple_count}
    return TaskMetrics({"default": 1}, {"default": 2}, run, {"lines/default": time_ns}, 7, 1)


def init(of=A):
    return {of: batch_edge(of, EMITTER, b"metadata")}


def result(task_id, *edges, of=A, **others) -> AttemptResult:
    """What a task says that has read or sent these edges."""
    component_id, _ = COMPONENTS.get(task_id, ("", 0))
    given: dict[str, Any] = {"metrics": {component_id: TaskMetrics()}} | others
    return AttemptResult(of, edges=reduce(xor, edges, 0), **given)


def results(of=A) -> dict[int, AttemptResult]:
    """What the tasks of a small graph report when all is well: lines -> split x 2 -> a commit task."""
    lines: dict[str, Any] = {"tuple_count": 5, "counters": {"bytes": 40}, "metrics": {"lines": replace(SENT)}}
    left: dict[str, Any] = {"counters": {"words": 9}, "metrics": {"split": done(3, 40)}}
    right: dict[str, Any] = {"counters": {"words": 4}, "metrics": {"split": done(2, 2)}}
    return {
        EMITTER: result(EMITTER, init(of)[of], E12, E13, of=of, residue=E19, **lines),
        LEFT: result(LEFT, E12, of=of, residue=E29, **left),
        RIGHT: result(RIGHT, E13, of=of, residue=E39, **right),
    }


def reports(of=A, given=None, metadata=METADATA) -> list[Frame]:
    sent = []
    for task_id, reported in (given or results(of)).items():
        if task_id == EMITTER:
            reported.metadata, reported.began_from = dict(metadata), dict.fromkeys(metadata, 7)
        table = TaskReports(task_id, ACKER)
        table.add(0, reported)
        sent.append(Frame(of, task_id, 0, ACKER, FrameKind.ACK, table.to_payload()))
    return sent


def judge(frames, edges=None) -> dict[Any, AttemptResult]:
    acker = BatchAcker(ACKER, edges if edges is not None else init(), COMPONENTS)
    for frame in frames:
        acker.receive(frame.sender, (frame.attempt,), frame.payload)
    return {outcome.attempt: outcome for outcome in acker.outcomes()}


def with_cuts(frames, cuts, sender=EMITTER):
    """The same reports, but these are the cuts that arrive: scope -> (link to what it was cut from, cut)."""
    changed = []
    for frame in frames:
        skipped, results = unpack(frame.payload)
        arriving = cuts if frame.sender == sender else {}
        results[RARE][METADATA_AT] = {0: {scope: cut for scope, (_, cut) in arriving.items()}} if arriving else {}
        results[RARE][BEGAN_FROM_AT] = {0: {scope: link for scope, (link, _) in arriving.items()}} if arriving else {}
        changed.append(frame._replace(payload=pack([skipped, results])))
    return changed


def story(frames, of=A):
    failure = judge(frames)[of].failure
    assert failure is not None
    return failure.kind, failure.component_id, failure.task_index, failure.text


OPEN = (FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, "tasks did not receive what others sent")


@given(st.permutations(reports()))
def test_an_attempt_is_processed_when_all_have_reported_in_any_order(frames):
    assert judge(frames) == {
        A: AttemptResult(
            A,
            failure=None,
            residue=E19 ^ E29 ^ E39,
            metadata=METADATA,
            began_from={"partition.0": 7},
            tuple_count=5,
            counters={"bytes": 40, "words": 13},
            metrics={
                "lines": SENT,
                "split": TaskMetrics(
                    {"default": 2}, {"default": 4}, {"lines/default": 5}, {"lines/default": 42}, finish_ns=14, batches=2
                ),
            },
        )
    }


@given(st.permutations(reports(A) + reports(B)), st.sampled_from([f for f in reports(A) if f.kind is FrameKind.ACK]))
def test_attempts_are_judged_apart(frames, lost):
    outcomes = judge([frame for frame in frames if frame != lost], {**init(A), **init(B)})
    assert outcomes[A].failure is not None
    assert outcomes[B].failure is None


@pytest.mark.parametrize("task_id", COMPONENTS)
def test_a_missing_report_is_a_failure_that_names_the_task(task_id):
    frames = [f for f in reports() if (f.sender, f.kind) != (task_id, FrameKind.ACK)]
    assert story(frames) == (FailureKind.INCOMPLETE, *COMPONENTS[task_id], "sent no report")


def test_an_attempt_nobody_reports_on_is_a_failure():
    assert story([]) == (FailureKind.INCOMPLETE, "lines", 0, "sent no report")


def test_a_missing_report_is_a_failure_even_if_the_tree_has_closed():
    edge = init()[A]
    frames = reports(given={EMITTER: result(EMITTER, edge, E12), LEFT: result(LEFT, E12)}, metadata={})
    assert story(frames) == (FailureKind.INCOMPLETE, "split", 1, "sent no report")


@pytest.mark.parametrize("times", [2, 3, 4])
@pytest.mark.parametrize("task_id", COMPONENTS)
@given(st.randoms(use_true_random=False))
def test_a_repeated_report_is_a_failure_however_often_it_comes(task_id, times, random):
    frames = reports()
    frames += [f for f in frames if (f.sender, f.kind) == (task_id, FrameKind.ACK)] * (times - 1)
    random.shuffle(frames)
    assert story(frames) == (FailureKind.INCOMPLETE, *COMPONENTS[task_id], "reported more than once")


@pytest.mark.parametrize(
    ("cuts", "sender"),
    [
        ({}, EMITTER),
        ({"partition.0": (7, [0, 18])}, EMITTER),
        ({"partition.1": (7, [0, 17])}, EMITTER),
        ({"partition.0": (8, [0, 17])}, EMITTER),
        ({"partition.0": (7, [0, 17])}, LEFT),
    ],
    ids=["lost", "another cut", "another partition", "cut from elsewhere", "of another task"],
)
def test_lost_or_altered_metadata_leaves_the_tree_open(cuts, sender):
    assert story(with_cuts(reports(), cuts, sender)) == OPEN


def test_metadata_of_another_attempt_leaves_both_trees_open():
    ours, theirs = reports(A), reports(B, metadata={"other": 1})
    swapped = with_cuts(ours, {"other": (7, 1)}) + with_cuts(theirs, {"partition.0": (7, [0, 17])})
    outcomes = judge(swapped, {**init(A), **init(B)})
    assert all(outcome.failure is not None for outcome in outcomes.values())


TXIDS, ATTEMPT_IDS, NUMBERS, RARE, WORK = range(5)
FAILURE_AT, METADATA_AT, BEGAN_FROM_AT, COUNTERS_AT, *_ = range(6)
NO_METRICS = [[0], [1, []]]


def with_part(part, damaged, at=None):
    """A report on an attempt that is good but for one part, or for one of the columns in it."""
    good: list[Any] = [[A.txid], [A.attempt_id], [[0], [0], [0]], [{} for _ in range(6)], {"lines": NO_METRICS}]
    if at is None:
        good[part] = damaged
    else:
        good[part][at] = damaged
    return pack([b"", good])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        pack(5),
        pack("text"),
        pack([1, 2]),
        pack([b"", [[], [], [], []]]),
        pack(["", [[], [], [], [], {}]]),
        with_part(ATTEMPT_IDS, []),
        with_part(ATTEMPT_IDS, 7),
        with_part(NUMBERS, ["edges"], 0),
        with_part(NUMBERS, [None], 1),
        with_part(NUMBERS, ["5"], 2),
        with_part(NUMBERS, [], 0),
        with_part(NUMBERS, 0),
        with_part(WORK, 7),
        with_part(WORK, {"lines": [1, []]}),
        with_part(WORK, {"lines": [[0], [1, [[9, "default", [1]]]]]}),
        with_part(WORK, {"lines": [[0], [1, [[0, "default", 1]]]]}),
        with_part(RARE, {0: []}, FAILURE_AT),
        with_part(RARE, {0: [1, "split"]}, FAILURE_AT),
        with_part(RARE, {0: {"kind": 1}}, FAILURE_AT),
        with_part(RARE, {0: [99, "split", 0, "text", ""]}, FAILURE_AT),
        with_part(RARE, 7, FAILURE_AT),
        with_part(RARE, {0: 7}, COUNTERS_AT),
        with_part(RARE, {0: {"partition.0": 1}}, METADATA_AT),
        with_part(RARE, {0: 7}, METADATA_AT),
    ],
    ids=shown,
)
def test_a_damaged_report_fails_the_attempt_and_never_the_task(payload):
    frames = [f._replace(payload=payload) if f.sender == EMITTER else f for f in reports()]
    kind_of_failure, component_id, _, text = story(frames)
    assert kind_of_failure is FailureKind.INCOMPLETE
    assert component_id == "lines"
    assert text.startswith("report cannot be read: ")


@given(st.binary(max_size=30) | st.recursive(st.none() | st.integers(), st.lists, max_leaves=8).map(pack))
def test_no_content_of_a_report_gets_out_of_the_acker_as_an_exception(payload):
    frames = [f._replace(payload=payload) if f.sender == LEFT else f for f in reports()]
    assert judge(frames)[A].failure is not None


@pytest.mark.parametrize("own", [[A, B], [B]], ids=["the whole wave", "another acker decides some"])
def test_attempts_that_all_tasks_skip_are_processed(own):
    acker = BatchAcker(ACKER, dict.fromkeys(own, 0), COMPONENTS)
    for task_id in COMPONENTS:
        table = TaskReports(task_id, ACKER)
        table.skipped |= 0b11
        acker.receive(task_id, (A, B), table.to_payload())
    assert list(acker.outcomes()) == [AttemptResult(of) for of in own]


def test_an_attempt_that_is_skipped_and_reported_is_a_failure():
    table = TaskReports(LEFT, ACKER)
    table.skipped |= 0b1
    skipped = Frame(A, LEFT, 0, ACKER, FrameKind.ACK, table.to_payload())
    assert story([*reports(), skipped]) == (FailureKind.INCOMPLETE, "split", 0, "reported more than once")


def test_a_task_that_skips_an_attempt_whose_tuples_it_was_sent_leaves_the_tree_open():
    table = TaskReports(LEFT, ACKER)
    table.skipped |= 0b1
    skipped = Frame(A, LEFT, 0, ACKER, FrameKind.ACK, table.to_payload())
    assert story([frame for frame in reports() if frame.sender != LEFT] + [skipped]) == OPEN


def test_reports_on_many_attempts_are_read_place_by_place():
    table = TaskReports(EMITTER, ACKER)
    edges = {**init(A), **init(B)}
    for place, (of, edge) in enumerate(edges.items()):
        figures: dict[str, Any] = {"tuple_count": 1, "counters": {"bytes": 40 + place}, "metrics": {"lines": SENT}}
        table.add(place, result(EMITTER, edge, of=of, **figures))
    acker = BatchAcker(ACKER, edges, {EMITTER: COMPONENTS[EMITTER]})
    acker.receive(EMITTER, (A, B), table.to_payload())
    judged = [(o.attempt, o.failure, o.tuple_count, o.counters, o.metrics) for o in acker.outcomes()]
    assert judged == [
        (A, None, 1, {"bytes": 40}, {"lines": SENT}),
        (B, None, 1, {"bytes": 41}, {"lines": SENT}),
    ]


def test_a_tree_that_passes_through_zero_before_all_have_reported_still_closes():
    """What was not emitted to anybody has no edge, so the tree may look closed while others still report."""
    edge = init()[A]
    given = {EMITTER: result(EMITTER, edge), LEFT: result(LEFT, E13), RIGHT: result(RIGHT, E13)}
    outcome = judge(reports(given=given, metadata={}))[A]
    assert (outcome.failure, outcome.residue) == (None, 0)


@pytest.mark.parametrize("field", range(2))
def test_altered_edges_leave_the_tree_open_or_the_residue_wrong(field):
    """What the acker cannot see is seen by the commit phase: the residue does not cancel."""
    frames = reports()
    place = next(n for n, f in enumerate(frames) if f.sender == LEFT)
    content = unpack(frames[place].payload)
    content[1][NUMBERS][field][0] ^= 4
    frames[place] = frames[place]._replace(payload=pack(content))
    outcome = judge(frames)[A]
    assert outcome.failure is not None or outcome.residue == E19 ^ E29 ^ E39 ^ 4


@pytest.mark.parametrize(
    ("task_id", "edges"), [(RIGHT, E13 ^ 1), (EMITTER, batch_edge(A, EMITTER, b"other metadata") ^ E12 ^ E13)]
)
def test_a_task_that_read_something_else_leaves_the_tree_open(task_id, edges):
    given = results()
    given[task_id] = replace(given[task_id], edges=edges)
    assert story(reports(given=given)) == OPEN


def failing(kind, text):
    return result(LEFT, E12, failure=Failure(kind, *COMPONENTS[LEFT], text))


@given(st.permutations([LEFT, RIGHT, EMITTER]), st.permutations(list(FailureKind)))
def test_the_most_telling_failure_is_reported_in_any_order(order, kinds):
    given = {
        task: replace(results()[task], failure=failing(k, k.name).failure)
        for task, k in zip(order, kinds, strict=False)
    }
    telling = min(kinds[:3])
    assert story(reports(given=given))[::3] == (telling, telling.name)


def test_a_tasks_own_failure_is_reported_rather_than_the_open_tree():
    given = results() | {LEFT: failing(FailureKind.FAILED, "try again")}
    assert story(reports(given=given)) == (FailureKind.FAILED, "split", 0, "try again")


def test_reports_of_other_attempts_are_ignored():
    assert judge([*reports(B), *reports(A)]) == judge(reports(A))


def test_a_report_of_a_task_that_does_not_exist_leaves_the_tree_open():
    frames = [*reports(), *reports(given={77: result(77, 12345)})]
    assert story(frames) == OPEN
