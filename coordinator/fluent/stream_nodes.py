"""The steps of a stream as a graph, the part of the graph that runs, and its checks.

Each call on a `Stream` adds a node to the graph of its source; `compilation` makes a topology of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from coordinated_bolt.components.component import streams_of
from coordinated_bolt.streams.groupings import Grouping
from coordinator.fluent.fused_bolt import Refusal
from coordinator.fluent.joins import DropWhen
from coordinator.fluent.keepers import Lookup
from coordinator.fluent.kept_aggregation import FieldOrigin, KeptAggregation
from coordinator.fluent.row_steps import ChosenFields, FilterStep, MapStep, RowStep
from state.errors import TopologyError
from state.kinds.handles import DeclaredState, declared_states
from state.kinds.state_family import StateFamily


class ReadFrom(NamedTuple):
    bolt: Any
    parallelism: int | None


class LookedUp(NamedTuple):
    """A lookup of rows in a state, by their keys.

    Attributes:
        kind: the committer that looks rows up.
        keys: part and key, and the state.
        appends: see `Lookup`.
        kept: the aggregation to write instead, if no step uses the rows.
        is_of_any: whether the state may still be written, so that it is read as the previous transactions have left it.
    """

    kind: type[Lookup]
    keys: KeptAggregation
    appends: bool
    kept: KeptAggregation | None = None
    is_of_any: bool = False


class Joined(NamedTuple):
    """Two streams whose rows wait for each other; for the fields see `Joining`."""

    keys: tuple[KeptAggregation, KeptAggregation]
    others: tuple[Sequence[str], Sequence[str]]
    drop_when: DropWhen


class SentTo(NamedTuple):
    bolt: Any
    grouping: Grouping
    is_committer: bool


class OutputOf(NamedTuple):
    stream_id: str


class MergedRows(NamedTuple):
    """The rows of all parents."""


Step: TypeAlias = ReadFrom | RowStep | Refusal | KeptAggregation | LookedUp | Joined | SentTo | OutputOf | MergedRows


@dataclass(eq=False, slots=True)
class StreamNode:
    """One step of a stream.

    Attributes:
        step: the work of the step.
        said: the method, and the user's file and line, for messages.
        fields: fields of its rows.
        types: field -> type, for fields whose component declares a type.
        label: name for its component.
        parents: the nodes whose rows it gets.
        children: the nodes that get its rows.
        is_shown: whether the user has looked at its rows; then it may have no children.
        record_class: the class of its rows, whose objects functions are given, if there is one; it has some of the
            fields.
    """

    step: Step
    said: str
    fields: tuple[str, ...]
    types: Mapping[str, Any]
    label: str
    parents: tuple[StreamNode, ...] = ()
    children: list[StreamNode] = field(default_factory=list)
    is_shown: bool = False
    record_class: type[Any] | None = None

    def merged(self) -> list[StreamNode]:
        """Returns the nodes whose rows it merges; only itself if it is not a merge."""
        if isinstance(self.step, MergedRows):
            return [each for parent in self.parents for each in parent.merged()]
        return [self]

    def kept(self) -> KeptAggregation | None:
        """Returns the aggregation that the step writes, or None; a lookup writes one only if it has no children."""
        if isinstance(self.step, LookedUp):
            return None if self.children else self.step.kept
        return self.step if isinstance(self.step, KeptAggregation) else None

    def without_rows(self) -> str:
        """Returns a sentence that the step emits nothing, with a remedy."""
        if not isinstance(self.step, ReadFrom | SentTo):
            return f"{self.said} emits nothing"
        if streams := sorted(streams_of(self.step.bolt, self.label)):
            shown = ", ".join(map(repr, streams))
            return f"{self.said} emits nothing on its default stream; name another by .output(...): {shown}"
        return f"{self.said} emits nothing; set its output_fields"

    def origin_of(self, name: str) -> FieldOrigin:
        """Returns which step, or component, made a field of its rows."""
        step, parent = self.step, self.parents[0] if self.parents else self
        if isinstance(step, MapStep) and step.layout[self.fields.index(name)] >= len(parent.fields):
            return FieldOrigin(str(step.function), self.types.get(name))
        if isinstance(step, ChosenFields):
            return parent.origin_of(parent.fields[step.positions[self.fields.index(name)]])
        if isinstance(step, RowStep | Refusal | LookedUp) and name in parent.fields:
            origin = parent.origin_of(name)
            is_asked = isinstance(step, FilterStep | Refusal) and parent.fields.index(name) in step.positions
            return origin._replace(is_filtered=origin.is_filtered or is_asked)
        return FieldOrigin(self.said, self.types.get(name))

    def is_end(self) -> bool:
        """Returns whether the step has an effect even if no step uses its rows."""
        return isinstance(self.step, KeptAggregation | LookedUp | SentTo)

    def is_fused(self) -> bool:
        """Returns whether the step, or its first half, runs in the bolt that has its parent's rows."""
        kept = self.kept()
        return isinstance(self.step, RowStep) or (kept is not None and kept.aggregation.combines)


def steps_that_run(nodes: Sequence[StreamNode]) -> list[StreamNode]:
    """Returns the steps, except steps whose rows the user has only looked at; the source is always included."""
    ends = [each for each in nodes[1:] if not each.children and (each.is_end() or not each.is_shown)]
    return steps_for(nodes, [nodes[0], *ends])


def steps_for(nodes: Sequence[StreamNode], ends: Sequence[StreamNode]) -> list[StreamNode]:
    """Returns a graph that has only copies of some steps, and of all steps that their rows depend on."""
    waiting = list(ends)
    needed = {*waiting}
    for node in waiting:
        read = node.step.keys.state.name if isinstance(node.step, LookedUp) and not node.step.kind.owns_state else None
        writers = (each for each in nodes if read in {state.name for state in _written_by(each)})
        new = [each for each in (*node.parents, *writers) if each not in needed]
        needed.update(new)
        waiting += new
    copies: dict[StreamNode, StreamNode] = {}
    for node in (each for each in nodes if each in needed):
        copies[node] = replace(node, parents=tuple(copies[each] for each in node.parents), children=[])
        for parent in copies[node].parents:
            parent.children.append(copies[node])
    return list(copies.values())


def _written_by(node: StreamNode) -> list[DeclaredState]:
    step = node.step
    if isinstance(step, SentTo):
        return list(declared_states(step.bolt).values())
    if isinstance(step, KeptAggregation):
        return [step.state]
    if isinstance(step, Joined):
        return [step.keys[0].state]
    return [step.keys.state] if isinstance(step, LookedUp) and step.kind.owns_state else []


def check_ends(nodes: Sequence[StreamNode]) -> None:
    """Refuses a stream that keeps nothing, and steps whose rows no step uses."""
    if not any(node.is_end() for node in nodes):
        raise TopologyError(
            f"nothing is kept of the {nodes[0].said}; end it with count_by, sum_by or another aggregation into a "
            "state, or with commit(...)"
        )
    for node in nodes:
        if not node.children and not node.is_end():
            raise TopologyError(
                f"nothing uses the rows of {node.said}; this step leaves its stream as it is and returns another; "
                "use that one, or remove the step"
            )


def check_reads(nodes: Sequence[StreamNode]) -> None:
    """Refuses lookups in a state that no step writes, that is declared with other types, or that is still written."""
    written: dict[str, DeclaredState] = {}
    writers: dict[str, list[StreamNode]] = {}
    for node in nodes:
        for state in _written_by(node):
            written[state.name] = state
            writers.setdefault(state.name, []).append(node)
    for node in nodes:
        if isinstance(node.step, LookedUp) and not node.step.kind.owns_state:
            state = node.step.keys.state
            if state.name not in written:
                raise TopologyError(
                    f"{node.said} reads state {state.name!r}, which nothing in this topology writes; written: "
                    f"{', '.join(sorted(written)) or 'none'}"
                )
            if _declared_as(state) != _declared_as(written[state.name]):
                raise TopologyError(
                    f"{node.said} reads {state!r}, which is written with other types; use one handle for both"
                )
            are_first = all(map(_is_read_first, writers[state.name])) and not _is_read_first(node, any)
            if not node.step.is_of_any and not are_first:
                raise TopologyError(
                    f"{node.said} reads state {state.name!r} while {writers[state.name][0].said} writes it, so the "
                    "answer depends on how many rows a transaction takes; read the table to its end first, by "
                    "Inputs(table=first(...), rows=...), or accept that by as_of='transaction'"
                )


def _is_read_first(node: StreamNode, judge: Callable[[Iterable[bool]], bool] = all) -> bool:
    """Returns whether all rows of a node come from sources that are read before others; with `any`, whether some do."""
    if isinstance(node.step, OutputOf) and isinstance(source := node.parents[0].step, ReadFrom):
        return node.step.stream_id in getattr(source.bolt, "first_streams", ())
    return bool(node.parents) and judge(_is_read_first(parent, judge) for parent in node.parents)


def _declared_as(state: DeclaredState) -> tuple[object, ...]:
    return state.kind, state.value_type, state.field_type, isinstance(state, StateFamily) and state.part_type
