"""A topology, built and checked: its components, streams and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from coordinated_bolt.components.task_hook import ITaskHook
from coordinator.topology.building.component import Component
from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits
from state.kinds.handles import DeclaredState, declared_states
from state.kinds.state_family import StateFamily

DEFAULT_MESSAGE_TIMEOUT_S = 60.0
"""About as long as a person would wait before asking what hangs."""


@dataclass(frozen=True, slots=True)
class ComponentGraph:
    """The base of all checked topologies; notebooks display it as a picture.

    Attributes:
        topology_id: names the topology and all its keys.
        components: each after the components to which it subscribes.
        conf: the user's configuration, passed to every `prepare`.
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
        from coordinator.topology.pictures.picture_maker import html_picture  # only a notebook needs it

        return html_picture(self)


@dataclass(frozen=True, slots=True, repr=False)
class Topology(ComponentGraph):
    """A checked transactional topology, ready to be planned and run; its first component is the spout.

    Attributes:
        message_timeout_s: how long a wave may take, in seconds, in each of its two phases, before a task that hangs is
            named, ended and retried.
        letter_limits: how many dead letters the topology may keep.
        shard_count: how many shards hold the topology's state; 1 keeps it in the topology's own slot.
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
        """The states that the topology's components declare."""
        return [state for c in self.components for state in declared_states(c.spec).values()]

    @property
    def expires(self) -> bool:
        """Whether one of its states has parts that expire."""
        return any(isinstance(state, StateFamily) and state.expire_at is not None for state in self.states)

    @property
    def fields_expire(self) -> bool:
        """Whether one of its states has fields that expire."""
        return any(state.fields_expire for state in self.states)
