"""Makes a topology of a stream's steps: components, groupings and committers, as if written by hand.

Steps that follow one another become one bolt, with the first halves of the aggregations below them. What needs a
component of its own are a user's bolt, a state that rows pass, and the refusal of tuples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from coordinated_bolt.components.component import streams_of
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.groupings import FieldsGrouping, GlobalGrouping, Grouping, ShuffleGrouping
from coordinator.fluent.fused_bolt import CombiningOutlet, FusedBolt, Pipe, PipedBolt, Refusal, RowOutlet
from coordinator.fluent.joins import DropWhen, Joining
from coordinator.fluent.keepers import Keeper, Lookup
from coordinator.fluent.kept_in import FieldOrigin, KeptIn
from coordinator.fluent.row_steps import ChosenFields, FilterStep, MapStep, RowStep
from coordinator.fluent.user_function import step_of
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.errors import TopologyError
from state.kinds.handles import DeclaredState, declared_states
from state.kinds.state_family import StateFamily

_NO_ID = re.compile(r"[^A-Za-z0-9_]+")
_ID_MAX = 64


class ReadFrom(NamedTuple):
    bolt: Any
    parallelism: int | None


class PassedBy(NamedTuple):
    """A state that rows pass, by their keys.

    Attributes:
        kind: what they are looked up by.
        keys: part and key, and the state.
        appends: as of `Lookup`.
        kept: what is done instead if nobody wants the rows.
        is_of_any: whether it may look into a state that is being written, as the transactions before have left it.
    """

    kind: type[Lookup]
    keys: KeptIn
    appends: bool
    kept: KeptIn | None = None
    is_of_any: bool = False


class Joined(NamedTuple):
    """Two streams whose rows wait for each other; the fields are as of `Joining`."""

    keys: tuple[KeptIn, KeptIn]
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


Said: TypeAlias = ReadFrom | RowStep | Refusal | KeptIn | PassedBy | Joined | SentTo | OutputOf | MergedRows


@dataclass(eq=False, slots=True)
class StreamNode:
    """One thing that was said of a stream.

    Attributes:
        what: it was.
        said: the method, and the user's file and line; messages show it.
        fields: of the rows that leave it.
        types: of those fields for which the component that emits them declares one.
        label: names its component.
        parents: whose rows it gets.
        children: who gets its rows.
        is_shown: whether a user has looked at its rows; it may then be that nobody gets them.
    """

    what: Said
    said: str
    fields: tuple[str, ...]
    types: Mapping[str, Any]
    label: str
    parents: tuple[StreamNode, ...] = ()
    children: list[StreamNode] = field(default_factory=list)
    is_shown: bool = False

    def merged(self) -> list[StreamNode]:
        """Returns the nodes whose rows it has; itself, unless it has only merged them."""
        if isinstance(self.what, MergedRows):
            return [each for parent in self.parents for each in parent.merged()]
        return [self]

    def kept(self) -> KeptIn | None:
        """Returns the aggregation that it is, if nobody wants its rows."""
        if isinstance(self.what, PassedBy):
            return None if self.children else self.what.kept
        return self.what if isinstance(self.what, KeptIn) else None

    def without_rows(self) -> str:
        """Returns that it emits nothing, and what the user can do about it."""
        if not isinstance(self.what, ReadFrom | SentTo):
            return f"{self.said} emits nothing"
        if streams := sorted(streams_of(self.what.bolt, self.label)):
            shown = ", ".join(map(repr, streams))
            return f"{self.said} emits nothing on its default stream; name another by .output(...): {shown}"
        return f"{self.said} emits nothing; set its output_fields"

    def origin_of(self, name: str) -> FieldOrigin:
        """Returns which step, or component, made a field of its rows."""
        what, parent = self.what, self.parents[0] if self.parents else self
        if isinstance(what, MapStep) and what.layout[self.fields.index(name)] >= len(parent.fields):
            return FieldOrigin(str(what.function))
        if isinstance(what, ChosenFields):
            return parent.origin_of(parent.fields[what.positions[self.fields.index(name)]])
        if isinstance(what, RowStep | Refusal | PassedBy) and name in parent.fields:
            origin = parent.origin_of(name)
            is_asked = isinstance(what, FilterStep | Refusal) and parent.fields.index(name) in what.positions
            return origin._replace(is_filtered=origin.is_filtered or is_asked)
        return FieldOrigin(self.said, self.types.get(name))

    def is_end(self) -> bool:
        """Whether it does something even if nobody gets its rows."""
        return isinstance(self.what, KeptIn | PassedBy | SentTo)

    def is_fused(self) -> bool:
        """Whether it runs, at least by half, where its parent's rows are."""
        kept = self.kept()
        return isinstance(self.what, RowStep) or (kept is not None and kept.aggregation.combines)


class _Host(NamedTuple):
    """Where in a bolt of ours rows are."""

    component_id: str
    bolt: PipedBolt
    pipe: Pipe


class Compilation:
    """Adds the components of a stream's nodes to a builder (driver, once).

    Args:
        topology_id: names the topology.
        nodes: all nodes, the source first, each after its parents.
        user_modules: what executors import for the functions in them.
        parallelism: of every component but the source.
        shards: of the topology.
    """

    def __init__(
        self,
        topology_id: str,
        nodes: Sequence[StreamNode],
        user_modules: set[str],
        parallelism: int | None,
        shards: int,
    ) -> None:
        _check_ends(nodes)
        _check_reads(nodes)
        source = nodes[0]
        assert isinstance(source.what, ReadFrom)
        self.builder = TransactionalTopologyBuilder(
            topology_id, source.label, source.what.bolt, source.what.parallelism, shards=shards
        )
        self._modules, self._parallelism = user_modules, parallelism
        self._ids = {source.label}
        self._streams = {source: (source.label, DEFAULT_STREAM)}
        self._hosts: dict[StreamNode, _Host] = {}
        for node in nodes[1:]:
            self._add(node)

    def component_of(self, node: StreamNode) -> str:
        """Returns the id of the component that a bolt of the user's, or a step alone in its bolt, has become."""
        return self._streams[node][0]

    def _add(self, node: StreamNode) -> None:
        what, parent, kept = node.what, node.parents[0], node.kept()
        if kept is not None:
            self._add_kept(node, kept)
            return
        match what:
            case RowStep():
                host, pipe = self._host(parent), Pipe(what)
                host.pipe.outlets.append(pipe)
                self._hosts[node] = host._replace(pipe=pipe)
            case Refusal():
                is_next = isinstance(parent.what, Refusal) and len(parent.children) == 1
                host = self._hosts[parent] if is_next else self._set_fused(node.label, node.said, parent)
                assert isinstance(host.bolt, FusedBolt)
                host.bolt.refusals.append(what)
                self._hosts[node] = host
            case PassedBy():
                bolt = what.kind(parent.fields, what.keys, appends=what.appends)
                grouping = _grouping(what.keys.aggregation.group)
                component_id = self._set(node.label, bolt, grouping, self._places(parent), is_committer=True)
                self._hosts[node] = _Host(component_id, bolt, bolt.pipe)
            case Joined():
                joining, places = Joining(*what), [self._places(each) for each in node.parents]
                grouping = _grouping(what.keys[0].aggregation.group)
                component_id = self._set(node.label, joining, grouping, [*places[0], *places[1]], is_committer=True)
                joining.sides = {place: side for side in (0, 1) for place in places[side]}
                self._hosts[node] = _Host(component_id, joining, joining.pipe)
            case SentTo():
                component_id = self._set(
                    node.label, what.bolt, what.grouping, self._places(parent), is_committer=what.is_committer
                )
                self._streams[node] = component_id, DEFAULT_STREAM
            case OutputOf():
                self._streams[node] = self._streams[parent][0], what.stream_id

    def _add_kept(self, node: StreamNode, kept: KeptIn) -> None:
        parent, aggregation, group = node.parents[0], kept.aggregation, kept.aggregation.group
        places = self._places(parent) if not aggregation.combines else []
        if not places:
            host = self._host(parent)
            stream_id = _new_stream(host.bolt, kept.state.name, aggregation.sent)
            grouped, taken = (tuple(map(parent.fields.index, names)) for names in (group, aggregation.takes))
            host.pipe.outlets.append(CombiningOutlet(stream_id, kept, grouped, taken))
            places = [(host.component_id, stream_id)]
        self._set(node.label, Keeper(kept), _grouping(aggregation.sent[: len(group)]), places, is_committer=True)

    def _set_fused(self, label: str, said: str, parent: StreamNode) -> _Host:
        bolt = FusedBolt(said)
        return _Host(self._set(label, bolt, ShuffleGrouping(), self._places(parent)), bolt, bolt.pipe)

    def _set(
        self,
        label: str,
        bolt: Any,
        grouping: Grouping,
        places: Sequence[tuple[str, str]],
        *,
        is_committer: bool = False,
    ) -> str:
        """Adds a component that hears the streams at these places; returns its id."""
        add = self.builder.set_committer_bolt if is_committer else self.builder.set_bolt
        component_id = _new_name(label, self._ids)
        if isinstance(bolt, PipedBolt | Keeper):
            bolt.user_modules = self._modules
        declarer = add(component_id, bolt, None if isinstance(grouping, GlobalGrouping) else self._parallelism)
        for upstream_id, stream_id in places:
            declarer.grouping(upstream_id, grouping, stream_id)
        return component_id

    def _host(self, node: StreamNode) -> _Host:
        """Returns where steps can be put that get the rows of a node; makes a bolt if these are in none of ours."""
        host = self._hosts.get(node)
        if host is None:
            first = next(child for child in node.children if child.is_fused())
            host = self._hosts[node] = self._set_fused(_label_below(node), first.said, node)
        return host

    def _places(self, node: StreamNode) -> list[tuple[str, str]]:
        """Returns the streams that have the rows of a node, as (component, stream)."""
        if isinstance(node.what, MergedRows):
            return [place for parent in node.parents for place in self._places(parent)]
        if node not in self._streams:
            host = self._hosts[node]
            stream_id = _new_stream(host.bolt, node.label, node.fields)
            host.pipe.outlets.append(RowOutlet(stream_id))
            self._streams[node] = host.component_id, stream_id
        return [self._streams[node]]


def id_of(name: str) -> str:
    """Returns a name for a component, made of one in the user's code; "" for a lambda."""
    return _NO_ID.sub("_", name.replace("<lambda>", "").rpartition(".")[2]).strip("_")


def _new_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted[:_ID_MAX], 1
    while name in taken:
        number += 1
        name = f"{wanted[: _ID_MAX - 5]}_{number}"
    taken.add(name)
    return name


def _new_stream(bolt: PipedBolt, wanted: str, fields: Sequence[str]) -> str:
    """Declares a stream; the first is the default one."""
    stream_id = _new_name(wanted, {*bolt.streams}) if bolt.streams else DEFAULT_STREAM
    bolt.streams[stream_id] = fields
    return stream_id


def _label_below(node: StreamNode) -> str:
    """Returns what to call the bolt that gets the rows of a node: by its steps, or else by what it combines."""
    fused = [child for child in node.children if child.is_fused()]
    combined, steps = f"{step_of(fused[0].said)}_{fused[0].label}", []
    while fused:
        child = fused.pop(0)
        if isinstance(child.what, RowStep):
            steps.append(child.label)
            fused += child.children
    return "-".join(dict.fromkeys(steps)) or combined


def _grouping(fields: Sequence[str]) -> Grouping:
    return FieldsGrouping(tuple(fields)) if fields else GlobalGrouping()


def _check_ends(nodes: Sequence[StreamNode]) -> None:
    """Refuses a stream that keeps nothing, and steps whose rows nobody gets."""
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


def topology_of_rows(
    nodes: Sequence[StreamNode], node: StreamNode, user_modules: set[str], said: str
) -> tuple[Topology, str]:
    """Returns a topology in which only what the rows of a node depend on runs, and the component that emits them."""
    bolt = FusedBolt(said)
    bolt.streams[DEFAULT_STREAM] = node.fields
    bolt.pipe.outlets.append(RowOutlet(DEFAULT_STREAM))
    shown = StreamNode(SentTo(bolt, ShuffleGrouping(), is_committer=False), said, node.fields, {}, "shown", (node,))
    node.is_shown = True
    steps = steps_for([*nodes, shown], [shown])
    compilation = Compilation("rows", steps, user_modules, 1, 1)
    return compilation.builder.build(), compilation.component_of(steps[-1])


def steps_that_run(nodes: Sequence[StreamNode]) -> list[StreamNode]:
    """Returns the steps without those whose rows a user has only looked at; the source is one in any case."""
    ends = [each for each in nodes[1:] if not each.children and (each.is_end() or not each.is_shown)]
    return steps_for(nodes, [nodes[0], *ends])


def steps_for(nodes: Sequence[StreamNode], ends: Sequence[StreamNode]) -> list[StreamNode]:
    """Returns copies of some steps, and of all that their rows depend on, as if no others had been said."""
    waiting = list(ends)
    needed = {*waiting}
    for node in waiting:
        read = node.what.keys.state.name if isinstance(node.what, PassedBy) and not node.what.kind.owns_state else None
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
    what = node.what
    if isinstance(what, SentTo):
        return list(declared_states(what.bolt).values())
    if isinstance(what, KeptIn):
        return [what.state]
    if isinstance(what, Joined):
        return [what.keys[0].state]
    return [what.keys.state] if isinstance(what, PassedBy) and what.kind.owns_state else []


def _check_reads(nodes: Sequence[StreamNode]) -> None:
    """Refuses to look up a state that nothing in the topology writes, or that is declared otherwise."""
    written: dict[str, DeclaredState] = {}
    writers: dict[str, list[StreamNode]] = {}
    for node in nodes:
        for state in _written_by(node):
            written[state.name] = state
            writers.setdefault(state.name, []).append(node)
    for node in nodes:
        if isinstance(node.what, PassedBy) and not node.what.kind.owns_state:
            state = node.what.keys.state
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
            if not node.what.is_of_any and not are_first:
                raise TopologyError(
                    f"{node.said} reads state {state.name!r} while {writers[state.name][0].said} writes it, so the "
                    "answer depends on how many rows a transaction takes; read the table to its end first, by "
                    "Inputs(table=first(...), rows=...), or accept that by as_of='transaction'"
                )


def _is_read_first(node: StreamNode, judge: Callable[[Iterable[bool]], bool] = all) -> bool:
    """Returns whether the rows of a node are all, or `any`, of sources that are read before others."""
    if isinstance(node.what, OutputOf) and isinstance(source := node.parents[0].what, ReadFrom):
        return node.what.stream_id in getattr(source.bolt, "first_streams", ())
    return bool(node.parents) and judge(_is_read_first(parent, judge) for parent in node.parents)


def _declared_as(state: DeclaredState) -> tuple[object, ...]:
    return state.kind, state.value_type, state.field_type, isinstance(state, StateFamily) and state.part_type
