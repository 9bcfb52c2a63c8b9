"""A component of a topology, and the streams that it receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.spouts import ISpout
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import Grouping
from coordinator.spouts.spout_kind import Spout

Spec = Spout | IBatchBolt | ISpout | IRichBolt | IBasicBolt
LETTERS = "letters:"
"""Prefix of the ids of streams of dead letters; no user's stream can have it, because names have no colon."""


class ComponentKind(Enum):
    """The role of a component."""

    SPOUT = "spout"
    BOLT = "bolt"
    COMMITTER = "committer"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of a component to a stream of a component upstream."""

    upstream_id: str
    stream_id: str
    grouping: Grouping

    @property
    def is_of_letters(self) -> bool:
        """Whether it was added to republish dead letters, so no description of the topology shows it."""
        return self.stream_id.startswith(LETTERS)


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a topology.

    Attributes:
        spec: the user's object, which is shipped to the executors.
        parallelism: number of executors asked for.
        is_planned: whether the planner chose its number of tasks, since none was given.
        streams: stream id -> emitted stream, in the order of declaration.
        conf: its own configuration, which takes precedence over the topology's.
        master_id: id of the master of its sub-topology, its own id if it is the master; None outside of one.
        may_chain: whether it may run in one Spark task with a component upstream or downstream.
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
