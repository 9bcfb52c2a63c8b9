"""Hooks: code that watches a task without being part of a bolt.

A task without hooks pays one truth test per emit and per stretch of tuples.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.streams.tuples import Tuple
from state.attempt import TransactionAttempt


@dataclass(frozen=True, slots=True)
class EmitInfo:
    """One tuple was emitted.

    Attributes:
        values: copies of its values.
        stream_id: the stream on which it was emitted.
        task_id: the emitting task.
        out_tasks: the tasks that receive it.
        attempt: its attempt, or its batch in a sub-topology; None elsewhere in a plain topology.
    """

    values: tuple[Any, ...]
    stream_id: str
    task_id: int
    out_tasks: tuple[int, ...]
    attempt: TransactionAttempt | None = None


@dataclass(frozen=True, slots=True)
class ExecuteInfo:
    """One tuple was executed.

    Attributes:
        tup: the tuple.
        latency_ns: duration of its `execute` in nanoseconds; 0 on LocalCluster, whose clock stands still meanwhile.
    """

    tup: Tuple
    latency_ns: int


@dataclass(frozen=True, slots=True)
class AckInfo:
    """A bolt has acked a tuple, or a spout was notified that its message is processed.

    Attributes:
        acked: the tuple, or the message id.
        task_id: the task of the bolt or spout.
        latency_ns: time since the tuple was received or the message emitted, in nanoseconds.
    """

    acked: Any
    task_id: int
    latency_ns: int


@dataclass(frozen=True, slots=True)
class FailInfo:
    """A bolt has failed a tuple, or a spout was notified that its message has failed.

    Attributes:
        failed: the tuple, or the message id.
        task_id: the task of the bolt or spout.
        latency_ns: time since the tuple was received or the message emitted, in nanoseconds.
    """

    failed: Any
    task_id: int
    latency_ns: int


class ITaskHook(ABC):  # noqa: B024 - every method is optional, so B027 below
    """Observes a task; override the methods you need.

    A bolt or spout can add a hook when it is prepared, with ``context.add_task_hook(hook)``; that hook lives as long
    as the bolt or spout. A hook added to the topology is shipped like a bolt: `__init__` runs on the driver, and each
    instance of a bolt or emitter gets a copy:

    * in a transactional topology, one per task and attempt (spouts: per task and wave);
    * in a plain topology, one per task (on Spark, for bolts: per task and wave);
    * in a sub-topology, one per task and batch.

    In attempts and batches a hook sees only emits and executes, since single tuples are not acked.

    An exception from a hook counts as raised by the bolt or spout it watches. Like all side effects of attempts, a
    hook's happen at least once.

    Source: backtype.storm.hooks.ITaskHook, BaseTaskHook.
    """

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:  # noqa: B027
        """Called first, when the hook is added (where the task runs), with the `TopologyContext` of the task."""

    def emit(self, info: EmitInfo) -> None:  # noqa: B027
        """Called after the task has emitted a tuple."""

    def execute(self, info: ExecuteInfo) -> None:  # noqa: B027
        """Called after the bolt has executed a tuple without raising."""

    def bolt_ack(self, info: AckInfo) -> None:  # noqa: B027
        """Called after a bolt has acked a tuple; plain topologies only."""

    def bolt_fail(self, info: FailInfo) -> None:  # noqa: B027
        """Called after a bolt has failed a tuple; plain topologies only."""

    def spout_ack(self, info: AckInfo) -> None:  # noqa: B027
        """Called after a spout was notified that a message is processed; plain topologies only."""

    def spout_fail(self, info: FailInfo) -> None:  # noqa: B027
        """Called after a spout was notified that a message has failed; plain topologies only."""

    def cleanup(self) -> None:  # noqa: B027
        """Called last, after the bolt's `cleanup` or when the emitter is closed."""
