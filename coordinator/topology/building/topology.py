"""A topology, built and checked: its components, streams and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.spouts import ISpout
from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import Grouping
from coordinator.spouts.spout_kind import Spout
from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits
from state.kinds.handles import DeclaredState, declared_states
from state.kinds.state_family import StateFamily

Spec = Spout | IBatchBolt | ISpout | IRichBolt | IBasicBolt

DEFAULT_MESSAGE_TIMEOUT_S = 60.0
"""About as long as a person would wait before asking what hangs."""


LETTERS = "letters:"
"""Begins the ids of streams of dead letters; no user's stream can have such an id, because names hold no colon."""


class ComponentKind(Enum):
    """The role of a component."""

    SPOUT = "spout"
    BOLT = "bolt"
    COMMITTER = "committer"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A stream that a component receives from the one upstream."""

    upstream_id: str
    stream_id: str
    grouping: Grouping

    @property
    def is_of_letters(self) -> bool:
        """Whether it was added to republish dead letters, and belongs to no description of the topology."""
        return self.stream_id.startswith(LETTERS)


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a topology.

    Attributes:
        spec: the user's object, which is shipped to the executors.
        parallelism: number of executors asked for.
        is_planned: whether the planner chose its number of tasks, since none was given.
        streams: stream id -> stream that it emits, in the order of declaration.
        conf: its own configuration, which takes precedence over the topology's.
        master_id: id of the master of its sub-topology, its own id if it is the master; None outside of one.
        may_chain: whether it may run in one Spark task with a component it hears or is heard by.
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
    may_chain: bool = True
    is_planned: bool = False

    @property
    def executor_count(self) -> int:
        """The number of executors that have tasks."""
        return min(self.parallelism, self.task_count)

    @property
    def has_external_effects(self) -> bool:
        """Whether it is a committer that changes anything outside declared state."""
        return bool(getattr(self.spec, "external_effects", False))

    def __repr__(self) -> str:
        heard = [f"{s.upstream_id}/{s.stream_id}" for s in self.subscriptions]
        hears = f" <- {', '.join(heard)}" if heard else ""
        return f"<{self.kind.value} {self.component_id}: {type(self.spec).__name__} * {self.task_count}{hears}>"


@dataclass(frozen=True, slots=True)
class ComponentGraph:
    """The parts that every checked topology has; it shows as a picture in notebooks.

    Attributes:
        topology_id: names the topology and all its keys.
        components: each after those it subscribes to.
        conf: the user's configuration, handed to every `prepare`.
        acker_count: number of acker tasks.
        task_hooks: hooks of every task; shipped to the executors.
        kind: "transactional" or "plain".
    """

    kind: ClassVar[str] = "plain"
    topology_id: str
    components: tuple[Component, ...]
    conf: Mapping[str, Any] = field(default_factory=dict)
    acker_count: int = 1
    task_hooks: tuple[ITaskHook, ...] = ()

    def component(self, component_id: str) -> Component:
        """Returns the component with that id, which must exist."""
        return next(c for c in self.components if c.component_id == component_id)

    def __repr__(self) -> str:
        shown = ", ".join(f"{c.component_id} * {c.task_count} ({c.kind.value})" for c in self.components)
        return f"{type(self).__name__}({self.topology_id!r}: {shown})"

    def _repr_html_(self) -> str:
        from coordinator.topology.building.picture_maker import picture_of  # only a notebook needs them
        from coordinator.topology.pictures.picture_texts import html_of

        return html_of(picture_of(self))


@dataclass(frozen=True, slots=True, repr=False)
class Topology(ComponentGraph):
    """A checked transactional topology, ready to be planned and run; its first component is the spout.

    Attributes:
        message_timeout_s: how long a wave may take, in seconds, in each of its two phases, before what hangs is
            named, ended and tried again.
        letter_limits: how many dead letters it may keep.
        shard_count: how many shards hold its state; 1 keeps it in the topology's own slot.
    """

    kind: ClassVar[str] = "transactional"
    message_timeout_s: float = DEFAULT_MESSAGE_TIMEOUT_S
    letter_limits: LetterLimits = DEFAULT_LETTER_LIMITS
    shard_count: int = 1

    @property
    def spout(self) -> Component:
        """The spout's component."""
        return self.components[0]

    @property
    def states(self) -> list[DeclaredState]:
        """The states that its components declare."""
        return [state for c in self.components for state in declared_states(c.spec).values()]

    @property
    def expires(self) -> bool:
        """Whether a state of it has parts that expire."""
        return any(isinstance(state, StateFamily) and state.expire_at is not None for state in self.states)

    @property
    def fields_expire(self) -> bool:
        """Whether a state of it has fields that expire."""
        return any(state.fields_expire for state in self.states)
