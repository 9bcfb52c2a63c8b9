"""How bolts of a plain topology emit, ack and fail: the sending half of the ack tree.

Each tuple sent is an edge with a random 64-bit id. The sender xors the id into the ack value of each anchor,
and the receiver finds it in the tuple's roots; an ack reports both to the acker. A tree is complete when
each of its edges was reported from both ends. A spout draws the root, see `TreeSpoutOutputCollector`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from coordinated_bolt.batches.refused_tuples import outside_transactions
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.plain_tuple import PlainTuple, TupleStatus
from coordinated_bolt.streams.routing import Router
from coordinated_bolt.streams.tuples import Tuple, shortened
from coordinated_bolt.watching.task_observer import HookObserver, Meter
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.tasks.message_packer import EDGE_BITS, MessagePacker
from state.errors import TopologyError

_OPEN, _ACKED = TupleStatus.OPEN, TupleStatus.ACKED


class TreeOutputCollector:
    """The `OutputCollector` of one task; lives as long as the task.

    Args:
        wiring: the task.
        outbox: takes what is sent.
        random: draws the edges and the seed of the choosers.
        watched: notified of each step of the bolt, while it has watchers.
        meter: meter of the component.

    Attributes:
        component_id: the component whose task it is.

    Source: executor/bolt/BoltOutputCollectorImpl.
    """

    def __init__(
        self, wiring: TaskWiring, outbox: MessagePacker, random: Random, watched: HookObserver, meter: Meter
    ) -> None:
        self.component_id = wiring.component_id
        self._random = random
        self._router = Router(wiring.component_id, wiring.streams, self._random.getrandbits(EDGE_BITS))
        self._outbox = outbox
        self._watched = watched
        self._clock, self._metrics = meter.clock, meter.metrics

    def emit(
        self, values: Sequence[Any], anchors: Tuple | Iterable[Tuple] = (), stream_id: str = DEFAULT_STREAM
    ) -> list[int]:
        """Sends one tuple, an edge to each receiver; returns their task ids."""
        if type(anchors) is PlainTuple and anchors.status is _OPEN:
            return self.emit_on(anchors, values, stream_id)
        held = _open_tuples(anchors)
        stream_index, row, receivers = self._router.route(values, stream_id)
        for target in receivers:
            self._send(target, stream_index, row, held)
        self._emitted(stream_id, row, receivers)
        return receivers

    def emit_on(self, anchor: PlainTuple, values: Sequence[Any], stream_id: str) -> list[int]:
        """Does the same as `emit` with a single anchor that is known to be open."""
        stream_index, row, receivers = self._router.route(values, stream_id)
        draw, add, roots = self._random.getrandbits, self._outbox.add, anchor.roots
        for target in receivers:
            edge = draw(EDGE_BITS)
            add(target, stream_index, row, dict.fromkeys(roots, edge))
            anchor.ack_value ^= edge  # only now, because a tuple that was not sent has no edge
        self._emitted(stream_id, row, receivers)
        return receivers

    def emit_batch(self, batch: Any, anchors: Tuple | Iterable[Tuple] = (), stream_id: str = DEFAULT_STREAM) -> None:
        """Sends every tuple of a batch separately; sends none if one is refused."""
        _, columns, _ = self._router.route_batch(batch, stream_id)
        held = _open_tuples(anchors)
        for row in columns:
            self.emit(row, held, stream_id)

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[Any],
        anchors: Tuple | Iterable[Tuple] = (),
        stream_id: str = DEFAULT_STREAM,
    ) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        held = _open_tuples(anchors)
        stream_index, row = self._router.route_direct(task_id, values, stream_id)
        self._send(task_id, stream_index, row, held)
        self._emitted(stream_id, row, [task_id])

    def ack(self, tup: Tuple) -> None:
        """Reports to the ackers the edge on which a tuple arrived, and the edges anchored on it."""
        held = tup if type(tup) is PlainTuple and tup.status is _OPEN else _open_tuple(tup, "acked")
        held.status = _ACKED
        ack, ack_value = self._outbox.ack, held.ack_value
        for root, edge in held.roots.items():
            ack(root, edge ^ ack_value)
        latency_ns = self._clock() - held.received_ns
        self._metrics.add_acked(held.origin.name, 1, latency_ns)
        if self._watched.watchers:
            self._watched.acked(held, latency_ns)

    def fail(self, tup: Tuple) -> None:
        """Reports to the ackers that the trees of a tuple have failed."""
        held = _open_tuple(tup, "failed")
        held.status = TupleStatus.FAILED
        for root in held.roots:
            self._outbox.fail(root)
        self._metrics.add_failed(held.origin.name)
        self._watched.failed(held, self._clock() - held.received_ns)

    def reset_timeout(self, tup: Tuple) -> None:
        """Asks the spouts of a tuple's trees to restart their timeouts."""
        for root in _open_tuple(tup, "kept alive").roots:
            self._outbox.reset_timeout(root)

    def _send(self, target: int, stream_index: int, row: list[Any], anchors: list[PlainTuple]) -> None:
        roots: dict[int, int] = {}
        edges = []
        for anchor in anchors:
            edge = self._random.getrandbits(EDGE_BITS)
            edges.append(edge)
            for root in anchor.roots:
                roots[root] = roots.get(root, 0) ^ edge
        self._outbox.add(target, stream_index, row, roots)
        for anchor, edge in zip(anchors, edges, strict=True):
            anchor.ack_value ^= edge  # as above

    def _emitted(self, stream_id: str, row: list[Any], receivers: list[int]) -> None:
        self._metrics.work.add_emitted(stream_id, 1, len(receivers))
        if self._watched.watchers:
            self._watched.emitted(stream_id, row, receivers)


class AnchoringCollector:
    """The `BasicOutputCollector` of a basic bolt in a plain topology.

    Args:
        collector: collector of the task; emits the tuples.

    Attributes:
        anchor: the tuple being executed.
    """

    def __init__(self, collector: TreeOutputCollector) -> None:
        self._collector = collector
        self.anchor: PlainTuple | None = None

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple, anchored on the input; returns the task ids that receive it."""
        anchor = self.anchor
        if anchor is not None and anchor.status is _OPEN:
            return self._collector.emit_on(anchor, values, stream_id)
        return self._collector.emit(values, self._anchors(), stream_id)

    def emit_batch(self, batch: Any, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, each anchored on the input."""
        self._collector.emit_batch(batch, self._anchors(), stream_id)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber, anchored on the input."""
        self._collector.emit_direct(task_id, values, self._anchors(), stream_id)

    def dead_letter(self, tup: Tuple | Mapping[str, Any], reason: str) -> None:
        """Refuses: a plain topology has no transaction that the tuple could be stored with.

        Raises:
            TopologyError: always.
        """
        raise TopologyError(outside_transactions(self._collector.component_id))

    def _anchors(self) -> tuple[PlainTuple, ...]:
        return () if self.anchor is None else (self.anchor,)


def _open_tuples(anchors: Any) -> list[PlainTuple]:
    if isinstance(anchors, str):
        raise TypeError(f"anchors must be tuples, got {anchors!r}; to name a stream, write stream_id={anchors!r}")
    given = (anchors,) if isinstance(anchors, Tuple) else anchors
    return [_open_tuple(anchor, "anchored on") for anchor in given]


def _open_tuple(tup: Tuple, purpose: str) -> PlainTuple:
    if not isinstance(tup, PlainTuple):
        hint = "; emit takes the values first, then the anchors" if purpose == "anchored on" else ""
        raise TypeError(
            f"{tup!r} cannot be {purpose}: it is not a tuple that this plain topology's bolt received{hint}"
        )
    if tup.status is not TupleStatus.OPEN:
        raise ValueError(
            f"{shortened(tup)} cannot be {purpose}: it was already {tup.status.value}; "
            "ack or fail a tuple only once, after emitting everything anchored on it"
        )
    return tup
