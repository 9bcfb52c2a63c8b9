"""Numbers the tasks of any topology, assigns them to workers, and wires each to its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.completeness.tracking import SourceArgs
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.components.component import MadeOfFunctions
from coordinated_bolt.components.taken_records import record_class_taken
from coordinated_bolt.streams.groupings import CustomGrouping, Grouping, LocalOrShuffleGrouping, ShippedGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.wiring import Coordination, TaskWiring, UpstreamTask
from coordinator.topology.building.component import Component, ComponentKind
from coordinator.topology.building.topology import ComponentGraph
from state.errors import TopologyError
from state.troubles import Trouble

PickleSpec = Callable[[str, Any], bytes]
"""(component id, spec) -> bytes; raises `TopologyError` if the spec cannot be shipped."""


SPEC_LIMIT_BYTES = 8 * 1024 * 1024
"""Largest pickled component; it is unpickled for every attempt."""


def spec_pickler(dumps: Callable[[Any], bytes]) -> PickleSpec:
    """Makes the function that pickles a topology's components (driver, once per engine).

    The function is called once per component, task hook and custom grouping, before any txid is issued. It raises
    `TopologyError` for an object that does not pickle, or whose pickle is larger than `SPEC_LIMIT_BYTES`.

    Args:
        dumps: an object -> bytes that `pickle.loads` can read wherever tasks run.
    """

    def pickle_spec(component_id: str, spec: Any) -> bytes:
        try:
            packed = dumps(spec)
        except Exception as error:  # pickling runs user code
            where, remedy = "", "open sockets, files, locks and clients in prepare, not in __init__"
            if isinstance(spec, MadeOfFunctions):
                where = f", made at {spec.made_at},"
                remedy = "a function may not hold a socket, file, lock or client: open it in the prepare of a bolt"
            raise TopologyError(
                f"component {component_id!r}{where} cannot be shipped to executors: {type(error).__name__}: {error}; "
                f"{remedy}"
            ).about(Trouble.NOT_PICKLABLE) from error
        if len(packed) > SPEC_LIMIT_BYTES:
            raise TopologyError(
                f"component {component_id!r} pickles to {len(packed):,} bytes, more than {SPEC_LIMIT_BYTES:,}; "
                "load large data in prepare, or ship it as a file"
            ).about(Trouble.NOT_PICKLABLE)
        return packed

    return pickle_spec


def number_tasks(topology: ComponentGraph) -> dict[str, tuple[int, ...]]:
    """Returns component id -> task ids, from 1, in the order of the components; the ackers last."""
    tasks_of: dict[str, tuple[int, ...]] = {}
    following = 1
    for component in topology.components:
        tasks_of[component.component_id] = tuple(range(following, following + component.task_count))
        following += component.task_count
    tasks_of[ACKER_COMPONENT] = tuple(range(following, following + topology.acker_count))
    return tasks_of


def executors_of(topology: ComponentGraph, tasks_of: Mapping[str, tuple[int, ...]]) -> dict[int, int]:
    """Returns task id -> executor number, counted from 1 over all components; each acker has its own executor.

    The tasks of a component are divided among its executors in contiguous ranges, longer ranges first. Only an engine
    with its own workers needs this: Spark places partitions itself.

    Source: org.apache.storm.utils.Utils.partitionFixed, as nimbus computes executors.
    """
    components = [(tasks_of[component.component_id], component.executor_count) for component in topology.components]
    executor_of: dict[int, int] = {}
    executor = 0
    for tasks, executor_count in [*components, *(((acker,), 1) for acker in tasks_of[ACKER_COMPONENT])]:
        shortest, longer = divmod(len(tasks), executor_count)
        place = 0
        for number in range(executor_count):
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


def make_wirings(
    topology: ComponentGraph,
    tasks_of: dict[str, tuple[int, ...]],
    pickle_spec: PickleSpec,
    worker_of: Mapping[int, int] | None = None,
) -> dict[int, TaskWiring]:
    """Returns task id -> wiring, of all tasks except ackers; raises the errors of `pickle_spec`.

    Without `worker_of`, task id -> worker, placement is not known in advance.
    """
    wirings: dict[int, TaskWiring] = {}
    late: dict[str, Failure] = {}
    hook_specs = tuple(pickle_spec(f"task hook {type(hook).__name__}", hook) for hook in topology.task_hooks)
    for component in topology.components:
        spec = pickle_spec(component.component_id, component.spec)
        record_class = record_class_taken(component.spec)
        streams = _output_streams(topology, component, tasks_of, pickle_spec)
        conf = {**topology.conf, **component.conf}
        targets = sorted({task for s in streams.values() for sub in s.subscribers for task in sub.tasks})
        coordination = _coordination(topology, component, tasks_of)
        upstream = {
            task: UpstreamTask(
                subscription.upstream_id, tuple(topology.component(subscription.upstream_id).streams.values())
            )
            for subscription in component.subscriptions
            for task in tasks_of[subscription.upstream_id]
        }
        for index, task in enumerate(tasks_of[component.component_id]):
            wirings[task] = TaskWiring(
                topology_id=topology.topology_id,
                component_id=component.component_id,
                task_id=task,
                task_index=index,
                task_count=component.task_count,
                tasks_of=tasks_of,
                conf=conf,
                spec=spec,
                record_class=b"" if record_class is None else pickle_spec(component.component_id, record_class),
                upstream=upstream,
                streams=_localised(streams, task, worker_of or {}),
                targets=tuple(targets),
                skips_empty_batches=isinstance(component.spec, IBatchBolt) and component.spec.skips_empty_batches,
                needs_id=component.kind is ComponentKind.COMMITTER,
                hook_specs=hook_specs,
                coordination=coordination,
                late=late,
            )
    return wirings


def _localised(
    streams: Mapping[str, OutputStream], task: int, worker_of: Mapping[int, int]
) -> Mapping[str, OutputStream]:
    """Returns the streams of an emitting task; local-or-shuffle groupings get the positions on its worker."""

    def subscribed(subscriber: Subscriber) -> Subscriber:
        if not isinstance(subscriber.grouping, LocalOrShuffleGrouping):
            return subscriber
        local = tuple(p for p, target in enumerate(subscriber.tasks) if worker_of[target] == worker_of[task])
        return replace(subscriber, grouping=replace(subscriber.grouping, local_positions=local))

    if not worker_of:
        return streams
    return {
        stream_id: replace(stream, subscribers=tuple(map(subscribed, stream.subscribers)))
        for stream_id, stream in streams.items()
    }


def _coordination(
    topology: ComponentGraph, component: Component, tasks_of: dict[str, tuple[int, ...]]
) -> Coordination | None:
    """Returns the component's place in its sub-topology, None outside one."""
    master_id = component.master_id
    if master_id is None:
        return None
    source_args: dict[str, SourceArgs] = {}
    if component.component_id != master_id:
        for subscription in component.subscriptions:
            is_master = subscription.upstream_id == master_id
            source_args[subscription.upstream_id] = SourceArgs.SINGLE if is_master else SourceArgs.ALL
    behind = [
        other.component_id
        for other in topology.components
        if other.master_id == master_id and any(s.upstream_id == component.component_id for s in other.subscriptions)
    ]
    return Coordination(source_args, tuple(task for other in behind for task in tasks_of[other]))


def _output_streams(
    topology: ComponentGraph,
    component: Component,
    tasks_of: dict[str, tuple[int, ...]],
    pickle_spec: PickleSpec,
) -> dict[str, OutputStream]:
    def shipped(subscriber: str, grouping: Grouping) -> Grouping:
        if isinstance(grouping, CustomGrouping):
            return ShippedGrouping(pickle_spec(f"{subscriber}, its custom grouping", grouping))
        return grouping

    streams = {}
    for index, spec in enumerate(component.streams.values()):
        subscribers = tuple(
            Subscriber(
                other.component_id, tasks_of[other.component_id], shipped(other.component_id, subscription.grouping)
            )
            for other in topology.components
            for subscription in other.subscriptions
            if (subscription.upstream_id, subscription.stream_id) == (component.component_id, spec.stream_id)
        )
        streams[spec.stream_id] = OutputStream(index, spec, subscribers)
    return streams
