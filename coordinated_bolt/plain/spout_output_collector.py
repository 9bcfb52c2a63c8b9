"""How the spouts of a plain topology emit: draws the roots of the ack trees."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from coordinated_bolt.plain.output_collector import EDGE_BITS
from coordinated_bolt.plain.tree_outbox import RootOutbox
from coordinated_bolt.rotating_map import RotatingMap
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.pending_message import PendingMessage
from coordinated_bolt.streams.routing import Router
from coordinated_bolt.watching.hook_observer import HookObserver
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.wiring import TaskWiring

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
