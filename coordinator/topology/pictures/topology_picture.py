"""The model of a picture of a topology: components, subscriptions, and groups that run together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from state.printable import counted


@dataclass(frozen=True, slots=True)
class PicturedState:
    """A state that a committer writes; `holds` has the declared types, such as "str -> int"."""

    name: str
    key: str
    redis_type: str
    holds: str


@dataclass(frozen=True, slots=True)
class Node:
    component_id: str
    kind: str  # "spout", "bolt" or "committer"
    class_name: str
    task_count: int
    states: tuple[PicturedState, ...] = ()
    note: str = ""

    @property
    def role(self) -> str:
        return f"{self.kind} · {counted(self.task_count, 'task')}"


@dataclass(frozen=True, slots=True)
class Edge:
    """A subscription of the target; with `in_memory`, tuples are handed over within a task, without a shuffle."""

    source: str
    target: str
    stream_id: str
    fields: tuple[str, ...]
    grouping: str  # such as "fields word"
    in_memory: bool = False

    @property
    def label(self) -> str:
        """The stream, unless it is the default one, and the grouping."""
        stream = "" if self.stream_id == "default" else f"{self.stream_id}: "
        return f"{stream}{self.grouping}{', in memory' if self.in_memory else ''}"


@dataclass(frozen=True, slots=True)
class PicturedPlace:
    """Components that run in one place, in flow order."""

    name: str  # such as "stage 1"
    phase: str  # "processing" or "commit"; "" where there are no phases
    members: tuple[str, ...]
    details: tuple[str, ...] = ()  # further facts about the place, such as "1 acker"

    @property
    def label(self) -> str:
        return " · ".join(part for part in (self.name, self.phase, *self.details) if part)


@dataclass(frozen=True, slots=True)
class TopologyPicture:
    """The picture of a topology.

    Attributes:
        kind: "transactional" or "plain".
        nodes: in flow order.
        edges: in the order of the subscribing components.
        groups: the places and their components, in order; empty without a plan.
        facts: sentences about the whole topology.
    """

    topology_id: str
    kind: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    groups: tuple[PicturedPlace, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
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
