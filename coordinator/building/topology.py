"""A topology as it was built and checked: components, streams and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.spouts import ISpout
from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import Grouping
from coordinator.spouts.kinds.kind_of import Spout

Spec = Spout | IBatchBolt | ISpout | IRichBolt | IBasicBolt

DEFAULT_MESSAGE_TIMEOUT_S = 60.0
"""As long as a person would wait before they ask what hangs."""


class ComponentKind(Enum):
    """What a component is."""

    SPOUT = "spout"
    BOLT = "bolt"
    COMMITTER = "committer"


@dataclass(frozen=True, slots=True)
class Subscription:
    """One stream a component receives.

    Attributes:
        upstream_id: the component that emits it.
        stream_id: its stream.
        grouping: how its tuples are spread over the subscriber's tasks.
    """

    upstream_id: str
    stream_id: str
    grouping: Grouping


@dataclass(frozen=True, slots=True)
class Component:
    """One component.

    Attributes:
        component_id: its name.
        kind: spout, bolt or committer.
        spec: the user's object, to be shipped.
        parallelism: number of executors asked for.
        task_count: number of tasks.
        streams: stream id -> stream, in the order of declaration.
        subscriptions: what it receives.
        conf: its own configuration, which wins over the topology's.
        master_id: id of the master of the sub-topology it belongs to, its own if it is the master; None outside.
    """

    component_id: str
    kind: ComponentKind
    spec: Spec
    parallelism: int
    task_count: int
    streams: Mapping[str, StreamSpec]
    subscriptions: tuple[Subscription, ...] = ()
    conf: Mapping[str, Any] = field(default_factory=dict)
    master_id: str | None = None

    @property
    def executor_count(self) -> int:
        """Executors that are used: those beyond the tasks have nothing to do."""
        return min(self.parallelism, self.task_count)


@dataclass(frozen=True, slots=True)
class ComponentGraph:
    """What any checked topology is made of.

    Attributes:
        topology_id: names the topology and all its keys.
        components: each after what it subscribes to.
        conf: the user's configuration, handed to every `prepare`.
        acker_count: number of acker tasks.
        task_hooks: watch every task; shipped.
    """

    topology_id: str
    components: tuple[Component, ...]
    conf: Mapping[str, Any] = field(default_factory=dict)
    acker_count: int = 1
    task_hooks: tuple[ITaskHook, ...] = ()

    def component(self, component_id: str) -> Component:
        """The component of that id."""
        return next(c for c in self.components if c.component_id == component_id)


@dataclass(frozen=True, slots=True)
class Topology(ComponentGraph):
    """A checked transactional topology, ready to be planned and run; its first component is the spout.

    Attributes:
        message_timeout_s: how long a wave may take, in each of its two phases, before what hangs is ended, named and
            tried again, in seconds.
    """

    message_timeout_s: float = DEFAULT_MESSAGE_TIMEOUT_S

    @property
    def spout(self) -> Component:
        """The spout's component."""
        return self.components[0]
