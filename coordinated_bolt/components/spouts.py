"""What users subclass to bring tuples into a plain topology."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM


class SpoutOutputCollector(Protocol):
    """Emits the roots of tuple trees: given to a spout by `open`. Use it on the task's own thread.

    Source: backtype.storm.spout.SpoutOutputCollector.
    """

    def emit(self, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it.

        Args:
            values: one for each field of the stream.
            message_id: what `ack` or `fail` will be called with, any object but None; without one the tuple
                is not tracked, and the spout never hears of it again.
            stream_id: the stream.

        Raises:
            ValueError: the tuple does not fit its stream.
        """

    def emit_direct(
        self, task_id: int, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM
    ) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber; otherwise like `emit`."""


class ISpout(IComponent):
    """Emits tuples one by one and learns, for those it gave a message id, how they ended.

    Processing is at least once as far as the spout makes it so: it emits again what failed. An instance
    sees `open`, then `activate`; while it is active and has fewer than ``max_spout_pending`` messages under
    way, `next_tuple` again and again; in between `ack` and `fail`, each message exactly one of them. All
    calls come one at a time. What any of them raises stops the run. On Spark spouts live in the driver, and `ack`
    and `fail` are called between waves, see `coordinator.run_plain`.

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
        """A message is processed: every bolt of its tree has acked. Called also while inactive."""

    def fail(self, message_id: Any) -> None:
        """A message has failed, or was not processed in time. Called also while inactive."""

    def activate(self) -> None:
        """The topology begins, or goes on, to ask for tuples."""

    def deactivate(self) -> None:
        """The topology asks for no more tuples until it is activated again."""

    def close(self) -> None:
        """Called last when the run ends in an orderly way; never promised."""


class BaseSpout(ISpout):
    """An `ISpout` that keeps what `open` is given; who overrides that calls ``super().open(...)``."""

    conf: Mapping[str, Any]
    context: TopologyContext
    collector: SpoutOutputCollector

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self.conf, self.context, self.collector = conf, context, collector


class IAckValueSpout(ISpout):
    """A spout that is given the values back with each ack.

    Source: JStorm's IAckValueSpout.
    """

    @abstractmethod
    def ack(self, message_id: Any, values: Sequence[Any] = ()) -> None:
        """A message is processed; always called with the values it was emitted with."""


class IFailValueSpout(ISpout):
    """A spout that is given the values back with each failure.

    Source: JStorm's IFailValueSpout.
    """

    @abstractmethod
    def fail(self, message_id: Any, values: Sequence[Any] = ()) -> None:
        """A message has failed; always called with the values it was emitted with."""
