"""What a picture of a topology shows: its components, who hears whom, and what runs together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from state.printable import counted


@dataclass(frozen=True, slots=True)
class PicturedState:
    """A state that a committer writes.

    Attributes:
        name: as declared.
        key: its Redis key.
        redis_type: as in the reply to TYPE.
        holds: the declared types, such as "str -> int".
    """

    name: str
    key: str
    redis_type: str
    holds: str


@dataclass(frozen=True, slots=True)
class Node:
    """A component.

    Attributes:
        component_id: unique in its topology.
        kind: "spout", "bolt" or "committer".
        class_name: of the user's object.
        task_count: number of tasks.
        states: what it writes.
        note: what else there is to know of it, "" for nothing.
    """

    component_id: str
    kind: str
    class_name: str
    task_count: int
    states: tuple[PicturedState, ...] = ()
    note: str = ""

    @property
    def role(self) -> str:
        """Its kind and number of tasks."""
        return f"{self.kind} · {counted(self.task_count, 'task')}"


@dataclass(frozen=True, slots=True)
class Edge:
    """A subscription.

    Attributes:
        source: id of the component that emits.
        target: id of the component that hears.
        stream_id: of the stream.
        fields: of its tuples.
        grouping: how tuples are distributed, such as "fields word".
        in_memory: both components run in one task, and tuples are handed over without a shuffle.
    """

    source: str
    target: str
    stream_id: str
    fields: tuple[str, ...]
    grouping: str
    in_memory: bool = False

    @property
    def label(self) -> str:
        """The stream, unless it is the default one, and the grouping."""
        stream = "" if self.stream_id == "default" else f"{self.stream_id}: "
        return f"{stream}{self.grouping}{', in memory' if self.in_memory else ''}"


@dataclass(frozen=True, slots=True)
class PicturedPlace:
    """Components that run in one place.

    Attributes:
        name: of the place, such as "stage 1".
        phase: "processing" or "commit"; "" where there are no phases.
        members: component ids, in flow order.
        details: what else runs there or holds for it, such as "1 acker".
    """

    name: str
    phase: str
    members: tuple[str, ...]
    details: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Everything about it but its members."""
        return " · ".join(part for part in (self.name, self.phase, *self.details) if part)


@dataclass(frozen=True, slots=True)
class TopologyPicture:
    """A topology as it is shown.

    Attributes:
        topology_id: names it.
        kind: "transactional" or "plain".
        nodes: in flow order.
        edges: in the order of the components that hear.
        groups: what runs where, in order; empty if it was not planned.
        facts: sentences about the whole.
    """

    topology_id: str
    kind: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    groups: tuple[PicturedPlace, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """What it is, in one line."""
        tasks = sum(node.task_count for node in self.nodes)
        return f"{self.kind} topology, {counted(len(self.nodes), 'component')}, {counted(tasks, 'task')}"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for ``--json``."""
        return {
            "topology": self.topology_id,
            "kind": self.kind,
            "components": [asdict(node) for node in self.nodes],
            "subscriptions": [asdict(edge) for edge in self.edges],
            "stages": [asdict(group) for group in self.groups],
            "facts": list(self.facts),
        }
