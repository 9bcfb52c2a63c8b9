"""A chain of tasks in one process: who runs when, what each is given, and what each reports."""

from __future__ import annotations

from dataclasses import replace

from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.chained_tasks import ChainedTasks
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.batches.hand_over import HandOver
from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.outbox import SingleFrames
from state.codec import unpack
from state.errors import FailedException
from tests.support.tasks.wirings import attempt
from tests.support.topologies.components import Commit, build, plan


class Tag(BaseBatchBolt):
    """Adds its name to every line, and says how many there were."""

    output_fields = ("line", "number")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.count = 0

    def execute(self, tup):
        self.count += 1
        self.collector.emit([f"{tup['line']}>{self.context.component_id}", tup["number"]])

    def finish_batch(self):
        self.collector.emit([self.context.component_id, self.count])


class Refuse(Tag):
    def finish_batch(self):
        raise FailedException("not today")


class Buggy(Tag):
    def execute(self, tup):
        raise ValueError("no such line")


class Chain:
    """lines -> a -> b, and c on both; a committer hears c."""

    def __init__(self, *, a: Tag, b: Tag | None = None) -> None:
        topology = build(
            ("a", a, ["lines"]),
            ("b", b or Tag(), ["a"]),
            ("c", Tag(), ["a", "b"]),
            ("store", Commit(), ["c"]),
        )
        made = plan(topology, is_chained=True)
        self.sent: list[Frame] = []
        self.begun: list[tuple[int, str]] = []
        self.chained = ChainedTasks([made.wirings[task] for task in made.chained_to(1)], SingleFrames(self.sent.append))
        self.head = made.wirings[1]
        self.new_outbox = self.chained.outboxes(self.head)

    def run(self, txid, *lines, closes=True):
        """The head emits lines, and what is chained to it runs; returns component -> result."""
        box = self.new_outbox(attempt(txid))
        for line in lines:
            box.add(2, 0, [line, 0])
        edges = box.close() if closes else {}
        results = {wiring.component_id: result for wiring, result in self.chained.run(attempt(txid), self.begin)}
        return edges, results

    def begin(self, number, wiring):
        self.begun.append((number.txid, wiring.component_id))

    def stored(self):
        """What the committer is sent."""
        return [
            row
            for frame in self.sent
            if frame.kind is FrameKind.REGULAR
            for _, rows in unpack(frame.payload)
            for row in rows
        ]


def executed(result, component_id):
    return sum(result.metrics[component_id].executed.values())


def test_tuples_pass_from_task_to_task_and_the_last_ones_leave_in_frames():
    chain = Chain(a=Tag())
    _, results = chain.run(1, "x")
    assert [result.failure for result in results.values()] == [None, None, None]
    assert chain.stored() == [
        ["x>a>c", 0],
        ["a>c", 1],
        ["x>a>b>c", 0],
        ["a>b>c", 1],
        ["b>c", 2],
        ["c", 5],
    ]
    assert {name: executed(result, name) for name, result in results.items()} == {"a": 1, "b": 2, "c": 5}


def test_tasks_run_in_flow_order_attempt_by_attempt():
    chain = Chain(a=Tag())
    chain.run(1)
    chain.run(2)
    assert chain.begun == [(1, "a"), (1, "b"), (1, "c"), (2, "a"), (2, "b"), (2, "c")]


def test_the_edges_between_chained_tasks_cancel():
    chain = Chain(a=Tag())
    edges, results = chain.run(1, "x", "y")
    tree = edges[2]
    for name, result in results.items():
        tree ^= result.edges
        assert (result.residue != 0) == (name == "c"), "whose only edge leads to the committer"
    assert tree == 0


def test_a_task_counts_what_it_is_handed_itself():
    """A hand-over that says too much fails the attempt, as a count in a frame does."""
    made = plan(build(("a", Tag(), ["lines"]), ("store", Commit(), ["a"])), is_chained=True)
    task = BatchTask(
        made.wirings[2],
        CoordinatedBolt(
            made.wirings[2], ChainedTasks([], SingleFrames(print)).outboxes(replace(made.wirings[2], targets=()))
        ),
    )
    handed = HandOver(attempt(1), 1, 2)
    handed.rows_of(0).append(["x", 0])
    handed.close()
    handed.stretches.clear()
    failure = task.run_handed(attempt(1), [handed]).failure
    assert failure is not None
    assert failure.text == "task 1 sent 1 tuple, 0 arrived"


def test_a_failure_names_its_component_and_the_tuple_and_those_after_it_miss_a_report():
    chain = Chain(a=Tag(), b=Buggy())
    _, results = chain.run(1, "x")
    assert results["a"].failure is None
    failure = results["b"].failure
    assert (failure.kind, failure.component_id, failure.task_index) == (FailureKind.USER, "b", 0)
    assert "ValueError: no such line" in failure.text
    assert failure.tuple_text == "Tuple(a/default: line='x>a', number=0)"
    below = results["c"].failure
    assert (below.kind, below.text) == (FailureKind.INCOMPLETE, "task 3 sent 0 tuples and no report")


def test_what_a_failed_task_had_emitted_is_not_executed():
    chain = Chain(a=Refuse())
    _, results = chain.run(1, "x")
    assert executed(results["b"], "b") == 0
    assert {name: result.failure.kind for name, result in results.items()} == {
        "a": FailureKind.FAILED,
        "b": FailureKind.INCOMPLETE,
        "c": FailureKind.INCOMPLETE,
    }


def test_a_failed_attempt_leaves_nothing_to_the_next():
    chain = Chain(a=Tag())
    _, failed = chain.run(1, "x", closes=False)
    assert failed["a"].failure is not None
    _, results = chain.run(2, "y")
    assert [result.failure for result in results.values()] == [None, None, None]
    assert chain.stored()[0] == ["y>a>c", 0]


def test_one_receiver_does_not_see_what_another_does_to_its_tuple():
    row = [["line"], 1]
    handed = [HandOver(attempt(1), 1, target) for target in (2, 3)]
    for each in handed:
        each.rows_of(0).append(row)
        each.close()
    (received,) = list(handed[0].stretches[0][1])
    received[0].append("changed")
    received.clear()
    assert handed[1].stretches == [(0, [[["line"], 1]])]
