"""How bolts of a plain topology emit, ack and fail, and how its spouts emit: the sending half of the ack tree.

Each tuple sent is an edge with a random 64-bit id. The sender xors the id into the ack value of each anchor,
and the receiver finds it in the tuple's roots; an ack reports both to the acker. A tree is complete when
each of its edges was reported from both ends. A spout draws the root.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from coordinated_bolt.batches.refused_tuples import outside_transactions
from coordinated_bolt.plain.outboxes import EDGE_BITS, RootOutbox, TreeOutbox
from coordinated_bolt.rotating_map import RotatingMap
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.plain_tuple import PendingMessage, PlainTuple, TupleStatus
from coordinated_bolt.streams.routing import Router
from coordinated_bolt.streams.tuples import Tuple, shortened
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.watching.task_observer import HookObserver
from coordinated_bolt.wiring import TaskWiring
from state.errors import TopologyError

_OPEN, _ACKED = TupleStatus.OPEN, TupleStatus.ACKED


class TreeOutputCollector:
    """The `OutputCollector` of one task; lives as long as the task.

    Args:
        wiring: the task.
        outbox: takes what is sent.
        random: draws the edges and the seed of the choosers.
        observer: notified of each step of the bolt.
        clock: in nanoseconds.

    Attributes:
        component_id: the component whose task it is.

    Source: executor/bolt/BoltOutputCollectorImpl.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        outbox: TreeOutbox,
        random: Random,
        observer: HookObserver,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._clock = clock
        self.component_id = wiring.component_id
        self._random = random
        self._router = Router(wiring.component_id, wiring.streams, self._random.getrandbits(EDGE_BITS))
        self._outbox = outbox
        self._watched = observer

    def emit(
        self, values: Sequence[Any], anchors: Tuple | Iterable[Tuple] = (), stream_id: str = DEFAULT_STREAM
    ) -> list[int]:
        """Sends one tuple, an edge to each receiver; returns their task ids."""
        return self.emit_anchored(values, _open_tuples(anchors), stream_id)

    def emit_anchored(self, values: Sequence[Any], anchors: list[PlainTuple], stream_id: str) -> list[int]:
        """Does the same on anchors known to be open tuples."""
        stream_index, row, receivers = self._router.route(values, stream_id)
        for target in receivers:
            self._send_tuple(target, stream_index, row, anchors)
        watched = self._watched
        (watched if watched.hooks else watched.observer).emitted(stream_id, row, receivers)
        return receivers

    def emit_batch(self, batch: Any, anchors: Tuple | Iterable[Tuple] = (), stream_id: str = DEFAULT_STREAM) -> None:
        """Sends every tuple of a batch by itself; none of them if one is refused."""
        _, columns, _ = self._router.route_batch(batch, stream_id)
        held = _open_tuples(anchors)
        for row in columns:
            self.emit_anchored(row, held, stream_id)

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
        self._send_tuple(task_id, stream_index, row, held)
        self._watched.emitted(stream_id, row, [task_id])

    def ack(self, tup: Tuple) -> None:
        """Reports to the ackers both the edge a tuple arrived on and those anchored on it."""
        held = tup if type(tup) is PlainTuple and tup.status is _OPEN else _open_tuple(tup, "acked")
        held.status = _ACKED
        for root, edge in held.roots.items():
            self._outbox.ack(root, edge ^ held.ack_value)
        watched = self._watched
        (watched if watched.hooks else watched.observer).acked(held, self._clock() - held.received_ns)

    def fail(self, tup: Tuple) -> None:
        """Reports to the ackers that the trees of a tuple have failed."""
        held = _open_tuple(tup, "failed")
        held.status = TupleStatus.FAILED
        for root in held.roots:
            self._outbox.fail(root)
        self._watched.failed(held, self._clock() - held.received_ns)

    def reset_timeout(self, tup: Tuple) -> None:
        """Asks the spouts of a tuple's trees to restart their timeouts."""
        for root in _open_tuple(tup, "kept alive").roots:
            self._outbox.reset_timeout(root)

    def _send_tuple(self, target: int, stream_index: int, row: list[Any], anchors: list[PlainTuple]) -> None:
        if len(anchors) == 1:
            anchor, edge = anchors[0], self._random.getrandbits(EDGE_BITS)
            self._outbox.add(target, stream_index, row, dict.fromkeys(anchor.roots, edge))
            anchor.ack_value ^= edge  # only now, because a tuple that was not sent has no edge
            return
        roots: dict[int, int] = {}
        edges = []
        for anchor in anchors:
            edge = self._random.getrandbits(EDGE_BITS)
            edges.append(edge)
            for root in anchor.roots:
                roots[root] = roots.get(root, 0) ^ edge
        self._outbox.add(target, stream_index, row, roots)
        for anchor, edge in zip(anchors, edges, strict=True):
            anchor.ack_value ^= edge


class AnchoringCollector:
    """The `BasicOutputCollector` of a basic bolt in a plain topology.

    Args:
        collector: of the task; emits the tuples.

    Attributes:
        anchor: the tuple being executed.
    """

    def __init__(self, collector: TreeOutputCollector) -> None:
        self._collector = collector
        self.anchor: PlainTuple | None = None

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple, anchored on the input; returns the task ids that receive it."""
        return self._collector.emit_anchored(values, self._anchors(), stream_id)

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

    def _anchors(self) -> list[PlainTuple]:
        anchor = self.anchor
        if anchor is None:
            return []
        return [anchor if anchor.status is _OPEN else _open_tuple(anchor, "anchored on")]


def _open_tuples(anchors: Any) -> list[PlainTuple]:
    if type(anchors) is tuple and not anchors:
        return []
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


PENDING_BUCKET_COUNT = 2
"""With one rotation per timeout T, a message fails between T and 2T after it was emitted."""


class TreeSpoutOutputCollector:
    """The `SpoutOutputCollector` of one task; lives as long as the task.

    Args:
        wiring: the task.
        outbox: takes what is sent.
        random: draws roots, edges and the seed of the choosers.
        observer: notified of each emit.
        clock: in nanoseconds.

    Attributes:
        pending: root -> message, until it is acked, fails or times out.
        done: messages to be acked at once, because without ackers they have no tree.
        emitted_count: how many tuples were emitted.

    Source: executor/spout/SpoutOutputCollectorImpl.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        outbox: RootOutbox,
        random: Random,
        observer: HookObserver,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._clock = clock
        self._has_ackers = bool(wiring.acker_tasks)
        self._random = random
        self._router = Router(wiring.component_id, wiring.streams, self._random.getrandbits(EDGE_BITS))
        self._outbox = outbox
        self._watched = observer
        self.pending = RotatingMap[int, PendingMessage](PENDING_BUCKET_COUNT)
        self.done: deque[PendingMessage] = deque()
        self.emitted_count = 0

    def emit(self, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple, the root of a tree if it has a message id; returns the task ids that receive it."""
        stream_index, row, receivers = self._router.route(values, stream_id)
        self._emit(receivers, stream_index, row, PendingMessage(message_id, row, stream_id, self._clock()))
        watched = self._watched
        (watched if watched.hooks else watched.observer).emitted(stream_id, row, receivers)
        return receivers

    def emit_direct(
        self, task_id: int, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM
    ) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        stream_index, row = self._router.route_direct(task_id, values, stream_id)
        self._emit([task_id], stream_index, row, PendingMessage(message_id, row, stream_id, self._clock()))
        self._watched.emitted(stream_id, row, [task_id])

    def _emit(self, receivers: list[int], stream_index: int, row: list[Any], message: PendingMessage) -> None:
        is_tracked = message.message_id is not None and self._has_ackers
        root = self._new_root() if is_tracked else 0
        edges = 0
        for target in receivers:
            edge = self._random.getrandbits(EDGE_BITS)
            roots = {root: edge} if is_tracked else {}
            self._outbox.add(target, stream_index, row, roots)
            edges ^= edge
        self.emitted_count += 1
        if is_tracked:  # only now, so that nobody waits for a tuple that could not be sent
            self.pending.put_new(root, message)
            self._outbox.init(root, edges)
        elif message.message_id is not None:
            self.done.append(message)

    def _new_root(self) -> int:
        root = self._random.getrandbits(EDGE_BITS)
        while root in self.pending:  # practically never
            root = self._random.getrandbits(EDGE_BITS)
        return root
