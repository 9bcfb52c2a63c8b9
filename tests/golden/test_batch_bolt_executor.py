"""Golden case G3: a counting bolt, three attempts, each with an instance of its own."""

from __future__ import annotations

from types import SimpleNamespace

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


def test_attempts_are_counted_apart():
    emitted = []
    collector = SimpleNamespace(emit=lambda values: emitted.append(tuple(values)))
    wiring = wire(Counting())
    executor = BatchBoltExecutor(wiring, lambda *_: collector)  # type: ignore[arg-type]
    first, again, second = attempt(1, 1), attempt(1, 2), attempt(2, 1)
    for one in (first, first, again, second, first):
        assert executor.execute(one, [(origin_of(wiring, one), [["x"]])]) is None
    assert executor.finished_id(first) is None
    assert executor.execute(again, [(origin_of(wiring, again), [["x"]])]) is None
    assert [executor.finished_id(one) for one in (second, again)] == [None, None]
    assert emitted == [(first, 3), (second, 1), (again, 2)]
