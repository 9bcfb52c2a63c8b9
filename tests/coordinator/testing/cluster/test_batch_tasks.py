"""Processing and commit tasks, fed frame by frame in an order chosen by the test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from committers.committer import ICommitter
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.frames import Frame
from coordinated_bolt.transport.outbox import SingleFrames
from coordinator import Topology, TransactionalTopologyBuilder
from coordinator.testing.cluster.batch_tasks import CommittingTask, ProcessingTask
from state import FailedException, HashState, TransactionAttempt
from tests.support.scenarios.playing import task_leftovers
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.topologies.components import Lines, plan

FIRST, SECOND, THIRD = (TransactionAttempt(txid, 70 + txid) for txid in (1, 2, 3))
SPOUT, UPPER, LOWER = 1, 2, 3


class Noting(BaseBatchBolt):
    """Notes what happens to it; numbers its instances."""

    output_fields = ("line", "number")
    events: ClassVar[list[tuple[Any, ...]]] = []
    made: ClassVar[int] = 0
    failing: ClassVar[set[int]] = set()

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        Noting.made += 1
        self.number = Noting.made
        self.heard: list[int] = []

    def execute(self, tup):
        self.note("execute", tup["number"])
        self.heard.append(tup["number"])

    def finish_batch(self):
        self.note("finish", sorted(self.heard))
        if self.attempt.txid in Noting.failing:
            raise FailedException("not this one")
        for number in self.heard:
            self.collector.emit(["", number])

    def cleanup(self):
        self.note("cleanup", self.number)

    def note(self, what, detail):
        Noting.events.append((what, self.context.component_id, self.attempt.txid, detail))


class Upper(Noting, ICommitter):
    running = HashState("running", field=int)

    def finish_batch(self):
        self.running.put(0, (self.running.get(0) or 0) + sum(self.heard))
        super().finish_batch()


class Lower(Noting, ICommitter):
    counts = HashState("counts", field=int)

    def finish_batch(self):
        super().finish_batch()
        for number in self.heard:
            self.counts.increment(number)


@pytest.fixture(autouse=True)
def nothing_noted():
    Noting.events, Noting.made, Noting.failing = [], 0, set()


def events(*kinds: str) -> list[tuple[Any, ...]]:
    """What was noted of these kinds: (component, txid, detail)."""
    return [event[1:] for event in Noting.events if event[0] in kinds]


def chain() -> Topology:
    builder = TransactionalTopologyBuilder("test", "lines", Lines(9))
    builder.set_bolt("upper", Upper()).global_grouping("lines")
    builder.set_bolt("lower", Lower()).global_grouping("upper")
    return builder.build()


class Chain:
    """Two commit tasks, upper and lower; what upper sends waits in `between`."""

    def __init__(self) -> None:
        made = plan(chain())
        self.wirings = made.wirings
        self.between: list[Frame] = []
        self.store = MemoryStore()
        self.upper, self.lower = (
            CommittingTask(self.wirings[task], self.store, SingleFrames(self.between.append), made.commit_tasks)
            for task in (UPPER, LOWER)
        )

    def data(self, attempt: TransactionAttempt, *numbers: int) -> list[Frame]:
        """What the spout sends upper: a frame a number, then the report."""
        return sent(self.wirings[SPOUT], attempt, numbers)

    def give_upper(self, attempt: TransactionAttempt, *numbers: int) -> None:
        for frame in self.data(attempt, *numbers):
            self.upper.receive(frame)

    def give_lower(self) -> None:
        while self.between:
            self.lower.receive(self.between.pop(0))

    def leftovers(self) -> list[str]:
        kept = [str(attempt) for task in (self.upper, self.lower) for attempt in {*task._kept, *task._spent}]
        return [*task_leftovers(UPPER, self.upper._commit.task), *task_leftovers(LOWER, self.lower._commit.task), *kept]


def sent(wiring, attempt, numbers) -> list[Frame]:
    frames: list[Frame] = []
    outbox = attempt_outbox(replace(wiring, frame_tuples=1), attempt, SingleFrames(frames.append))
    for number in numbers:
        AttemptCollector(wiring, attempt, outbox).emit(["", number])
    outbox.close()
    return frames


@pytest.fixture
def tasks():
    return Chain()


def renew(task: CommittingTask, group: tuple[TransactionAttempt, ...]) -> None:
    """As the engine does before a group begins."""
    for attempt in filter(task.is_spent, group):
        task.prepare(attempt)


def good(report) -> list[bool]:
    return [result.failure is None for result in report.results]


def test_a_later_attempt_that_is_complete_first_is_finished_second(tasks):
    tasks.give_upper(SECOND, 2)
    tasks.upper.begin((FIRST, SECOND), composed=True)
    assert events("finish") == []

    tasks.give_upper(FIRST, 1)
    assert events("finish") == [("upper", 1, [1]), ("upper", 2, [2])]
    assert good(tasks.upper.end_group((FIRST, SECOND))) == [True, True]


def test_the_id_may_come_before_the_data_of_a_committer_upstream(tasks):
    tasks.give_upper(FIRST, 1, 2)
    tasks.lower.begin((FIRST,), composed=True)
    assert events("finish") == []

    tasks.upper.begin((FIRST,), composed=True)
    tasks.give_lower()
    assert events("finish") == [("upper", 1, [1, 2]), ("lower", 1, [1, 2])]
    assert good(tasks.lower.end_group((FIRST,))) == [True]


def test_a_group_that_runs_again_gets_new_bolts_fed_with_the_same_tuples(tasks):
    for attempt in (FIRST, SECOND):
        tasks.give_upper(attempt, attempt.txid, 5)
    group = (FIRST, SECOND)
    reports = []
    for composed in (True, False):
        Noting.events = []
        for task in (tasks.upper, tasks.lower):
            renew(task, group)
        for task in (tasks.lower, tasks.upper):
            task.begin(group, composed=composed)
        tasks.give_lower()
        reports.append([task.end_group(group) for task in (tasks.upper, tasks.lower)])
        finished = [("upper", 1, [1, 5]), ("upper", 2, [2, 5]), ("lower", 1, [1, 5]), ("lower", 2, [2, 5])]
        assert events("finish") == finished
    assert Noting.made == 8
    edges = [[[result.edges for result in report.results] for report in run] for run in reports]
    assert edges[0] == edges[1]


def test_an_attempt_that_was_put_off_gets_new_bolts_in_its_next_group(tasks):
    for attempt in (FIRST, SECOND, THIRD):
        tasks.give_upper(attempt, attempt.txid)
    for committed, group in ((0, (FIRST, SECOND)), (1, (SECOND, THIRD))):
        tasks.store.committed = [[committed]] if committed else []
        for task in (tasks.upper, tasks.lower):
            renew(task, group)
            task.begin(group, composed=False)
        tasks.give_lower()
        assert [good(task.end_group(group)) for task in (tasks.upper, tasks.lower)] == [[True, True]] * 2
    of_upper = [detail for component, txid, detail in events("cleanup") if component == "upper" and txid == 2]
    assert len(of_upper) == len(set(of_upper)) == 2
    assert [event for event in events("finish") if event[1] == 3] == [("upper", 3, [3]), ("lower", 3, [3])]


def test_a_failure_in_the_middle_ends_the_report_there_and_the_later_bolts_too(tasks):
    Noting.failing = {2}
    for attempt in (FIRST, SECOND, THIRD):
        tasks.give_upper(attempt, attempt.txid)
    group = (FIRST, SECOND, THIRD)
    for task in (tasks.upper, tasks.lower):
        task.begin(group, composed=True)
    tasks.give_lower()
    upper, lower = (task.end_group(group) for task in (tasks.upper, tasks.lower))
    assert good(upper) == good(lower) == [True, False]
    assert upper.results[1].failure.kind is FailureKind.FAILED
    assert lower.results[1].failure.kind is FailureKind.INCOMPLETE
    assert [txid for component, txid, _ in events("finish") if component == "upper"] == [1, 2]
    assert len(events("cleanup")) == Noting.made


def test_what_comes_after_the_verdict_makes_no_bolt_that_nobody_ends(tasks):
    tasks.give_upper(FIRST, 1)
    for task in (tasks.upper, tasks.lower):
        task.begin((FIRST,), composed=True)
    surplus = list(tasks.between)
    tasks.give_lower()
    for frame in surplus:
        tasks.lower.receive(frame)
    assert [good(task.end_group((FIRST,))) for task in (tasks.upper, tasks.lower)] == [[True]] * 2
    for task in (tasks.upper, tasks.lower):
        task.forget(FIRST)
    assert Noting.made == len(events("cleanup")) == 2
    assert tasks.leftovers() == []


@pytest.mark.parametrize("phase", ["no tuples", "some tuples", "all tuples", "begun", "finished", "ended", "prepared"])
def test_forgetting_an_attempt_in_any_phase_leaves_nothing(tasks, phase):
    frames = tasks.data(FIRST, 1, 2)
    phases = ["some tuples", "all tuples", "begun", "finished", "ended", "prepared"]
    done = phases[: phases.index(phase) + 1] if phase in phases else []
    for frame in frames if "all tuples" in done else frames[:1] if done else []:
        tasks.upper.receive(frame)
    if "begun" in done:
        tasks.upper.begin((FIRST,), composed=True)
    if "finished" in done:
        tasks.give_lower()
    if "ended" in done:
        for task in (tasks.upper, tasks.lower):
            task.end_group((FIRST,))
    if "prepared" in done:
        for task in (tasks.upper, tasks.lower):
            renew(task, (FIRST,))
    for task in (tasks.upper, tasks.lower):
        task.forget(FIRST)
        task.forget(FIRST)
    assert len(events("cleanup")) == Noting.made
    assert tasks.leftovers() == []


# Processing tasks


class Processing:
    def __init__(self) -> None:
        builder = TransactionalTopologyBuilder("test", "lines", Lines(9), parallelism=2)
        builder.set_bolt("work", Noting()).global_grouping("lines")
        self.plan = plan(builder.build())
        self.reports: list[AttemptResult] = []
        self.task = ProcessingTask(self.plan.wirings[3], SingleFrames(lambda frame: None), self.report)

    def report(self, task_id, attempt, result):
        assert (task_id, attempt) == (3, result.attempt)
        self.reports.append(result)

    def give(self, source: int, attempt: TransactionAttempt, *numbers: int) -> None:
        for frame in sent(self.plan.wirings[source], attempt, numbers):
            self.task.receive(frame)


def test_a_processing_task_reports_as_soon_as_every_source_has_and_once():
    work = Processing()
    work.give(1, FIRST, 1, 2)
    assert work.reports == []
    work.give(2, FIRST)
    assert [(result.attempt, result.failure) for result in work.reports] == [(FIRST, None)]
    work.task.end(FIRST)
    work.give(1, FIRST, 3)
    assert len(work.reports) == 1
    assert [event[0] for event in Noting.events] == ["execute", "execute", "finish", "cleanup"]
    work.task.forget(FIRST)
    assert task_leftovers(3, work.task._task) == []


def test_a_processing_task_that_lacks_something_at_the_end_reports_what():
    work = Processing()
    work.give(1, FIRST, 1)
    work.task.end(FIRST)
    (result,) = work.reports
    assert result.attempt == FIRST
    assert result.failure is not None
    assert result.failure.text == "task 2 sent 0 tuples and no report"


def test_a_processing_task_forgets_an_attempt_it_has_not_reported():
    work = Processing()
    work.give(1, FIRST, 1)
    work.task.forget(FIRST)
    assert work.reports == []
    assert len(events("cleanup")) == Noting.made == 1
    assert task_leftovers(3, work.task._task) == []
