"""Golden case G3: a counting bolt, three attempts, each with an instance of its own."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from tests.support.tasks.wirings import attempt, origin_of, wire

pytestmark = pytest.mark.case(id="G3")


class Counting(BaseBatchBolt):
    """Emits (attempt, number of tuples)."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.count = 0

    def execute(self, tup):
        self.count += 1

    def finish_batch(self):
        self.collector.emit([self.attempt, self.count])


class Emitted:
    """A collector that keeps what it is given."""

    def __init__(self):
        self.rows = []

    def emit(self, values, stream_id="default"):
        self.rows.append(tuple(values))
        return []

    def emit_all(self, rows, stream_id="default"):
        self.rows.extend(map(tuple, rows))

    def emit_batch(self, batch, stream_id="default"):
        self.emit_all(zip(*batch, strict=True), stream_id)

    def dead_letter(self, tup, reason):
        raise AssertionError("nothing is refused")

    def emit_direct(self, task_id, values, stream_id="default"):
        raise AssertionError("not a direct stream")


def test_attempts_are_counted_apart():
    emitted = Emitted()
    wiring = wire(Counting())
    executor = BatchBoltExecutor(wiring, lambda *_: emitted)  # type: ignore[arg-type]
    first, again, second = attempt(1, 1), attempt(1, 2), attempt(2, 1)

    def execute(one):
        assert executor.execute(one, [(origin_of(wiring, one), [["x"]])]) is None

    def finish(one):
        assert executor.finished_id(one) is None
        rows, emitted.rows = emitted.rows, []
        return rows

    for one in (first, first, again, second, first):
        execute(one)
    assert finish(first) == [(first, 3)]
    execute(again)
    assert finish(second) == [(second, 1)]
    assert finish(again) == [(again, 2)]
