"""Hooks: code that watches what a task does without being part of a bolt.

A hook that is never added costs one truth test per emit and per stretch of tuples.
"""

from __future__ import annotations

import pickle
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinated_bolt.streams.tuples import Tuple
from state.attempt import TransactionAttempt

if TYPE_CHECKING:
    from coordinated_bolt.components.context import TopologyContext


@dataclass(frozen=True, slots=True)
class EmitInfo:
    """One tuple was emitted.

    Attributes:
        values: its values.
        stream_id: the stream.
        task_id: the emitting task.
        out_tasks: the tasks that receive it.
        attempt: the attempt, or batch of a sub-topology, it belongs to; None elsewhere in a plain topology.
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
        latency_ns: time its `execute` took, in nanoseconds; on LocalCluster of its own time, which stands still.
    """

    tup: Tuple
    latency_ns: int


@dataclass(frozen=True, slots=True)
class AckInfo:
    """A tuple was acked by a bolt, or a message at the spout.

    Attributes:
        acked: the tuple, or the message id.
        task_id: the task of the bolt or spout.
        latency_ns: time since it was received, or emitted, in nanoseconds.
    """

    acked: Any
    task_id: int
    latency_ns: int


@dataclass(frozen=True, slots=True)
class FailInfo:
    """A tuple was failed by a bolt, or a message at the spout.

    Attributes:
        failed: the tuple, or the message id.
        task_id: the task of the bolt or spout.
        latency_ns: time since it was received, or emitted, in nanoseconds.
    """

    failed: Any
    task_id: int
    latency_ns: int


class ITaskHook(ABC):  # noqa: B024 - every method is optional, so B027 below
    """Is told what a task does; override what you want to know.

    A hook added by a bolt or spout when it is prepared, with ``context.add_task_hook(hook)``, lives as long as
    that. One added to the topology is shipped as bolts are: `__init__` runs on the driver, and a copy is made
    wherever a bolt or an emitter is, so in a transactional topology one per task and attempt (for spouts:
    per task and wave), in a plain one a single one per task, but on Spark one per bolt task and wave, and in a
    sub-topology one per task and batch. In attempts and batches it is told of emits and executes only: nothing is
    acked tuple by tuple.

    What a hook raises counts as raised by the bolt or spout it watches. What it does to the outside happens
    at least once, as everything that attempts do.

    Source: backtype.storm.hooks.ITaskHook, BaseTaskHook.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: B027
        """Called first, when the hook is added (where the task runs)."""

    def emit(self, info: EmitInfo) -> None:  # noqa: B027
        """Called after every tuple the task has emitted."""

    def execute(self, info: ExecuteInfo) -> None:  # noqa: B027
        """Called after every tuple the bolt has executed, but for one at which it raised."""

    def bolt_ack(self, info: AckInfo) -> None:  # noqa: B027
        """Called after a bolt has acked a tuple; plain topologies only."""

    def bolt_fail(self, info: FailInfo) -> None:  # noqa: B027
        """Called after a bolt has failed a tuple; plain topologies only."""

    def spout_ack(self, info: AckInfo) -> None:  # noqa: B027
        """Called after a spout was told that a message is complete; plain topologies only."""

    def spout_fail(self, info: FailInfo) -> None:  # noqa: B027
        """Called after a spout was told that a message has failed; plain topologies only."""

    def cleanup(self) -> None:  # noqa: B027
        """Called last, after the bolt's `cleanup`, or when the emitter is closed."""


def install_hooks(context: TopologyContext, specs: Sequence[bytes]) -> None:
    """Has fresh copies of the topology's pickled hooks watch a task."""
    for spec in specs:
        context.add_task_hook(pickle.loads(spec))
