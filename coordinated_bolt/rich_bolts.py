"""Bolts that ack and fail their tuples by hand, when and in whatever order they like."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.components import IComponent
from coordinated_bolt.context import TopologyContext
from coordinated_bolt.output_collector import OutputCollector
from coordinated_bolt.tuples import Tuple


class IRichBolt(IComponent):
    """Executes tuples one by one, and acks or fails each of them itself, then or later.

    For joins, windows and whatever keeps tuples. An instance sees `prepare`, then `execute` for every
    tuple, and `cleanup` when the run ends in an orderly way; that `cleanup` is called is never promised.
    A tuple that is neither acked nor failed fails by the message timeout. A tuple may be executed more than
    once: after a failure or a timeout anywhere in its tree the spout may emit it again.

    On Spark an instance lives for one wave, and what it neither acked nor failed when `cleanup` has returned has
    failed; in `cleanup` it may still emit and ack. See `coordinator.plain.run`.

    `execute` may raise `FailedException` to fail its tuple at once. Any other exception stops the run.

    Source: backtype.storm.topology.IRichBolt. Differs from Storm: a FailedException fails the tuple; there
    only basic bolts may raise it.
    """

    @abstractmethod
    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Called first, once per instance (where the task runs)."""

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Called for every tuple that reaches this task, in the order in which each sender sent them."""

    def cleanup(self) -> None:
        """Called last, to let go of what `prepare` took."""


class BaseRichBolt(IRichBolt):
    """An `IRichBolt` that keeps what `prepare` is given; who overrides that calls ``super().prepare(...)``."""

    conf: Mapping[str, Any]
    context: TopologyContext
    collector: OutputCollector

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.conf, self.context, self.collector = conf, context, collector
