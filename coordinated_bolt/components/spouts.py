"""Base classes of spouts, which bring tuples into a plain topology."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM


class SpoutOutputCollector(Protocol):
    """Emits the roots of tuple trees; a spout gets it in `open`. Use it on the task's own thread.

    Source: backtype.storm.spout.SpoutOutputCollector.
    """

    def emit(self, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it.

        Args:
            values: one for each field of the stream.
            message_id: the argument of the later `ack` or `fail`, any object but None; without one the tuple is not
                tracked, and the spout gets no `ack` or `fail` for it.
            stream_id: one of the component's declared streams.

        Raises:
            ValueError: the tuple does not fit its stream.
        """

    def emit_all(
        self, rows: Iterable[Sequence[Any]], message_ids: Iterable[Any] = (), stream_id: str = DEFAULT_STREAM
    ) -> None:
        """Sends many tuples, in less than half the time of as many calls of `emit`; sends none if one is refused.

        Args:
            rows: the values of each tuple.
            message_ids: one for each row, or empty.
            stream_id: as for `emit`.

        Raises:
            ValueError: as `emit`, or there are more or fewer message ids than rows.
        """

    def emit_direct(
        self, task_id: int, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM
    ) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber; otherwise like `emit`."""


class ISpout(IComponent):
    """Emits tuples one by one and, for those with a message id, is notified of their success or failure.

    Processing is at least once only if the spout emits failed messages again. An instance sees `open`, then `activate`;
    while it is active and has fewer than ``max_spout_pending`` messages under way, `next_tuple` repeatedly; and in
    between, for each message, exactly one of `ack` and `fail`. Calls never overlap. Any exception stops the run. On
    Spark spouts live in the driver, and `ack` and `fail` are called once a wave has ended; see `coordinator.run_plain`.

    Source: backtype.storm.spout.ISpout.
    """

    @abstractmethod
    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Called first, once per instance (where the task runs)."""

    @abstractmethod
    def next_tuple(self) -> None:
        """Called when tuples are wanted: emits one, or returns without waiting if there is none.

        A call may emit several; then more than ``max_spout_pending`` messages may be under way.
        """

    def ack(self, message_id: Any) -> None:
        """Called when a message is processed, that is, every bolt of its tree has acked; also while inactive."""

    def fail(self, message_id: Any) -> None:
        """Called when a message has failed or was not processed in time; also while inactive."""

    def activate(self) -> None:
        """Called before the topology starts, or resumes, asking for tuples."""

    def deactivate(self) -> None:
        """Called when the topology stops asking for tuples, until it is activated again."""

    def close(self) -> None:
        """Called last when the run ends in an orderly way; never promised."""


class BaseSpout(ISpout):
    """An `ISpout` that stores the arguments of `open`; call ``super().open(...)`` if you override it."""

    conf: Mapping[str, Any]
    context: TopologyContext
    collector: SpoutOutputCollector

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self.conf, self.context, self.collector = conf, context, collector


class IAckValueSpout(ISpout):
    """A spout whose `ack` also gets the values of the message.

    Source: JStorm's IAckValueSpout.
    """

    @abstractmethod
    def ack(self, message_id: Any, values: Sequence[Any] = ()) -> None:
        """Called when a message is processed, always with its emitted values."""


class IFailValueSpout(ISpout):
    """A spout whose `fail` also gets the values of the message.

    Source: JStorm's IFailValueSpout.
    """

    @abstractmethod
    def fail(self, message_id: Any, values: Sequence[Any] = ()) -> None:
        """Called when a message has failed, always with its emitted values."""
