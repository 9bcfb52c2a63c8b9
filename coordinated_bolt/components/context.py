"""What a task may know about itself and its topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any, SupportsIndex

from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.streams.tuples import cut
from state.errors import TopologyError

_MOST = 2**63


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
        conf: the component's configuration, as `prepare` is given it: this context's own, nobody else sees it changed.
        hooks: who watches the task, see `add_task_hook`.
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

    def component_tasks(self, component_id: str) -> tuple[int, ...]:
        """Task ids of a component.

        Raises:
            TopologyError: the topology has no such component.
        """
        try:
            return self.tasks_of[component_id]
        except KeyError:
            raise TopologyError(f"topology {self.topology_id!r} has no component {component_id!r}") from None

    def count(self, name: str, amount: SupportsIndex = 1) -> None:
        """Adds to a counter of the current attempt; committed attempts' counters are summed and shown.

        Args:
            name: of the counter.
            amount: an integer, or whatever `operator.index` takes for one, such as NumPy's.

        Raises:
            TypeError, ValueError: the name is no text, or the amount no integer of 64 bits.
        """
        checked = _checked_count(name, amount)
        self.counters[name] += checked

    def counted(self) -> dict[str, int]:
        """The counters as they are reported, with what was written into them without `count` checked here.

        Raises:
            TypeError, ValueError: as `count`.
        """
        return {name: _checked_count(name, amount) for name, amount in self.counters.items()}

    def add_task_hook(self, hook: ITaskHook) -> None:
        """Has a hook watch this task from now on; called in `prepare`.

        Raises:
            TypeError: it is no hook.
        """
        if not isinstance(hook, ITaskHook):
            raise TypeError(f"add_task_hook got {hook!r}; give an instance of ITaskHook")
        self.hooks.append(hook)  # before prepare: cleanup follows it even if it raises
        hook.prepare(self.conf, self)


def _checked_count(name: Any, amount: Any) -> int:
    if type(name) is not str:
        raise TypeError(f"the name of a counter is {cut(name)} of type {type(name).__name__}; give text")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the name of a counter is {name!r}, which is not valid Unicode") from None
    try:
        checked = index(amount)
    except TypeError:
        raise TypeError(
            f"counter {name!r} was given {cut(amount)} of type {type(amount).__name__}; give an integer"
        ) from None
    if not -_MOST <= checked < _MOST:
        raise ValueError(f"counter {name!r} was given {cut(checked)}, which has more than 64 bits")
    return checked
