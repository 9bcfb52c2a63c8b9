"""How many tuples a component takes and emits a second: the pulse tells totals, and this compares two of them."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from state.records.run_pulse import ComponentFigures, RunPulse

SPAN_S = 10.0
"""Rates are over about the last ten seconds, as those of the pulse are."""
TOPOLOGIES_MAX = 100


@dataclass(frozen=True, slots=True)
class FlowRate:
    """Tuples a second."""

    taken: float
    emitted: float


class FlowRates:
    """What runs reported at the last looks; used by one thread at a time, once per look."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, deque[tuple[float, dict[str, ComponentFigures]]]]] = OrderedDict()

    def of(self, topology_id: str, pulse: RunPulse) -> dict[str, FlowRate]:
        """Notes what a run has told, and returns the rates of its components; none at the first look."""
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
