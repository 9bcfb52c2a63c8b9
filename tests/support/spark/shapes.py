"""Components of Spark topologies of every shape: streams sorted by name, chained committers, a join."""

from __future__ import annotations

from collections import Counter

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState
from state.kinds.handles import declared_states
from tests.support.runs.collecting import Collecting
from tests.support.spark.bolts import Numbers, Store

TRANSACTIONS, SIZE = 6, 8
NUMBERS = range(TRANSACTIONS * SIZE)


def builder_of(topology_id, spout=None, parallelism=2):
    return TransactionalTopologyBuilder(topology_id, "numbers", spout or Numbers(TRANSACTIONS), parallelism=parallelism)


class Sorting(BaseBatchBolt):
    """Even numbers to one named stream, odd ones to another; every number directly to the task it names."""

    def declare_output_fields(self, declarer):
        declarer.declare_stream("even", ("number",))
        declarer.declare_stream("odd", ("number", "is_odd"))
        declarer.declare_stream("named", ("number",), direct=True)

    def execute(self, tup):
        number = tup["number"]
        if number % 2:
            self.collector.emit([number, True], "odd")
        else:
            self.collector.emit([number], "even")
        tasks = self.context.component_tasks("by_name")
        self.collector.emit_direct(tasks[number % len(tasks)], [number], "named")


class Seen(Collecting):
    """Counts "<stream> <number> <task>" in the one state that a subclass declares."""

    def finish_batch(self):
        (name,) = declared_states(type(self))
        task = self.context.task_index
        getattr(self, name).increment_many(Counter(f"{tup.stream_id} {tup['number']} {task}" for tup in self.tuples))


class SeenOnStreams(Seen):
    on_streams = HashState("on_streams")


class SeenByName(Seen):
    by_name = HashState("by_name")


class SeenByAll(Seen):
    by_all = HashState("by_all")


class SeenByOne(Seen):
    by_one = HashState("by_one")


class First(Store):
    """A committer that hands on what its state says after each transaction."""

    output_fields = ("txid", "total")
    running = HashState("running", value=int)

    def finish_batch(self):
        super().finish_batch()
        total = (self.running.get("total") or 0) + sum(number * count for number, count in self.numbers.items())
        self.running.put("total", total)
        self.collector.emit([self.attempt.txid, total])


class Double(BaseBatchBolt):
    """No committer, but below one: it runs in the commit phase."""

    output_fields = ("txid", "total")

    def execute(self, tup):
        self.collector.emit([tup["txid"], 2 * tup["total"]])


class Last(Collecting):
    doubled = HashState("doubled", value=int, field=int)
    order = ListState("order", value=int)

    def finish_batch(self):
        for tup in self.tuples:
            self.doubled.put(tup["txid"], tup["total"])
        if self.context.task_index == 0:
            self.order.append(self.attempt.txid)


class Join(BaseBatchBolt):
    """Hears a committer and a bolt that is none; emits once it has both."""

    output_fields = ("txid", "total")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.from_bolt = self.from_committer = 0

    def execute(self, tup):
        if tup.source_component == "first":
            self.from_committer += tup["total"]
        else:
            self.from_bolt += tup["number"]

    def finish_batch(self):
        self.collector.emit([self.attempt.txid, self.from_committer * 1_000_000 + self.from_bolt])
