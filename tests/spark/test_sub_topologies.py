"""Sub-topologies on real Spark: golden case G4, batches that fail, and what waits for their end."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt, FinishedCallback
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from state.errors import FailedException
from tests.support.spark.bolts import note, notes, once
from tests.support.spark.plain_jobs import Feed, builder_of, run

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _nothing_told():
    Feed.told.clear()


@pytest.fixture
def context(contexts):
    return contexts.open()


class Open(BaseBasicBolt):
    """Begins a batch of n tuples, and names it on a stream of its own."""

    def declare_output_fields(self, declarer):
        declarer.declare(("n",))
        declarer.declare_stream("begin", ("n",))

    def execute(self, tup, collector):
        collector.emit([tup["value"]], "begin")
        for _ in range(tup["value"]):
            collector.emit([tup["value"]])


class Spread(BaseBasicBolt):
    """(n) becomes n times (n)."""

    output_fields = ("n",)

    def execute(self, tup, collector):
        for _ in range(tup["n"]):
            collector.emit([tup["n"]])


class PartialCount(BaseBatchBolt, FinishedCallback):
    """Counts the tuples of its batch; one task fails each batch of 3 once."""

    output_fields = ("n", "count")

    def __init__(self, folder):
        self.folder = folder

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.counts = Counter[int]()

    def execute(self, tup):
        self.counts[tup["n"]] += 1

    def finished_id(self, attempt):
        for n, count in self.counts.items():
            if n == 3 and once(self.folder / "three"):
                raise FailedException("once")
            self.collector.emit([n, count])


class Total(BaseBatchBolt):
    """Adds up, and says so at the end of the batch."""

    output_fields = ("n", "total")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.n, self.total = None, 0

    def execute(self, tup):
        if tup.stream_id == "begin":
            self.n = tup["n"]
        else:
            self.total += tup["count"]

    def finish_batch(self):
        if self.n is not None:
            self.collector.emit([self.n, self.total])


class NoteDown(BaseBasicBolt):
    """A bolt outside."""

    def __init__(self, path):
        self.path = str(path)

    def execute(self, tup, collector):
        note(self.path, "outside", self.context.task_index, list(tup.values))


@pytest.mark.case(id="G4")
def test_every_request_is_squared_exactly_once_and_a_failed_batch_is_replayed(context, tmp_path):
    numbers = [2, 10, 1, 0, 3]
    builder = builder_of(numbers)
    batches = BatchSubtopologyBuilder("master", Open(), 2)
    batches.master_declarer.shuffle_grouping("feed")
    batches.set_bolt("spread", Spread(), 3).shuffle_grouping("master")
    batches.set_bolt("count", PartialCount(tmp_path), 3).shuffle_grouping("spread")
    total = batches.set_bolt("total", Total(), 3)
    total.fields_grouping("master", ["n"], "begin").fields_grouping("count", ["n"])
    batches.extend_topology(builder)
    builder.set_bolt("outside", NoteDown(tmp_path / "notes")).shuffle_grouping("total")

    statistics = run(context, builder.build())

    assert sorted(value for _, _, value in notes(tmp_path / "notes")) == sorted([n, n * n] for n in numbers)
    assert sorted(Feed.told) == sorted([("ack", place) for place in range(5)] + [("fail", 4)])
    assert (statistics.acked, statistics.failed, statistics.waves) == (5, 1, 2)
