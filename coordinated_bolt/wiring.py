"""All one task has to know: made by the plan on the driver, shipped, read where the task runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.tracking import SourceArgs
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.routing import OutputStream
from coordinated_bolt.streams.tuples import TupleOrigin
from coordinated_bolt.transport.outbox import FRAME_TUPLES
from state.attempt import TransactionAttempt
from state.own_copy import own_copy


@dataclass(frozen=True, slots=True)
class UpstreamTask:
    """One task upstream.

    Attributes:
        component_id: whose task it is.
        streams: all streams of that component, by index.
    """

    component_id: str
    streams: tuple[StreamSpec, ...]


@dataclass(frozen=True, slots=True)
class Coordination:
    """A task's place in a sub-topology that processes batches within a plain topology.

    Attributes:
        source_args: component upstream, inside the sub-topology -> how many of its tasks report a batch. Empty
            for the master, which begins batches.
        targets: every task downstream that is inside, each of which gets a report.
    """

    source_args: Mapping[str, SourceArgs]
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TaskWiring:
    """One task: who it is, what it runs, whom it hears and whom it tells.

    Attributes:
        topology_id: the topology.
        component_id: the component.
        task_id: the task among all of the topology's, from 1.
        task_index: the task among its component's, from 0.
        task_count: number of tasks of the component.
        tasks_of: component id -> task ids, of the whole topology.
        conf: the component's configuration over the topology's; users see copies, see `context`.
        spec: the pickled bolt or spout.
        upstream: task id -> task, every one upstream.
        streams: stream id -> stream, what the component declares.
        targets: every task downstream.
        needs_id: a committer.
        frame_tuples: most tuples it sends in one frame.
        hook_specs: the pickled hooks of the topology.
        coordination: of a task in a sub-topology of a plain topology.
    """

    topology_id: str
    component_id: str
    task_id: int
    task_index: int
    task_count: int
    tasks_of: dict[str, tuple[int, ...]]
    conf: Mapping[str, Any]
    spec: bytes
    upstream: Mapping[int, UpstreamTask] = field(default_factory=dict)
    streams: Mapping[str, OutputStream] = field(default_factory=dict)
    targets: tuple[int, ...] = ()
    needs_id: bool = False
    frame_tuples: int = FRAME_TUPLES
    hook_specs: tuple[bytes, ...] = ()
    coordination: Coordination | None = None

    @property
    def acker_tasks(self) -> tuple[int, ...]:
        """Task ids of the ackers; none when nothing is tracked."""
        return self.tasks_of.get(ACKER_COMPONENT, ())

    def context(self) -> TopologyContext:
        """A fresh context, with counters at zero and a configuration of its own: what user code does to it, it keeps.

        Every attempt, batch, emitter and plain task is given one; `prepare` gets the configuration in it.
        """
        return TopologyContext(
            self.topology_id,
            self.component_id,
            self.task_index,
            self.task_count,
            self.task_id,
            MappingProxyType(self.tasks_of),
            conf={name: own_copy(value) for name, value in self.conf.items()},
        )

    def origin(self, attempt: TransactionAttempt | None, upstream_task: int, stream_index: int) -> TupleOrigin:
        """What the tuples of one run have in common; in a plain topology they belong to no attempt.

        Raises:
            KeyError, IndexError: the task is not upstream, or has no such stream.
        """
        upstream = self.upstream[upstream_task]
        stream = upstream.streams[stream_index]
        return TupleOrigin(
            attempt=attempt,
            source_component=upstream.component_id,
            source_task=upstream_task,
            stream_id=stream.stream_id,
            fields=stream.fields,
        )
