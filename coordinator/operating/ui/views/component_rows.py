"""The figures and rates of a run's components, the slowest first, and the graph with its flow."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.operating.ui.svg_charts import Svg, share_bar
from coordinator.operating.ui.views import words
from coordinator.topology.pictures.picture_maker import picture_of_description
from coordinator.topology.pictures.picture_texts import text_of
from coordinator.topology.pictures.topology_picture import Edge, TopologyPicture
from state.records.run_pulse import ComponentFigures, RunPulse

SPAN_S = 10.0
"""Rates cover about the last ten seconds, as in the pulse."""
TOPOLOGIES_MAX = 100


@dataclass(frozen=True, slots=True)
class FlowRate:
    taken: float
    emitted: float


class FlowRates:
    """Computes rates from the totals that runs report; used by one thread at a time, once per look."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, deque[tuple[float, dict[str, ComponentFigures]]]]] = OrderedDict()

    def of(self, topology_id: str, pulse: RunPulse) -> dict[str, FlowRate]:
        """Records a run's totals, and returns the rates of its components; none at the first look."""
        fence, looks = self._seen.pop(topology_id, ("", deque()))
        if fence != pulse.run.fence:
            looks = deque()
        self._seen[topology_id] = (pulse.run.fence, looks)
        if len(self._seen) > TOPOLOGIES_MAX:
            self._seen.popitem(last=False)
        if not looks or pulse.now.at > looks[-1][0]:
            looks.append((pulse.now.at, pulse.now.components))
        while len(looks) > 2 and looks[1][0] <= pulse.now.at - SPAN_S:
            looks.popleft()
        (begin, before), (end, after) = looks[0], looks[-1]
        seconds = end - begin
        if seconds <= 0:
            return {}
        zero = ComponentFigures()
        return {
            name: FlowRate(
                max(0, done.tuples_in - before.get(name, zero).tuples_in) / seconds,
                max(0, done.tuples_out - before.get(name, zero).tuples_out) / seconds,
            )
            for name, done in after.items()
        }


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """A component in the table.

    Attributes:
        rate: tuples per second, received or, for a spout, emitted; "—" at the first look.
        failed, refused: numbers of tuples in failed attempts, and of dead letters.
        share: the component's part of the run's busy time; `bar` shows it.
    """

    name: str
    taken: str
    emitted: str
    rate: str
    failed: str
    refused: str
    busy: str
    share: str
    bar: Svg


def component_rows(
    components: Mapping[str, ComponentFigures], rates: Mapping[str, FlowRate]
) -> tuple[ComponentRow, ...]:
    """Returns the components of a run, the busiest first."""
    busy_s = sum(done.busy_s for done in components.values())
    slowest = sorted(components.items(), key=lambda item: (-item[1].busy_s, item[0]))
    return tuple(_row(component_id, done, rates.get(component_id), busy_s) for component_id, done in slowest)


def _row(component_id: str, done: ComponentFigures, rate: FlowRate | None, busy_s: float) -> ComponentRow:
    part = done.busy_s / busy_s if busy_s else 0.0
    return ComponentRow(
        name=words.name(component_id),
        taken=words.count(done.tuples_in),
        emitted=words.count(done.tuples_out),
        rate=words.UNKNOWN if rate is None else words.rate(max(rate.taken, 0.0) or rate.emitted),
        failed=words.count(done.failed),
        refused=words.count(done.dead_letters),
        busy=f"{done.busy_s:,.1f} s",
        share=f"{part:.0%}",
        bar=share_bar(part),
    )


def graph_of(
    topology_id: str, description: str, components: Mapping[str, ComponentFigures], rates: Mapping[str, FlowRate]
) -> str | None:
    """Returns a topology's graph with its flow as text; None if its description cannot be read."""
    picture = picture_of_description(topology_id, description)
    if picture is None:
        return None
    spouts = {node.component_id for node in picture.nodes if node.kind == "spout"}
    notes = {name: _note(done, rates.get(name), is_spout=name in spouts) for name, done in components.items()}
    nodes = tuple(replace(node, note=notes.get(node.component_id, "")) for node in picture.nodes)
    flows = _edge_rates(picture, rates)
    edges = tuple(replace(edge, grouping=_with_rate(edge, flows)) for edge in picture.edges)
    return text_of(replace(picture, nodes=nodes, edges=edges))


def _with_rate(edge: Edge, rates: Mapping[tuple[str, str, str], str]) -> str:
    rate = rates.get((edge.source, edge.target, edge.stream_id), "")
    return f"{edge.grouping} · {rate}" if rate else edge.grouping


def _note(done: ComponentFigures, rate: FlowRate | None, *, is_spout: bool) -> str:
    if rate is None:
        return f"{words.rate(done.tuples_out if is_spout else done.tuples_in)} tuples"
    return f"{words.rate(rate.emitted if is_spout else rate.taken)} tuples/s"


def _edge_rates(picture: TopologyPicture, rates: Mapping[str, FlowRate]) -> dict[tuple[str, str, str], str]:
    """Returns the flow of edges that are the only one into their component; the pulse has only the sum of several."""
    by_target: dict[str, list[tuple[str, str, str]]] = {}
    for edge in picture.edges:
        by_target.setdefault(edge.target, []).append((edge.source, edge.target, edge.stream_id))
    return {
        edges[0]: f"{words.rate(rates[target].taken)}/s"
        for target, edges in by_target.items()
        if len(edges) == 1 and target in rates
    }
