"""Bolts that ack and fail their tuples themselves, at any time and in any order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.tuples import Tuple


class OutputCollector(Protocol):
    """Emits, acks and fails; a rich bolt gets it in `prepare`. Use it on the task's own thread.

    A tuple emitted without anchors belongs to no tree: its arrival is not tracked.

    Source: backtype.storm.task.OutputCollector. Differs from JStorm: an emit that fails raises, where the
    bolt can see it. Differs from Storm: acking or failing a tuple twice, or anchoring on a tuple that was
    acked or failed, raises; in Storm it corrupts the tree.
    """

    def emit(
        self, values: Sequence[Any], anchors: Tuple | Iterable[Tuple] = (), stream_id: str = DEFAULT_STREAM
    ) -> list[int]:
        """Sends one tuple; returns the task ids that receive it.

        Args:
            values: one for each field of the stream.
            anchors: the input tuple or tuples from which it was made; it joins their trees, and they fail if it fails.
                The same tuple given twice counts twice.
            stream_id: one of the component's declared streams.

        Raises:
            ValueError: the tuple does not fit its stream, or an anchor was already acked or failed.
        """

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[Any],
        anchors: Tuple | Iterable[Tuple] = (),
        stream_id: str = DEFAULT_STREAM,
    ) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber; otherwise like `emit`."""

    def ack(self, tup: Tuple) -> None:
        """Reports a tuple as processed, once everything anchored on it has been emitted.

        Raises:
            ValueError: the tuple was already acked or failed.
        """

    def fail(self, tup: Tuple) -> None:
        """Reports that a tuple cannot be processed; its spout is notified at once, whatever becomes of the tree.

        Raises:
            ValueError: the tuple was already acked or failed.
        """

    def reset_timeout(self, tup: Tuple) -> None:
        """Restarts the message timeouts of a tuple's trees at their spouts, for work that takes long.

        Raises:
            ValueError: the tuple was already acked or failed.
        """


class IRichBolt(IComponent):
    """Executes tuples one by one, and acks or fails each of them itself, at once or later.

    For joins, windows and other bolts that keep tuples. An instance sees `prepare`, then `execute` for every tuple, and
    `cleanup` when the run ends in an orderly way; a call of `cleanup` is never promised. A tuple that is neither acked
    nor failed fails at the message timeout. A tuple may be executed more than once: after a failure or a timeout
    anywhere in its tree the spout may emit it again.

    On Spark an instance lives for one wave. It may still emit and ack in `cleanup`; tuples that it has neither acked
    nor failed when `cleanup` returns have failed. See `coordinator.run_plain`.

    `execute` may raise `FailedException` to fail its tuple at once. Any other exception stops the run.

    Source: backtype.storm.topology.IRichBolt. Differs from Storm, where only basic bolts may raise
    FailedException.
    """

    @abstractmethod
    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Called first, once per instance (where the task runs)."""

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Called for every tuple that reaches this task, in the order in which each sender sent them."""

    def cleanup(self) -> None:
        """Called last, to release what `prepare` acquired."""


class BaseRichBolt(IRichBolt):
    """An `IRichBolt` that stores the arguments of `prepare`; call ``super().prepare(...)`` if you override it."""

    conf: Mapping[str, Any]
    context: TopologyContext
    collector: OutputCollector

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.conf, self.context, self.collector = conf, context, collector
