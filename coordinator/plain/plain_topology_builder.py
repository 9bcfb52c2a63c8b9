"""Builds plain topologies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.spouts import ISpout
from coordinator.plain.plain_topology import MAX_SPOUT_PENDING, PlainTopology
from coordinator.spouts.spout_kind import Spout
from coordinator.topology.building.component import ComponentKind
from coordinator.topology.building.component_configuration import SpoutDeclarer, topology_configuration
from coordinator.topology.building.topology_builder import BoltDeclarer, GraphBuilder, described
from coordinator.topology.building.topology_checks import check_message_timeout, check_parallelism, check_takes_tuples
from state.errors import TopologyError
from state.kinds.handles import declared_states
from state.values.whole import is_whole

TRANSACTIONS_WAY = "for transactions, use a TransactionalTopologyBuilder"


class TopologyBuilder(GraphBuilder):
    """Builds a plain topology of spouts, rich bolts and basic bolts: at least once, by acks and replays.

    Args:
        topology_id: names the topology.

    Raises:
        TopologyError: the name is not a valid one.

    Source: backtype.storm.topology.TopologyBuilder. Differs from Storm: cycles are refused.
    """

    def __init__(self, topology_id: str) -> None:
        super().__init__(topology_id)
        self._message_timeout_s: float | None = 30.0
        self._max_spout_pending = MAX_SPOUT_PENDING

    def set_spout(self, component_id: str, spout: ISpout, parallelism: int | None = None) -> SpoutDeclarer:
        """Adds a spout; without a parallelism it has one task.

        Raises:
            TopologyError: `spout` is not an `ISpout`, or the id or parallelism is invalid.
        """
        if not isinstance(spout, ISpout):
            raise TopologyError(
                f"spout {component_id!r} is {described(spout)}; give an instance of ISpout{_transactions_way(spout)}"
            )
        declarer = SpoutDeclarer(component_id)
        self._add_plain(ComponentKind.SPOUT, spout, parallelism, declarer)
        return declarer

    def set_bolt(self, component_id: str, bolt: IRichBolt | IBasicBolt, parallelism: int | None = None) -> BoltDeclarer:
        """Adds a bolt; without a parallelism it has one task, which is chained to the one task of its upstream bolt.

        Raises:
            TopologyError: `bolt` is neither an `IRichBolt` nor an `IBasicBolt`, or it processes batches.
        """
        if isinstance(bolt, (IBatchBolt, ICommitter)):
            raise TopologyError(
                f"component {component_id!r} is {described(bolt)}, and a plain topology has no batches to finish or "
                "commit; make it an IRichBolt or IBasicBolt, or put it into a sub-topology with a "
                f"BatchSubtopologyBuilder; {TRANSACTIONS_WAY}"
            )
        if not isinstance(bolt, (IRichBolt, IBasicBolt)):
            raise TopologyError(
                f"component {component_id!r} is {described(bolt)}; give an instance of IRichBolt or IBasicBolt"
            )
        declarer = BoltDeclarer(component_id)
        self._add_plain(ComponentKind.BOLT, bolt, parallelism, declarer)
        return declarer

    def add_to_subtopology(
        self, master_id: str, bolt: IBatchBolt | IBasicBolt, parallelism: int | None, declarer: BoltDeclarer
    ) -> None:
        """Adds a component of a sub-topology; called by `BatchSubtopologyBuilder.extend_topology`."""
        self._add_plain(ComponentKind.BOLT, bolt, parallelism, declarer)
        self._master_of[declarer.component_id] = master_id

    def set_acker_count(self, count: int) -> None:
        """Sets the number of acker tasks. With 0 nothing is tracked: messages are acked when emitted and never fail.

        On Spark the driver decides on the trees of a wave, and any number above 0 has the same effect.
        """
        check_parallelism("acker count", count, least=0)
        self._acker_count = count

    def set_message_timeout_s(self, seconds: float) -> None:
        """Sets T, more than 0 seconds: a message that is not processed fails between T and 2T after it was emitted."""
        self._message_timeout_s = check_message_timeout(seconds)

    def disable_message_timeouts(self) -> None:
        """Disables timeouts: a message that no bolt acks or fails then stays in flight for ever."""
        self._message_timeout_s = None

    def set_max_spout_pending(self, count: int) -> None:
        """Limits the messages that a spout task may have in flight; only messages with an id count.

        On Spark the default is at least two waves, so that one is filled while the other runs.
        """
        if not is_whole(count, 1):
            raise TopologyError(f"max spout pending is {count!r}; give an integer of at least 1")
        self._max_spout_pending = count

    def build(self, conf: Mapping[str, Any] | None = None) -> PlainTopology:
        """Checks everything and returns the topology.

        Args:
            conf: configuration that every `open` and `prepare` receives; plain data.

        Raises:
            TopologyError: the topology has no spout, a cycle, an unknown component, stream or field, a bolt without
                input, a grouping that does not fit its stream, or a configuration value that is not plain data.
        """
        if all(kind is not ComponentKind.SPOUT for kind, *_ in self._components.values()):
            raise TopologyError("the topology has no spout; add one with set_spout")
        components = self._graph()
        for component in components:
            check_takes_tuples(component)
        return PlainTopology(
            topology_id=self._topology_id,
            components=components,
            conf=topology_configuration(conf),
            acker_count=self._acker_count,
            message_timeout_s=self._message_timeout_s,
            max_spout_pending=self._max_spout_pending,
            task_hooks=tuple(self._task_hooks),
        )

    def _add_plain(
        self, kind: ComponentKind, spec: Any, parallelism: int | None, declarer: BoltDeclarer | SpoutDeclarer
    ) -> None:
        states = sorted(handle.name for handle in declared_states(spec).values())
        if states:
            raise TopologyError(
                f"component {declarer.component_id!r} declares state {states}, which only committers of transactional "
                f"topologies can write; {TRANSACTIONS_WAY}"
            )
        self._add(kind, spec, parallelism, declarer)


def _transactions_way(spout: object) -> str:
    return f"; {TRANSACTIONS_WAY}" if isinstance(spout, Spout) else ""
