"""Builds sub-topologies of batch bolts: coordinated batches inside a plain topology."""

from __future__ import annotations

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinator.plain.plain_topology_builder import TRANSACTIONS_WAY, TopologyBuilder
from coordinator.topology.building.component_configuration import component_configuration
from coordinator.topology.building.topology_builder import BoltDeclarer, described
from coordinator.topology.building.topology_checks import check_parallelism
from state.errors import TopologyError


class BatchSubtopologyBuilder:
    """Builds a sub-topology: a master, whose every input tuple begins a batch, and the bolts downstream of it.

    The tuples that the master emits for one input tuple, and the tuples that the bolts make of them, are one batch. A
    batch succeeds or fails as a whole. Its input tuple is acked once every task of the sub-topology has finished the
    batch, `finish_batch` included; it fails if a task raises `FailedException` or the batch is not complete in time.
    A task that receives no tuple of a batch finishes it too. Batches run concurrently and finish in any order; a
    replay of the input tuple is another batch. On Spark a batch begins and ends within one wave.

    Each batch on each task has its own instance of a bolt, even of a basic bolt, so its attributes last for one batch.
    The attempt of a tuple (``tup.attempt``) identifies its batch; to identify the input tuple, emit a value. Bolts
    outside may subscribe to any component inside: tuples for them are anchored on the input tuple, which fails if one
    of these tuples fails. Sub-topologies receive no tick tuples.

        batches = BatchSubtopologyBuilder("split", SplitRequest())
        batches.master_declarer.shuffle_grouping("requests")
        batches.set_bolt("total", Total(), parallelism=3).fields_grouping("split", ["request"])
        batches.extend_topology(builder)

    Args:
        master_id: component id of the master.
        master_bolt: an `IBatchBolt` or `IBasicBolt`; it receives one tuple of each batch.
        parallelism: the master's number of tasks, unless `master_declarer` sets it; one by default. Each task begins
            its own batches.

    Attributes:
        master_declarer: declares which streams from outside the master receives, and its options.

    Raises:
        TopologyError: `master_bolt` cannot process batches outside transactions.

    Source: backtype.storm.coordination.BatchSubtopologyBuilder. Differs from Storm: tuples for bolts outside are
    in the ack tree; a bolt inside that subscribes to something outside is refused, whereas in Storm its batches never
    end; bolts need not emit the batch id as the first value.
    """

    def __init__(self, master_id: str, master_bolt: IBatchBolt | IBasicBolt, parallelism: int | None = None) -> None:
        self._master_id = master_id
        self._bolts: dict[str, tuple[IBatchBolt | IBasicBolt, int | None, BoltDeclarer]] = {}
        self.master_declarer = self._add(master_id, master_bolt, parallelism)

    def set_bolt(
        self, component_id: str, bolt: IBatchBolt | IBasicBolt, parallelism: int | None = None
    ) -> BoltDeclarer:
        """Adds a bolt, which subscribes to the master or to other bolts inside.

        Raises:
            TopologyError: the id is in use, or the bolt cannot process batches outside transactions.
        """
        return self._add(component_id, bolt, parallelism)

    def extend_topology(self, builder: TopologyBuilder) -> None:
        """Adds the sub-topology to a topology; call it once, last.

        Raises:
            TopologyError: `builder` does not build a plain topology, the master has no bolt downstream, a bolt
                subscribes to something outside or asks for tick tuples, or the topology already uses one of the ids.
        """
        if not isinstance(builder, TopologyBuilder):
            raise TopologyError(
                f"the sub-topology of {self._master_id!r} cannot extend {described(builder)}; give a TopologyBuilder"
            )
        if len(self._bolts) == 1:
            raise TopologyError(
                f"the sub-topology of {self._master_id!r} has no bolt but its master; add one with set_bolt"
            )
        for component_id, (bolt, _, declarer) in self._bolts.items():
            outside = sorted({s.upstream_id for s in declarer.subscriptions} - self._bolts.keys())
            if component_id != self._master_id and outside:
                raise TopologyError(
                    f"component {component_id!r} subscribes to {outside[0]!r}, which is not in the sub-topology of "
                    f"{self._master_id!r} {sorted(self._bolts)}; only the master receives tuples from outside, because "
                    "they belong to no batch"
                )
            if TICK_TUPLE_FREQ_SECS in component_configuration(component_id, bolt, declarer):
                raise TopologyError(
                    f"component {component_id!r} sets {TICK_TUPLE_FREQ_SECS!r}, but in a sub-topology every tuple "
                    "belongs to a batch and a tick tuple would belong to none; do periodic work in a bolt outside"
                )
        for bolt, parallelism, declarer in self._bolts.values():
            builder.add_to_subtopology(self._master_id, bolt, parallelism, declarer)

    def _add(self, component_id: str, bolt: IBatchBolt | IBasicBolt, parallelism: int | None) -> BoltDeclarer:
        if component_id in self._bolts:
            raise TopologyError(f"component id {component_id!r} is used twice; give each component its own")
        if isinstance(bolt, ICommitter):
            raise TopologyError(
                f"component {component_id!r} is a committer, and the batches of a sub-topology finish in any order; "
                f"{TRANSACTIONS_WAY}"
            )
        if not isinstance(bolt, (IBatchBolt, IBasicBolt)):
            raise TopologyError(
                f"component {component_id!r} is {described(bolt)}; give an instance of IBatchBolt or IBasicBolt"
            )
        if parallelism is not None:
            check_parallelism(f"parallelism of component {component_id!r}", parallelism)
        declarer = BoltDeclarer(component_id)
        self._bolts[component_id] = (bolt, parallelism, declarer)
        return declarer
