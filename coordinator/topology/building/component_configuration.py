"""Sets the options of a component: its number of tasks and its own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from coordinated_bolt.components.component import IComponent
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinator.topology.building.topology_checks import check_parallelism
from state.codec import CodecError, pack
from state.errors import TopologyError
from state.values.own_copy import own_copy


class ComponentConfigurationDeclarer:
    """Sets options of one component; each method returns the declarer, so that calls can be chained.

    Source: backtype.storm.topology.ComponentConfigurationDeclarer, BaseConfigurationDeclarer.
    """

    def __init__(self, component_id: str) -> None:
        self.component_id = component_id
        self._task_count: int | None = None
        self._task_count_max: int | None = None
        self.may_chain = True
        self.configuration: dict[str, Any] = {}

    def set_num_tasks(self, count: int) -> Self:
        """Sets the number of tasks, at least 1; the default is the parallelism. A limit on parallelism limits both.

        Groupings choose among tasks, and ``context.task_count`` is their number. It is part of the stored description
        of the topology and may change from one run to the next: state is kept by field, not by task.

        Parallelism is the number of executors, among which the tasks are divided in contiguous ranges; surplus
        executors are not used. Only LocalCluster has executors, which determine which tasks share a worker. On Spark a
        task is a partition and runs on any free core, so there the parallelism is only this number's default.
        """
        check_parallelism(f"number of tasks of component {self.component_id!r}", count)
        self._task_count = count
        return self

    def set_max_task_parallelism(self, count: int) -> Self:
        """Sets the most tasks that the component may have; replaces the topology's limit.

        Use it to try out a topology at a small size without changing its components.
        """
        check_parallelism(f"max task parallelism of component {self.component_id!r}", count)
        self._task_count_max = count
        return self

    def disable_chaining(self) -> Self:
        """Keeps the component out of chains: its tasks run in separate Spark tasks.

        On Spark a bolt of the processing phase runs in one task with the components to which it subscribes, if it has
        as many tasks as they have and uses a shuffle, none or local-or-shuffle grouping. So do bolts of a plain
        topology among themselves, except in sub-topologies. Tuples then stay in memory, at their emitter. Disable this
        for a component that takes much longer than the one upstream, so that both work at the same time, or that needs
        an even share of tuples although its emitters have uneven ones. Without effect on LocalCluster, which has no
        chains.
        """
        self.may_chain = False
        return self

    def add_configuration(self, name: str, value: Any) -> Self:
        """Sets one value of the configuration that the component's `prepare` receives.

        It takes precedence over `IComponent.get_component_configuration`, which takes precedence over the topology's
        configuration.

        Raises:
            TopologyError: the name is not a non-empty string, or the value is not plain data (None, bool, int, float,
                str, bytes, list, tuple, set, dict, date, Decimal).
        """
        return self.add_configurations({name: value})

    def add_configurations(self, values: Mapping[str, Any]) -> Self:
        """Sets several values, each as `add_configuration` does."""
        self.configuration.update(_checked(f"component {self.component_id!r}", values))
        return self

    def is_planned(self, parallelism: int | None) -> bool:
        """Returns whether the planner chooses the number of tasks."""
        return parallelism is None and self._task_count is None

    def task_count(self, parallelism: int, task_count_max: int | None) -> int:
        """Returns the number of tasks of the component.

        Args:
            parallelism: its number of executors.
            task_count_max: the topology's limit, None if it has none.
        """
        most = task_count_max if self._task_count_max is None else self._task_count_max
        wanted = parallelism if self._task_count is None else self._task_count
        return wanted if most is None else min(wanted, most)


class SpoutDeclarer(ComponentConfigurationDeclarer):
    """Sets options of the spout.

    Source: backtype.storm.topology.SpoutDeclarer.
    """


def component_configuration(
    component_id: str, spec: IComponent, declarer: ComponentConfigurationDeclarer
) -> dict[str, Any]:
    """Returns the component's own configuration, updated by its declarer's."""
    return {**_checked(f"component {component_id!r}", spec.get_component_configuration()), **declarer.configuration}


def check_no_ticks(where: str, conf: Mapping[str, Any]) -> None:
    """Refuses tick tuples in a transactional topology."""
    if TICK_TUPLE_FREQ_SECS in conf:
        raise TopologyError(
            f"{where} sets {TICK_TUPLE_FREQ_SECS!r}, but in a transactional topology every tuple belongs to an "
            "attempt and a tick tuple would belong to none; do periodic work in finish_batch, or use a plain topology"
        )


def topology_configuration(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns a checked copy of the configuration for all components.

    Raises:
        TopologyError: the configuration is not a mapping of names to plain data.
    """
    return _checked("the topology", {} if values is None else values)


def _checked(where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise TopologyError(f"{where}: its configuration must be a mapping of names to values, got {values!r}")
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            raise TopologyError(f"{where}: configuration names must be non-empty strings, got {name!r}")
        try:
            pack(value)
            checked[name] = own_copy(value)
        except CodecError as error:
            raise TopologyError(
                f"{where}: configuration value {name!r} {error}; give plain data, and create live objects in prepare"
            ) from None
    return checked
