"""What a task may know about itself and its topology."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from state.errors import TopologyError


@dataclass(slots=True)
class TopologyContext:
    """Handed to every `prepare`, to spout coordinators and to emitters.

    Attributes:
        topology_id: the topology's id.
        component_id: this component.
        task_index: this task among the component's, from 0.
        task_count: how many tasks the component has.
        task_id: this task among all of the topology's, from 1.
        tasks_of: component id -> its task ids, ascending; the targets of `emit_direct`.
        counters: what the task counted, see `count`.
    """

    topology_id: str
    component_id: str
    task_index: int
    task_count: int
    task_id: int
    tasks_of: dict[str, tuple[int, ...]]
    counters: Counter[str] = field(default_factory=Counter)

    def component_tasks(self, component_id: str) -> tuple[int, ...]:
        """Task ids of a component.

        Raises:
            TopologyError: the topology has no such component.
        """
        try:
            return self.tasks_of[component_id]
        except KeyError:
            raise TopologyError(f"topology {self.topology_id!r} has no component {component_id!r}") from None

    def count(self, name: str, amount: int = 1) -> None:
        """Adds to a counter of the current attempt; committed attempts' counters are summed and shown."""
        self.counters[name] += amount
