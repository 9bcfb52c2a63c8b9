"""What users subclass to bring tuples into a plain topology."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components import IComponent
from coordinated_bolt.context import TopologyContext
from coordinated_bolt.spout_output_collector import SpoutOutputCollector


class ISpout(IComponent):
    """Emits tuples one by one and learns, for those it gave a message id, how they ended.

    Processing is at least once as far as the spout makes it so: it emits again what failed. An instance
    sees `open`, then `activate`; while it is active and has fewer than ``max_spout_pending`` messages under
    way, `next_tuple` again and again; in between `ack` and `fail`, each message exactly one of them. All
    calls come one at a time. What any of them raises stops the run. On Spark spouts live in the driver, and `ack`
    and `fail` are called between waves, see `coordinator.plain.run`.

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
