"""Which partitions a task reads."""

from __future__ import annotations

from state.errors import TopologyError


def partitions_of(task_index: int, task_count: int, partition_count: int) -> range:
    """Task k of n reads the partitions k, k+n, k+2n and so on.

    Raises:
        TopologyError: the component does not have that task.
    """
    if not 0 <= task_index < task_count:
        raise TopologyError(f"task {task_index} cannot read partitions: the component has {task_count} tasks, from 0")
    return range(task_index, partition_count, task_count)
