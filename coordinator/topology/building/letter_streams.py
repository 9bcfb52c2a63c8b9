"""A topology for republishing dead letters: the spout can send each component the tuples that it refused. Pure.

For every subscription of the topology the spout gets one more stream, which only that subscriber receives, by the same
grouping. Its tuples show the component and stream of the original subscription, so the subscriber cannot distinguish a
letter from the original tuple.
"""

from __future__ import annotations

from dataclasses import replace

from coordinated_bolt.streams.declared import StreamSpec
from coordinator.spouts.row_spout import RowSpout
from coordinator.topology.building.component import LETTERS, Subscription
from coordinator.topology.building.topology import Topology
from state.errors import TopologyError


def letter_stream(component_id: str, source_component: str, stream_id: str) -> str:
    """Returns the id of the spout's stream for a component's letters from one of its subscriptions."""
    return f"{LETTERS}{source_component}:{stream_id}:{component_id}"


def with_letter_streams(topology: Topology) -> Topology:
    """Returns the topology with these streams; called once, before it is planned (driver).

    Raises:
        TopologyError: the spout reads DataFrames, and cannot emit anything else.
    """
    if isinstance(topology.spout.spec, RowSpout):
        raise TopologyError(
            f"the dead letters of topology {topology.topology_id!r} cannot be republished, because its spout reads "
            "DataFrames; write them to a file with `txbatch dead-letters export`, and read that with another topology"
        )
    by_id = {component.component_id: component for component in topology.components}
    spout, *rest = topology.components
    streams, hearing = dict(spout.streams), []
    for component in rest:
        added = []
        for s in component.subscriptions:
            stream_id = letter_stream(component.component_id, s.upstream_id, s.stream_id)
            spec = by_id[s.upstream_id].streams[s.stream_id]
            streams[stream_id] = StreamSpec(
                stream_id, spec.fields, spec.direct, stands_for=(s.upstream_id, s.stream_id)
            )
            added.append(Subscription(spout.component_id, stream_id, s.grouping))
        hearing.append(replace(component, subscriptions=(*component.subscriptions, *added)))
    return replace(topology, components=(replace(spout, streams=streams), *hearing))
