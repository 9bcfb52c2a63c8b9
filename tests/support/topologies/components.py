"""The smallest spouts and bolts topologies can be built of."""

from __future__ import annotations

import pickle
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from coordinator.topology.building.topology import ComponentGraph, Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.planning.plan import Plan, make_plan
from state import HashState
from tests.support.runs.collecting import Collecting


def shape_of(topology: ComponentGraph) -> list[str]:
    """A line a component: id, number of tasks, kind, and what it subscribes to by which grouping."""
    return [
        f"{c.component_id}*{c.task_count}[{c.kind.value}]<-("
        + ",".join(f"{s.upstream_id}/{s.stream_id}:{s.grouping!r}" for s in c.subscriptions)
        + ")"
        for c in topology.components
    ]


class Lines(ITransactionalSpout):
    """Has an end after `count` transactions; its metadata is the txid, its tuples are [txid, number]."""

    output_fields = ("line", "number")

    def __init__(self, count: int = 0, tuples: int = 4) -> None:
        self.count, self.tuples = count, tuples

    def get_coordinator(self, conf, context):
        return LinesCoordinator(self.count)

    def get_emitter(self, conf, context):
        return LinesEmitter(context.task_index, context.task_count, self.tuples)


class LinesCoordinator(SpoutCoordinator):
    def __init__(self, count: int) -> None:
        self.count = count
        self.cut: list[tuple[int, Any]] = []
        self.last = 0

    def resume(self):
        self.last = self.run_so_far.last_txid

    def is_ready(self):
        return self.last < self.count

    def initialize_transaction(self, txid, previous):
        self.cut.append((txid, previous))
        self.last = txid
        return f"lines of {txid}"

    def is_exhausted(self):
        return self.last >= self.count


class LinesEmitter(SpoutEmitter):
    def __init__(self, task_index: int, task_count: int, tuples: int) -> None:
        self.share = range(task_index, tuples, task_count)

    def emit_batch(self, attempt, metadata, collector):
        for number in self.share:
            collector.emit([metadata, number])


class Pass(BaseBatchBolt):
    """Passes every tuple on."""

    output_fields = ("line", "number")

    def execute(self, tup):
        self.collector.emit(list(tup))


class Sink(BaseBatchBolt):
    """Declares no stream."""

    def execute(self, tup):
        """Ignores it."""


class Commit(Sink, ICommitter):
    """A committer that keeps no state, and emits nothing on the stream it declares."""

    output_fields = ("line", "number")


class Count(Collecting):
    """A committer that counts its tuples."""

    counts = HashState("counts", value=int)

    def finish_batch(self):
        for line in self.column("line"):
            self.counts.increment(line)


def collecting(
    topology_id: str, spout: Any, bolt: Any, *streams: str, source: str = "source", tasks: int = 1
) -> Topology:
    """A topology of a spout, and of a committer whose one task hears these streams of it, or the default one."""
    builder = TransactionalTopologyBuilder(topology_id, source, spout, parallelism=tasks)
    keep = builder.set_committer_bolt("keep", bolt)
    for name in streams or ("default",):
        keep.global_grouping(source, name)
    return builder.build()


def build(*bolts: tuple[Any, ...], spout: Any = None, spout_tasks: int = 1, ackers: int = 1) -> Topology:
    """A topology on the spout "lines"; a bolt is (id, object, [what it hears…], tasks), shuffled."""
    builder = TransactionalTopologyBuilder("test", "lines", spout or Lines(), parallelism=spout_tasks)
    builder.set_acker_count(ackers)
    for component_id, bolt, heard, *tasks in bolts:
        declarer = builder.set_bolt(component_id, bolt, parallelism=tasks[0] if tasks else 1)
        for source in heard:
            declarer.shuffle_grouping(source)
    return builder.build()


def layout(made: Plan) -> list[list[str]]:
    """Stages as lists of component ids, one for each task that is not chained to another."""
    name = {task: wiring.component_id for task, wiring in made.wirings.items()}
    name |= dict.fromkeys(made.acker_tasks, ACKER_COMPONENT)
    return [[name[task] for task in stage.tasks] for stage in made.stages]


def plan(topology: Topology, *, is_chained: bool = False) -> Plan:
    """A plan in which every task runs by itself, unless told otherwise."""
    return make_plan(topology, lambda component_id, spec: pickle.dumps(spec), is_chained=is_chained)
