"""Makes a topology of a stream's steps: components, groupings and committers, as if written by hand.

Consecutive steps become one bolt, with the first halves of the aggregations after them. A user's bolt, a lookup in a
state, a join, the second half of an aggregation, and the first of several refusals get their own components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.groupings import FieldsGrouping, GlobalGrouping, Grouping, ShuffleGrouping
from coordinator.fluent.fused_bolt import CombiningOutlet, FusedBolt, Pipe, PipedBolt, Refusal, RowOutlet
from coordinator.fluent.joins import Joining
from coordinator.fluent.keepers import Keeper
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.row_steps import RowStep
from coordinator.fluent.stream_nodes import (
    Joined,
    LookedUp,
    MergedRows,
    OutputOf,
    ReadFrom,
    SentTo,
    StreamNode,
    check_ends,
    check_reads,
    steps_for,
)
from coordinator.fluent.user_function import step_of
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder

_ID_MAX = 64


class _Host(NamedTuple):
    """The component, and the pipe in its bolt, that has the rows of a node."""

    component_id: str
    bolt: PipedBolt
    pipe: Pipe


class Compilation:
    """Adds the components of a stream's nodes to a builder (driver, once).

    Args:
        topology_id: names the topology.
        nodes: all nodes, the source first, each after its parents.
        user_modules: modules that executors import for the users' functions.
        parallelism: parallelism of every component except the source.
        shards: number of shards of the topology.
    """

    def __init__(
        self,
        topology_id: str,
        nodes: Sequence[StreamNode],
        user_modules: set[str],
        parallelism: int | None,
        shards: int,
    ) -> None:
        check_ends(nodes)
        check_reads(nodes)
        source = nodes[0]
        assert isinstance(source.step, ReadFrom)
        self.builder = TransactionalTopologyBuilder(
            topology_id, source.label, source.step.bolt, source.step.parallelism, shards=shards
        )
        self._modules, self._parallelism = user_modules, parallelism
        self._ids = {source.label}
        self._streams = {source: (source.label, DEFAULT_STREAM)}
        self._hosts: dict[StreamNode, _Host] = {}
        for node in nodes[1:]:
            self._add(node)

    def component_of(self, node: StreamNode) -> str:
        """Returns the component id of a node that is a user's bolt, or a step that is alone in its bolt."""
        return self._streams[node][0]

    def _add(self, node: StreamNode) -> None:
        step, parent, kept = node.step, node.parents[0], node.kept()
        if kept is not None:
            self._add_kept(node, kept)
            return
        match step:
            case RowStep():
                host, pipe = self._host(parent), Pipe(step)
                host.pipe.outlets.append(pipe)
                self._hosts[node] = host._replace(pipe=pipe)
            case Refusal():
                is_next = isinstance(parent.step, Refusal) and len(parent.children) == 1
                host = self._hosts[parent] if is_next else self._set_fused(node.label, node.said, parent)
                assert isinstance(host.bolt, FusedBolt)
                host.bolt.refusals.append(step)
                self._hosts[node] = host
            case LookedUp():
                bolt = step.kind(parent.fields, step.keys, appends=step.appends)
                grouping = _grouping(step.keys.aggregation.group)
                component_id = self._set(node.label, bolt, grouping, self._places(parent), is_committer=True)
                self._hosts[node] = _Host(component_id, bolt, bolt.pipe)
            case Joined():
                joining, places = Joining(*step), [self._places(each) for each in node.parents]
                grouping = _grouping(step.keys[0].aggregation.group)
                component_id = self._set(node.label, joining, grouping, [*places[0], *places[1]], is_committer=True)
                joining.sides = {place: side for side in (0, 1) for place in places[side]}
                self._hosts[node] = _Host(component_id, joining, joining.pipe)
            case SentTo():
                component_id = self._set(
                    node.label, step.bolt, step.grouping, self._places(parent), is_committer=step.is_committer
                )
                self._streams[node] = component_id, DEFAULT_STREAM
            case OutputOf():
                self._streams[node] = self._streams[parent][0], step.stream_id

    def _add_kept(self, node: StreamNode, kept: KeptAggregation) -> None:
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
        """Adds a component that subscribes to these (component, stream) pairs; returns its id."""
        add = self.builder.set_committer_bolt if is_committer else self.builder.set_bolt
        component_id = _new_name(label, self._ids)
        if isinstance(bolt, PipedBolt | Keeper):
            bolt.user_modules = self._modules
        declarer = add(component_id, bolt, None if isinstance(grouping, GlobalGrouping) else self._parallelism)
        for upstream_id, stream_id in places:
            declarer.grouping(upstream_id, grouping, stream_id)
        return component_id

    def _host(self, node: StreamNode) -> _Host:
        """Returns the pipe to which steps after a node are added; adds a bolt if none of ours has the node's rows."""
        host = self._hosts.get(node)
        if host is None:
            first = next(child for child in node.children if child.is_fused())
            host = self._hosts[node] = self._set_fused(_label_below(node), first.said, node)
        return host

    def _places(self, node: StreamNode) -> list[tuple[str, str]]:
        """Returns the (component, stream) pairs that emit the rows of a node."""
        if isinstance(node.step, MergedRows):
            return [place for parent in node.parents for place in self._places(parent)]
        if node not in self._streams:
            host = self._hosts[node]
            stream_id = _new_stream(host.bolt, node.label, node.fields)
            host.pipe.outlets.append(RowOutlet(stream_id))
            self._streams[node] = host.component_id, stream_id
        return [self._streams[node]]


def _new_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted[:_ID_MAX], 1
    while name in taken:
        number += 1
        name = f"{wanted[: _ID_MAX - 5]}_{number}"
    taken.add(name)
    return name


def _new_stream(bolt: PipedBolt, wanted: str, fields: Sequence[str]) -> str:
    """Declares a stream of a bolt, and returns its id; the first stream is the default stream."""
    stream_id = _new_name(wanted, {*bolt.streams}) if bolt.streams else DEFAULT_STREAM
    bolt.streams[stream_id] = fields
    return stream_id


def _label_below(node: StreamNode) -> str:
    """Returns a label for the bolt after a node: the names of its steps or, without steps, of its aggregation."""
    fused = [child for child in node.children if child.is_fused()]
    combined, steps = f"{step_of(fused[0].said)}_{fused[0].label}", []
    while fused:
        child = fused.pop(0)
        if isinstance(child.step, RowStep):
            steps.append(child.label)
            fused += child.children
    return "-".join(dict.fromkeys(steps)) or combined


def _grouping(fields: Sequence[str]) -> Grouping:
    return FieldsGrouping(tuple(fields)) if fields else GlobalGrouping()


def topology_of_rows(
    nodes: Sequence[StreamNode], node: StreamNode, user_modules: set[str], said: str
) -> tuple[Topology, str]:
    """Returns a topology with only the steps that a node's rows depend on, and the component that emits these rows."""
    bolt = FusedBolt(said)
    bolt.streams[DEFAULT_STREAM] = node.fields
    bolt.pipe.outlets.append(RowOutlet(DEFAULT_STREAM))
    shown = StreamNode(SentTo(bolt, ShuffleGrouping(), is_committer=False), said, node.fields, {}, "shown", (node,))
    node.is_shown = True
    steps = steps_for([*nodes, shown], [shown])
    compilation = Compilation("rows", steps, user_modules, 1, 1)
    return compilation.builder.build(), compilation.component_of(steps[-1])
