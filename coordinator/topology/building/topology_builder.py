"""Builds transactional topologies; refuses one that could not run correctly, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.component import streams_of
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.spouts import ISpout
from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.groupings import (
    AllGrouping,
    CustomGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from coordinator.option_checks import names_in
from coordinator.spouts.spout_kind import Spout
from coordinator.spouts.transactional import lacks_coordinator
from coordinator.topology.building.component import Component, ComponentKind, Subscription
from coordinator.topology.building.component_configuration import (
    ComponentConfigurationDeclarer,
    SpoutDeclarer,
    check_no_ticks,
    component_configuration,
    topology_configuration,
)
from coordinator.topology.building.planned_tasks import PLANNED_TASKS
from coordinator.topology.building.topology import DEFAULT_MESSAGE_TIMEOUT_S, Topology
from coordinator.topology.building.topology_checks import (
    check_graph,
    check_message_timeout,
    check_methods,
    check_parallelism,
    check_shard_count,
    check_states,
    in_flow_order,
)
from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits
from state.errors import TopologyError
from state.keys import check_name


class BoltDeclarer(ComponentConfigurationDeclarer):
    """Declares the subscriptions and options of a bolt; each method returns the declarer, so that calls can be chained.

    Source: backtype.storm.topology.BoltDeclarer (InputDeclarer).
    """

    def __init__(self, component_id: str) -> None:
        super().__init__(component_id)
        self.subscriptions: list[Subscription] = []

    def shuffle_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Distributes tuples evenly over the tasks.

        On Spark, with equal numbers of tasks, each emitter task hands its tuples to the task with the same number; see
        `disable_chaining`.
        """
        return self.grouping(component_id, ShuffleGrouping(), stream_id)

    def fields_grouping(
        self, component_id: str, fields: Sequence[str], stream_id: str = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Sends tuples with equal values of `fields` to the same task."""
        return self.grouping(component_id, FieldsGrouping(self._names("fields_grouping", fields)), stream_id)

    def partial_key_grouping(
        self, component_id: str, fields: Sequence[str], stream_id: str = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Sends tuples with equal values of `fields` to two tasks, so that a frequent value does not overload one.

        A bolt downstream, on a fields grouping, has to merge the two partial results.
        """
        return self.grouping(component_id, PartialKeyGrouping(self._names("partial_key_grouping", fields)), stream_id)

    def all_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Sends every tuple to every task."""
        return self.grouping(component_id, AllGrouping(), stream_id)

    def global_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Sends every tuple to the task with the lowest id."""
        return self.grouping(component_id, GlobalGrouping(), stream_id)

    def none_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Leaves the choice to txbatch; currently the same as shuffle."""
        return self.grouping(component_id, NoneGrouping(), stream_id)

    def local_or_shuffle_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Prefers tasks on the emitter's worker.

        On Spark workers are not known in advance, so there it is the same as shuffle. Like shuffle, it makes a chain
        between components with equal numbers of tasks; see `disable_chaining`.
        """
        return self.grouping(component_id, LocalOrShuffleGrouping(), stream_id)

    def direct_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Receives the tuples that the emitter sends to single tasks by `emit_direct`."""
        return self.grouping(component_id, DirectGrouping(), stream_id)

    def custom_grouping(
        self, component_id: str, grouping: CustomGrouping, stream_id: str = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Lets a `CustomGrouping` of yours choose the tasks that receive each tuple."""
        if not isinstance(grouping, CustomGrouping):
            raise TopologyError(
                f"component {self.component_id!r}: custom_grouping got {described(grouping)}; "
                "give an instance of CustomGrouping"
            )
        return self.grouping(component_id, grouping, stream_id)

    def grouping(self, component_id: str, grouping: Grouping, stream_id: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Subscribes with any grouping."""
        if not isinstance(grouping, Grouping):
            raise TopologyError(
                f"component {self.component_id!r}: grouping got {described(grouping)}; give an instance of Grouping"
            )
        if any((s.upstream_id, s.stream_id) == (component_id, stream_id) for s in self.subscriptions):
            raise TopologyError(
                f"component {self.component_id!r} subscribes twice to stream {stream_id!r} of {component_id!r}; "
                "keep one grouping"
            )
        self.subscriptions.append(Subscription(component_id, stream_id, grouping))
        return self

    def _names(self, method: str, fields: Sequence[str]) -> tuple[str, ...]:
        if isinstance(fields, str):
            raise TopologyError(
                f"component {self.component_id!r}: {method} takes a list of fields, not {fields!r}; write [{fields!r}]"
            )
        return names_in(fields)


class GraphBuilder:
    """The base of all builders: collects components with their streams and subscriptions.

    Args:
        topology_id: names the topology.

    Raises:
        TopologyError: the name is not valid.
    """

    def __init__(self, topology_id: str) -> None:
        self._topology_id = check_name("topology id", topology_id)
        self._components: dict[str, tuple[ComponentKind, Any, int | None, BoltDeclarer | SpoutDeclarer]] = {}
        self._master_of: dict[str, str] = {}  # components of sub-topologies only
        self._acker_count = 1
        self._task_count_max: int | None = None
        self._task_hooks: list[ITaskHook] = []

    def set_max_task_parallelism(self, count: int) -> None:
        """Sets the most tasks that any component may have; its declarer may set another limit."""
        check_parallelism("max task parallelism", count)
        self._task_count_max = count

    def add_task_hook(self, hook: ITaskHook) -> None:
        """Adds a hook, which is shipped like a bolt: every task of every component gets a copy."""
        if not isinstance(hook, ITaskHook):
            raise TopologyError(f"add_task_hook got {described(hook)}; give an instance of ITaskHook")
        self._task_hooks.append(hook)

    def _graph(self) -> tuple[Component, ...]:
        """Returns the components, checked and in flow order."""
        components = [self._component(component_id) for component_id in self._components]
        check_graph(components)
        for component in components:
            check_methods(component)
        return tuple(in_flow_order(components))

    def _component(self, component_id: str) -> Component:
        kind, spec, given, declarer = self._components[component_id]
        parallelism = PLANNED_TASKS if given is None else given
        return Component(
            component_id=component_id,
            kind=kind,
            spec=spec,
            parallelism=parallelism,
            task_count=declarer.task_count(parallelism, self._task_count_max),
            streams=streams_of(spec, component_id),
            subscriptions=tuple(declarer.subscriptions) if isinstance(declarer, BoltDeclarer) else (),
            conf=component_configuration(component_id, spec, declarer),
            master_id=self._master_of.get(component_id),
            may_chain=declarer.may_chain,
            is_planned=declarer.is_planned(given),
        )

    def _add(
        self, kind: ComponentKind, spec: Any, parallelism: int | None, declarer: BoltDeclarer | SpoutDeclarer
    ) -> None:
        component_id = declarer.component_id
        check_name("component id", component_id)
        if component_id.startswith("__"):  # like ACKER_COMPONENT
            raise TopologyError(
                f"component id {component_id!r} begins with two underscores, which txbatch reserves; choose another"
            )
        if component_id in self._components:
            raise TopologyError(f"component id {component_id!r} is used twice; give each component its own")
        if parallelism is not None:
            check_parallelism(f"parallelism of component {component_id!r}", parallelism)
        self._components[component_id] = (kind, spec, parallelism, declarer)


class TransactionalTopologyBuilder(GraphBuilder):
    """Builds a transactional topology: one spout, batch bolts or basic bolts, and committers.

    Args:
        topology_id: names the topology; its state in Redis is ``{topology_id}:<name>``.
        spout_id: component id of the spout.
        spout: cuts the input into transactions.
        parallelism: number of executors that read the input, and of tasks unless `spout_declarer` sets another number;
            on Spark only of tasks. None leaves it to the planner, which chooses one task.
        shards: the number of hash slots that hold its state, 1 to 256; see docs/shards.md. It cannot be changed while
            the topology has state.

    Attributes:
        spout_declarer: sets the spout's number of tasks and configuration.

    Raises:
        TopologyError: a name is not valid, or `spout` is not a transactional spout.

    Source: backtype.storm.transactional.TransactionalTopologyBuilder.
    """

    def __init__(
        self, topology_id: str, spout_id: str, spout: Spout, parallelism: int | None = None, *, shards: int = 1
    ) -> None:
        super().__init__(topology_id)
        self._shard_count = check_shard_count(topology_id, shards)
        if not isinstance(spout, Spout):
            raise TopologyError(
                f"spout {spout_id!r} is {described(spout)}; give an instance of ITransactionalSpout, "
                f"IPartitionedTransactionalSpout or IOpaquePartitionedTransactionalSpout{_plain_way(spout)}"
            )
        if lacks_coordinator(spout):
            raise TopologyError(
                f"spout {spout_id!r} has no coordinator; define get_coordinator in class {type(spout).__name__}, or "
                "derive it from SpoutCoordinator too (from PartitionedCoordinator, if it has partitions)"
            )
        self.spout_declarer = SpoutDeclarer(spout_id)
        self._add(ComponentKind.SPOUT, spout, parallelism, self.spout_declarer)
        self._message_timeout_s = DEFAULT_MESSAGE_TIMEOUT_S
        self._letter_limits = DEFAULT_LETTER_LIMITS

    def set_bolt(
        self, component_id: str, bolt: IBatchBolt | IBasicBolt, parallelism: int | None = None
    ) -> BoltDeclarer:
        """Adds a batch bolt, which is a committer if it is an `ICommitter`, or a basic bolt, which ignores batches.

        Args:
            component_id: unique in the topology.
            bolt: shipped to the executors.
            parallelism: its number of executors, and of tasks unless `BoltDeclarer.set_num_tasks` sets another number;
                on Spark only of tasks. None leaves it to the planner, which chooses one task: waves are divided among
                all cores by batch, and no result depends on the machine.

        Raises:
            TopologyError: the id is taken or invalid, or `bolt` is neither an `IBatchBolt` nor an `IBasicBolt`.
        """
        kind = ComponentKind.COMMITTER if isinstance(bolt, ICommitter) else ComponentKind.BOLT
        return self._add_bolt(component_id, kind, bolt, parallelism)

    def set_committer_bolt(self, component_id: str, bolt: IBatchBolt, parallelism: int | None = None) -> BoltDeclarer:
        """Adds a batch bolt as a committer, whether or not its class is an `ICommitter`."""
        return self._add_bolt(component_id, ComponentKind.COMMITTER, bolt, parallelism)

    def set_acker_count(self, count: int) -> None:
        """Sets the number of acker tasks, at least 1: without ackers there are no guarantees."""
        check_parallelism("acker count", count)
        self._acker_count = count

    def set_message_timeout_s(self, seconds: float) -> None:
        """Sets how long a wave may take, in each of its two phases, more than 0 seconds; 60 by default.

        A wave that takes longer is ended and tried again with half as many transactions, down to one, so the timeout
        must suffice for one transaction. Code that blocks signals is cancelled two seconds later. If one transaction
        fails five times, the run ends and names the code that hangs.
        """
        self._message_timeout_s = check_message_timeout(seconds)

    def set_dead_letters(
        self,
        *,
        per_transaction: int = DEFAULT_LETTER_LIMITS.per_transaction,
        total: int = DEFAULT_LETTER_LIMITS.total,
        letter_bytes: int = DEFAULT_LETTER_LIMITS.letter_bytes,
    ) -> None:
        """Sets how many tuples the topology may refuse with ``collector.dead_letter``; see docs/dead-letters.md.

        No letter is ever dropped to stay below a limit: the run ends, and names the limit, before it commits the
        transaction that would exceed it.

        Args:
            per_transaction: most dead letters of one transaction.
            total: most dead letters stored at a time; `txbatch dead-letters drop` makes room.
            letter_bytes: largest dead letter, packed.

        Raises:
            TopologyError: a limit is not an integer in its range.
        """
        self._letter_limits = LetterLimits(per_transaction, total, letter_bytes)

    def build(self, conf: Mapping[str, Any] | None = None) -> Topology:
        """Checks everything and returns the topology.

        Args:
            conf: configuration passed to every `prepare`; a component's own takes precedence. Plain data.

        Raises:
            TopologyError: the graph has a cycle, an unknown component, stream or field, a bolt without input, a
                grouping that does not fit its stream, state outside a committer, a batch bolt that would ignore its
                tuples, or a committer that would not write its state; or a configuration value is not plain data.
        """
        components = self._graph()
        check_no_ticks("the topology's configuration", conf or {})
        for component in components:
            check_no_ticks(f"component {component.component_id!r}", component.conf)
        check_states(components)
        return Topology(
            topology_id=self._topology_id,
            components=components,
            conf=topology_configuration(conf),
            acker_count=self._acker_count,
            message_timeout_s=self._message_timeout_s,
            task_hooks=tuple(self._task_hooks),
            letter_limits=self._letter_limits,
            shard_count=self._shard_count,
        )

    def _add_bolt(self, component_id: str, kind: ComponentKind, bolt: Any, parallelism: int | None) -> BoltDeclarer:
        if not isinstance(bolt, (IBatchBolt, IBasicBolt)):
            raise TopologyError(
                f"component {component_id!r} is {described(bolt)}; give an instance of IBatchBolt or IBasicBolt"
                f"{_plain_way(bolt)}"
            )
        if kind is ComponentKind.COMMITTER and not isinstance(bolt, IBatchBolt):
            raise TopologyError(
                f"component {component_id!r} cannot be a committer: {type(bolt).__name__} is a basic bolt, which has "
                "no finish_batch to commit in; make it an IBatchBolt"
            )
        declarer = BoltDeclarer(component_id)
        self._add(kind, bolt, parallelism, declarer)
        return declarer


def described(thing: object) -> str:
    """Returns how a message names an object that it refuses."""
    if isinstance(thing, type):
        return f"the class {thing.__name__}, not an instance of it"
    return f"{thing!r} of type {type(thing).__name__}"


def _plain_way(thing: object) -> str:
    if isinstance(thing, (ISpout, IRichBolt)):
        return ", or build a plain topology with a TopologyBuilder"
    return ""
