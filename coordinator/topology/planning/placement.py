"""Assigns tasks to executors, and executors to workers.

Only an engine with its own workers needs this. Spark places partitions as it pleases, and may place one elsewhere when
it is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from coordinated_bolt.streams.groupings import LocalOrShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber


def executors(components: Iterable[tuple[Sequence[int], int]]) -> dict[int, int]:
    """Returns task id -> executor number, counted from 1 over all components.

    The tasks of a component are divided among its executors in contiguous ranges, the longer ones first.

    Args:
        components: (task ids, number of executors) of each component, in order.

    Source: org.apache.storm.utils.Utils.partitionFixed, as nimbus computes executors.
    """
    executor_of: dict[int, int] = {}
    executor = 0
    for tasks, executor_count in components:
        if not tasks:  # no ackers, because nothing is tracked
            continue
        used = min(executor_count, len(tasks))
        shortest, longer = divmod(len(tasks), used)
        place = 0
        for number in range(used):
            executor += 1
            size = shortest + (number < longer)
            executor_of.update(dict.fromkeys(tasks[place : place + size], executor))
            place += size
    return executor_of


def workers(executor_of: Mapping[int, int], worker_count: int) -> dict[int, int]:
    """Returns task id -> worker, from 0, with executors assigned round robin; empty if there are no workers.

    Source: backtype.storm.scheduler.EvenScheduler.
    """
    if not worker_count:
        return {}
    return {task: (executor - 1) % worker_count for task, executor in executor_of.items()}


def localised(
    streams: Mapping[str, OutputStream], task: int, worker_of: Mapping[int, int]
) -> Mapping[str, OutputStream]:
    """Returns the streams of an emitting task with local-or-shuffle groupings that know the targets on its worker."""

    def localised_subscriber(subscriber: Subscriber) -> Subscriber:
        if not isinstance(subscriber.grouping, LocalOrShuffleGrouping):
            return subscriber
        local = tuple(p for p, target in enumerate(subscriber.tasks) if worker_of[target] == worker_of[task])
        return replace(subscriber, grouping=replace(subscriber.grouping, local_positions=local))

    if not worker_of:
        return streams
    return {
        stream_id: replace(stream, subscribers=tuple(map(localised_subscriber, stream.subscribers)))
        for stream_id, stream in streams.items()
    }
