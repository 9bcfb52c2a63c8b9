"""Everything that one task needs to know: made by the plan on the driver, shipped, and read where the task runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.completeness.tracking import SourceArgs
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.routing import OutputStream
from coordinated_bolt.streams.tuples import TupleOrigin
from coordinated_bolt.transport.outbox import FRAME_TUPLES, Carrier, FrameOutbox, HeldRows, NewOutbox
from state.attempt import TransactionAttempt
from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits
from state.values.own_copy import own_copy

NewHandOvers = Callable[[TransactionAttempt], Sequence[HeldRows]]


@dataclass(frozen=True, slots=True)
class UpstreamTask:
    """One task upstream.

    Attributes:
        component_id: its component.
        streams: all streams of that component, by index.
    """

    component_id: str
    streams: tuple[StreamSpec, ...]


@dataclass(frozen=True, slots=True)
class Coordination:
    """A task's place in a sub-topology that processes batches within a plain topology.

    Attributes:
        source_args: upstream component inside the sub-topology -> how many of its tasks report a batch; empty
            for the master, which begins batches.
        targets: every downstream task inside the sub-topology, each of which gets a report.
    """

    source_args: Mapping[str, SourceArgs]
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TaskWiring:
    """One task: its identity, its bolt or spout, and the tasks upstream and downstream.

    Attributes:
        topology_id: the topology.
        component_id: the component.
        task_id: number of the task within the topology, from 1.
        task_index: index of the task within its component, from 0.
        task_count: number of tasks of the component.
        tasks_of: component id -> task ids, for the whole topology.
        conf: the topology's configuration, overridden by the component's; users get copies, see `context`.
        spec: the pickled bolt or spout.
        record_class: the pickled record class that the bolt takes in place of tuples; empty if it takes tuples.
        upstream: task id -> task, for every task upstream.
        streams: stream id -> stream, for every stream the component declares.
        targets: every task downstream.
        commit_targets: the targets in the commit phase; empty for a task that is itself in that phase.
        chained_targets: the targets that run after it in the same process and get their tuples in memory.
        needs_id: whether a batch also waits for the ID tuple, as a committer's does.
        skips_empty_batches: whether its bolt has nothing to do for a batch without tuples.
        frame_tuples: most tuples in one frame.
        hook_specs: the pickled hooks of the topology.
        coordination: the task's place in a sub-topology; None outside one.
        letter_limits: how many dead letters the topology may keep.
        shard_count: how many shards hold the topology's state.
        late: component id -> the failure for a tuple emitted too late, until one of its tasks ends an attempt; shared
            by all tasks of a run in a process, since the emitting thread's own task may have ended.
    """

    topology_id: str
    component_id: str
    task_id: int
    task_index: int
    task_count: int
    tasks_of: dict[str, tuple[int, ...]]
    conf: Mapping[str, Any]
    spec: bytes
    record_class: bytes = b""
    upstream: Mapping[int, UpstreamTask] = field(default_factory=dict)
    streams: Mapping[str, OutputStream] = field(default_factory=dict)
    targets: tuple[int, ...] = ()
    commit_targets: frozenset[int] = frozenset()
    chained_targets: tuple[int, ...] = ()
    needs_id: bool = False
    skips_empty_batches: bool = False
    frame_tuples: int = FRAME_TUPLES
    hook_specs: tuple[bytes, ...] = ()
    coordination: Coordination | None = None
    letter_limits: LetterLimits = DEFAULT_LETTER_LIMITS
    shard_count: int = 1
    late: dict[str, Failure] = field(default_factory=dict, repr=False, compare=False)
    _subscribers: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subscribers = {
            stream_id: tuple(subscriber.component_id for subscriber in stream.subscribers)
            for stream_id, stream in self.streams.items()
        }
        object.__setattr__(self, "_subscribers", subscribers)  # once per task: every attempt has a context

    @property
    def acker_tasks(self) -> tuple[int, ...]:
        """Task ids of the ackers; empty if nothing is tracked."""
        return self.tasks_of.get(ACKER_COMPONENT, ())

    def context(self) -> TopologyContext:
        """Returns a fresh context, with counters at zero and its own copy of the configuration.

        Every attempt, batch, emitter and plain task gets one; `prepare` gets the configuration in it.
        """
        return TopologyContext(
            self.topology_id,
            self.component_id,
            self.task_index,
            self.task_count,
            self.task_id,
            MappingProxyType(self.tasks_of),
            conf={name: own_copy(value) for name, value in self.conf.items()},
            subscribers=MappingProxyType(self._subscribers),
        )

    def framed_targets(self) -> Collection[int]:
        """Returns the tasks downstream that are not chained to this one; each gets frames and a report."""
        return dict.fromkeys(target for target in self.targets if target not in self.chained_targets)

    def outboxes(self, carrier: Carrier, handed: NewHandOvers = lambda attempt: ()) -> NewOutbox:
        """Returns a function that makes the outbox of an attempt.

        `carrier` takes frames and counts of all attempts; `handed` makes the hand-overs to chained targets.
        """
        targets = self.framed_targets()

        def new_outbox(attempt: TransactionAttempt) -> FrameOutbox:
            return FrameOutbox(attempt, self.task_id, targets, carrier, self.frame_tuples, handed=handed(attempt))

        return new_outbox

    def origin(self, attempt: TransactionAttempt | None, upstream_task: int, stream_index: int) -> TupleOrigin:
        """Returns the origin of a stretch of tuples; in a plain topology the attempt is None.

        Raises:
            KeyError, IndexError: the task is not upstream, or has no such stream.
        """
        upstream = self.upstream[upstream_task]
        stream = upstream.streams[stream_index]
        source_component, stream_id = stream.stands_for or (upstream.component_id, stream.stream_id)
        return TupleOrigin(
            attempt=attempt,
            source_component=source_component,
            source_task=upstream_task,
            stream_id=stream_id,
            fields=stream.fields,
        )
