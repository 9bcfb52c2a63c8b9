"""Bolts that take batches: who is given which, and that all else is as with tuples."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar

import pytest

from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.batches.coordinated_bolt import CoordTuples, RegularTuples
from coordinated_bolt.batches.hand_over import HandOver
from coordinated_bolt.columns import Columns
from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.component import takes_batches
from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.transport.outbox import FrameOutbox, SingleFrames
from state.errors import FailedException
from tests.support.case_names import shown
from tests.support.tasks.one_task import A, OneTask
from tests.support.tasks.wirings import origin_of, wire

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def forgotten():
    SEEN.clear()


class Taking(BaseBatchBolt):
    def execute_batch(self, batch):
        SEEN.append(("batch", batch.rows()))


class TakingBoth(BaseBatchBolt):
    def execute(self, tup):
        SEEN.append(("tuple", tup.values))

    def execute_batch(self, batch):
        SEEN.append(("batch", batch.rows()))
        super().execute_batch(batch)


class TakingTuplesAgain(Taking):
    def execute(self, tup):
        SEEN.append(("tuple", tup.values))


class Failing(BaseBatchBolt):
    def execute_batch(self, batch):
        raise FailedException("not now")


class Noting(ITaskHook):
    def execute(self, info):
        SEEN.append((info.tup.values, info.latency_ns))


class Emptying(BaseBatchBolt):
    """Changes what it is given."""

    def prepare(self, conf, context, collector, attempt):
        context.add_task_hook(Noting())

    def execute_batch(self, batch):
        SEEN.append("batch")
        batch.column(0).clear()


class Basic(BaseBasicBolt):
    output_fields = ("value",)

    def execute(self, tup, collector):
        raise AssertionError("batches are wanted")

    def execute_batch(self, batch, collector):
        collector.emit_batch(batch)
        SEEN.append(("batch", batch.rows()))


def executed(bolt, *stretches, **options):
    """What the bolt was given, and the failure."""
    wiring = wire(bolt)
    executor = BatchBoltExecutor(wiring, lambda *_: None, **options)  # type: ignore[arg-type]
    failures = [executor.execute(A, [(origin_of(wiring, A), rows)]) for rows in stretches]
    return executor, failures


ROWS = [["a"], ["b"]]


@pytest.fixture(params=[lambda: [["a"], ["b"]], lambda: Columns([["a", "b"]], 2)], ids=["rows", "columns"])
def rows(request):
    return request.param()


class TestEitherForm:
    @pytest.mark.parametrize(
        ("bolt", "seen"),
        [
            (Taking(), [("batch", ROWS)]),
            (TakingBoth(), [("batch", ROWS), ("tuple", ["a"]), ("tuple", ["b"])]),
            (TakingTuplesAgain(), [("tuple", ["a"]), ("tuple", ["b"])]),
        ],
        ids=["defines execute_batch", "passes batches on to execute", "subclass that defines only execute"],
    )
    def test_a_bolt_is_given_what_its_class_defines(self, rows, bolt, seen):
        executed(bolt, rows)
        assert seen == SEEN

    def test_counts_of_executed_tuples_are_rows(self, rows):
        executor, _ = executed(Taking(), rows, rows, clock=count(0, 10).__next__)
        metrics = executor.metrics(A)
        assert metrics.executed == {"source/default": 4}
        assert metrics.execute_ns == {"source/default": 20}

    def test_hooks_are_told_of_each_tuple_after_its_batch_as_it_was_given(self, rows):
        executed(Emptying(), rows, clock=count(0, 10).__next__)
        assert SEEN == ["batch", (["a"], 5), (["b"], 5)]

    def test_a_failure_names_the_batch_with_its_first_tuple(self, rows):
        _, (failure,) = executed(Failing(), rows)
        assert failure.kind is FailureKind.FAILED
        assert failure.tuple_text == (
            "TupleBatch(source/default: 2 tuples, the first Tuple(source/default: value='a'))"
        )


def test_a_batch_has_at_least_one_tuple():
    executed(Taking(), [], Columns([[]], 0))
    assert SEEN == []


def fed_columns(bolt, **wiring):
    """A task that is sent both rows as columns, and their count."""
    task = OneTask(bolt, **wiring)
    task.bolt.on(A, [RegularTuples([(origin_of(task.wiring, A), Columns.of_rows(ROWS, 1))]), CoordTuples.of(1, 2)])
    return task


def test_a_basic_bolt_takes_batches_too_and_passes_one_on():
    task = fed_columns(Basic(), targets=(21,))
    assert task.bolt.is_finished(A)
    assert SEEN == [("batch", ROWS)]
    assert [frame.kind.name for frame in task.sent] == ["REGULAR", "COORD"]


def test_only_a_definition_of_the_bolts_own_counts():
    class Neither(BaseBatchBolt):
        pass

    class OnlyTuples(BaseBatchBolt):
        def execute(self, tup):
            """Takes tuples."""

    bolts = (Neither, OnlyTuples, Taking, TakingBoth, TakingTuplesAgain, Basic)
    assert [takes_batches(bolt) for bolt in bolts] == [False, False, True, True, False, True]


class Refusing(BaseBatchBolt):
    refused: ClassVar[list[bytes]] = []

    def execute_batch(self, batch):
        for number, value in enumerate(batch.column("value")):
            if value == "b":
                self.collector.dead_letter(batch[number], "it is b")


def test_a_tuple_of_a_batch_may_be_refused():
    finished = fed_columns(Refusing()).end()
    assert finished.failure is None
    assert len(finished.letters) == 1
    assert b"it is b" in finished.letters[10][0]


class TestHandOver:
    def handed(self, lists):
        handed = [HandOver(A, 10, target) for target in (21, 22)]
        box = FrameOutbox(A, 10, [], SingleFrames(lambda frame: None), handed=handed)
        for target in (21, 22):
            box.add_all(target, 0, Columns(lists, len(lists[0])))
        box.close()
        return [dict(each.stretches)[0] for each in handed]

    @pytest.mark.parametrize("value", ["text", [1], {"a": [1]}, (1, [2])], ids=shown)
    def test_each_receiver_has_columns_of_its_own(self, value):
        given = [[value], [1]]
        first, second = self.handed(given)
        assert list(first) == list(second) == [[value, 1]]
        for held in (given, second.lists):
            assert held[0] is not first.lists[0]
            assert type(value) is str or held[0][0] is not first.lists[0][0]

    def test_counts_are_rows(self):
        handed = HandOver(A, 10, 21)
        handed.extend(0, Columns([["a", "b"]], 2))
        handed.rows_of(0).append(["c"])
        handed.close()
        assert handed.reported_count == 3
        assert [list(rows) for _, rows in handed.stretches] == [[["a"], ["b"]], [["c"]]]


def test_batches_of_other_streams_keep_their_origin():
    specs = (StreamSpec("default", ("value",)), StreamSpec("side", ("key", "value")))
    wiring = wire(Taking(), upstream_streams=specs)
    executor = BatchBoltExecutor(wiring, lambda *_: None)  # type: ignore[arg-type]
    assert executor.execute(A, [(origin_of(wiring, A, stream_index=1), [["k", 1]])]) is None
    assert SEEN == [("batch", [["k", 1]])]
