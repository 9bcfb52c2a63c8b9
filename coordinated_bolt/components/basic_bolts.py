"""Bolts that leave acking to the framework: their tuples are anchored on the tuple they execute.

Most bolts are functions of one tuple. They need nothing more than this, and cannot forget to ack.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.records import EmittedRow
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import Tuple


class BasicOutputCollector(Protocol):
    """Emits the tuples of a basic bolt while it executes one.

    Source: backtype.storm.topology.BasicOutputCollector.
    """

    def emit(self, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple, anchored on the input; returns the task ids that receive it."""

    def emit_batch(self, batch: Any, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, given as columns, each anchored on the input; see `BatchOutputCollector.emit_batch`."""

    def emit_direct(self, task_id: int, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber, anchored on the input."""

    def dead_letter(self, tup: Tuple | EmittedRow | Mapping[str, Any], reason: str) -> None:
        """Keeps a tuple that cannot be processed, in a transactional topology; see `BatchOutputCollector.dead_letter`.

        Raises:
            TopologyError: this is a plain topology, or one of its sub-topologies, which have no transaction to store
                the tuple with.
        """


class IBasicBolt(IComponent):
    """Executes tuples one by one; each is acked when `execute` returns.

    An instance sees `prepare`, then `execute` for every tuple, and `cleanup` when the run ends in an orderly
    way; a call of `cleanup` is never promised. A tuple may be executed more than once: after a failure or a
    timeout anywhere in its tree the spout may emit it again. In a plain topology on Spark an instance lives for
    one wave; see `coordinator.run_plain`.

    `execute` may raise `FailedException` to fail its tuple at once. Any other exception stops the run.

    Source: backtype.storm.topology.IBasicBolt.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called first, once per instance (where the task runs)."""

    @abstractmethod
    def execute(self, tup: Any, collector: BasicOutputCollector, /) -> None:
        """Called for every tuple; emit before returning."""

    def execute_batch(self, batch: TupleBatch, collector: BasicOutputCollector) -> None:
        """Called instead of `execute` in a transactional topology, if the bolt's class defines it.

        See `IBatchBolt.execute_batch`. In a plain topology tuples are acked one by one, so `execute` is called there.
        """
        for tup in batch:
            self.execute(tup, collector)

    def cleanup(self) -> None:
        """Called last, to release what `prepare` acquired."""


class BaseBasicBolt(IBasicBolt):
    """An `IBasicBolt` that stores the arguments of `prepare`; call ``super().prepare(...)`` if you override it."""

    conf: Mapping[str, Any]
    context: TopologyContext

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.conf, self.context = conf, context
