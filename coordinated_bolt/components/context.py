"""The facts about a task and its topology that user code may read."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, SupportsIndex

from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.tuples import cut
from state.codec import is_valid_text
from state.errors import TopologyError

_INT64_END = 2**63


@dataclass(slots=True)
class TopologyContext:
    """Passed to every `prepare`, to spout coordinators and to emitters.

    Attributes:
        topology_id: the topology's id.
        component_id: this component.
        task_index: index of this task within its component, from 0.
        task_count: how many tasks the component has.
        task_id: number of this task within the topology, from 1.
        tasks_of: component id -> its task ids, ascending; the targets of `emit_direct`.
        counters: the task's counters; see `count`.
        conf: a private copy of the component's configuration, the same as in `prepare`.
        hooks: the hooks that watch the task; see `add_task_hook`.
        subscribers: stream id -> the subscribing components, for each of this component's streams.
    """

    topology_id: str
    component_id: str
    task_index: int
    task_count: int
    task_id: int
    tasks_of: Mapping[str, tuple[int, ...]]
    counters: Counter[str] = field(default_factory=Counter)
    conf: Mapping[str, Any] = field(default_factory=dict)
    hooks: list[ITaskHook] = field(default_factory=list)
    subscribers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def component_tasks(self, component_id: str) -> tuple[int, ...]:
        """Returns the task ids of a component.

        Raises:
            TopologyError: the topology has no such component.
        """
        try:
            return self.tasks_of[component_id]
        except KeyError:
            raise TopologyError(f"topology {self.topology_id!r} has no component {component_id!r}") from None

    def count(self, name: str, amount: SupportsIndex = 1) -> None:
        """Adds to a counter of the current attempt; the run shows the sums over committed attempts.

        Args:
            name: any name for the counter.
            amount: any integer that `operator.index` accepts, NumPy's included.

        Raises:
            TypeError, ValueError: the name is not valid text, or the amount is not a 64-bit integer.
        """
        checked = _checked_count(name, amount)
        self.counters[name] += checked

    def counted(self) -> dict[str, int]:
        """Returns the counters to report, after checking values that were written without `count`.

        Raises:
            TypeError, ValueError: as `count`.
        """
        return {name: _checked_count(name, amount) for name, amount in self.counters.items()}

    def add_task_hook(self, hook: ITaskHook) -> None:
        """Lets a hook watch this task from now on; called in `prepare`.

        Raises:
            TypeError: the hook is not an `ITaskHook`.
        """
        if not isinstance(hook, ITaskHook):
            raise TypeError(f"add_task_hook got {hook!r}; give an instance of ITaskHook")
        self.hooks.append(hook)  # before prepare, so that cleanup follows even if prepare raises
        hook.prepare(self.conf, self)


def _checked_count(name: Any, amount: Any) -> int:
    if type(name) is not str:
        raise TypeError(f"counter names must be strings, got {cut(name)} of type {type(name).__name__}")
    if not name.isascii() and not is_valid_text(name):
        raise ValueError(f"counter name {name!r} is not valid Unicode")
    try:
        checked = index(amount)
    except TypeError:
        raise TypeError(
            f"counter {name!r} was given {cut(amount)} of type {type(amount).__name__}; give an integer"
        ) from None
    if not -_INT64_END <= checked < _INT64_END:
        raise ValueError(f"counter {name!r} was given {cut(checked)}, which does not fit into 64 bits")
    return checked


def install_hooks(context: TopologyContext, specs: Sequence[bytes]) -> None:
    """Lets fresh copies of the topology's pickled hooks watch a task."""
    for spec in specs:
        context.add_task_hook(pickle.loads(spec))
