"""How spouts of a plain topology emit: a tuple with a message id is the root of a tree, with edges to its receivers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat
from random import Random
from typing import Any

from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.plain_tuple import Pending
from coordinated_bolt.streams.routing import Router
from coordinated_bolt.transport.outbox import check_tuple_size
from coordinated_bolt.watching.task_observer import HookObserver, Meter
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.tasks.message_packer import EDGE_BITS, MessagePacker, is_small, unpack_numbers
from state.codec import pack


class TreeSpoutOutputCollector:
    """The `SpoutOutputCollector` of one task; lives as long as the task.

    Args:
        wiring: the task.
        outbox: takes what is sent.
        random: draws roots, edges and the seed of the choosers.
        watched: notified of each emit, while it has watchers.
        meter: meter of the component.

    Attributes:
        pending: root -> message, until it is acked, fails or times out; in the order of emission.
        done: messages to be acked at once, because without ackers they have no tree.
        emitted_count: how many tuples were emitted.

    Source: executor/spout/SpoutOutputCollectorImpl.
    """

    def __init__(
        self, wiring: TaskWiring, outbox: MessagePacker, random: Random, watched: HookObserver, meter: Meter
    ) -> None:
        self._has_ackers = bool(wiring.acker_tasks)
        self._random = random
        self._router = Router(wiring.component_id, wiring.streams, self._random.getrandbits(EDGE_BITS))
        self._outbox = outbox
        self._watched = watched
        self._clock, self._work = meter.clock, meter.metrics.work
        self.pending: dict[int, Pending] = {}
        self.done: deque[Pending] = deque()
        self.emitted_count = 0

    def emit(self, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple, the root of a tree if it has a message id; returns the task ids that receive it."""
        stream_index, row, receivers = self._router.route(values, stream_id)
        self._send(receivers, stream_index, row, message_id, stream_id)
        return receivers

    def emit_all(
        self, rows: Iterable[Sequence[Any]], message_ids: Iterable[Any] = (), stream_id: str = DEFAULT_STREAM
    ) -> None:
        """Sends many tuples, each the root of a tree if there are message ids; sends none if one is refused."""
        ids = list(message_ids)
        stream_index, listed, choosers = self._router.route_all(rows, stream_id)
        if ids and len(ids) != len(listed):
            raise ValueError(f"emit_all was given {len(listed)} tuples, but {len(ids)} message ids; give one for each")
        are_small = all(map(is_small, listed))
        if self._watched.watchers or any(each is None for each in ids) or not are_small:
            for row in () if are_small else listed:
                check_tuple_size(pack(row))  # before any row is sent
            for row, message_id in zip(listed, ids or repeat(None), strict=False):
                self.emit(row, message_id, stream_id)
            return
        messages = zip(ids, listed, repeat(stream_id), repeat(self._clock()), strict=False)
        shares = [
            (tasks[position], list(share))
            for chooser, tasks in choosers
            for position, share in chooser.split(listed).items()
        ]
        if ids and self._has_ackers:
            begun = self._send_trees(stream_index, listed, shares)
            self.pending.update(zip(begun, messages, strict=True))
            self._outbox.begin(begun)
        else:
            for target, share in shares:
                self._outbox.add_all(target, stream_index, share, (), ())
            self.done.extend(messages)
        self.emitted_count += len(listed)
        self._work.add_emitted(stream_id, len(listed), sum(len(share) for _, share in shares))

    def emit_direct(
        self, task_id: int, values: Sequence[Any], message_id: Any = None, stream_id: str = DEFAULT_STREAM
    ) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        stream_index, row = self._router.route_direct(task_id, values, stream_id)
        self._send([task_id], stream_index, row, message_id, stream_id)

    def _send(self, receivers: list[int], stream_index: int, row: list[Any], message_id: Any, stream_id: str) -> None:
        outbox = self._outbox
        if message_id is not None and self._has_ackers:
            draw, add, pending, edges = self._random.getrandbits, outbox.add, self.pending, 0
            root = draw(EDGE_BITS)
            while root in pending:  # practically never
                root = draw(EDGE_BITS)
            for target in receivers:
                edge = draw(EDGE_BITS)
                add(target, stream_index, row, {root: edge})
                edges ^= edge
            # only now, so that a tuple that could not be sent is not pending
            pending[root] = message_id, row, stream_id, self._clock()
            outbox.init(root, edges)
        else:
            for target in receivers:
                outbox.add(target, stream_index, row, {})
            if message_id is not None:
                self.done.append((message_id, row, stream_id, self._clock()))
        self.emitted_count += 1
        self._work.add_emitted(stream_id, 1, len(receivers))
        if self._watched.watchers:
            self._watched.emitted(stream_id, row, receivers)

    def _send_trees(
        self, stream_index: int, rows: list[list[Any]], shares: Iterable[tuple[int, list[list[Any]]]]
    ) -> dict[int, int]:
        """Sends rows as roots of trees; returns root -> the xor of its edges, in the order of the rows."""
        roots = self._new_roots(len(rows))
        begun, root_of = dict.fromkeys(roots, 0), dict(zip(map(id, rows), roots, strict=True))
        for target, share in shares:
            its = roots if len(share) == len(roots) else tuple(root_of[id(row)] for row in share)
            edges = self._draw(len(its))
            self._outbox.add_all(target, stream_index, share, its, edges)
            for root, edge in zip(its, edges, strict=True):
                begun[root] ^= edge
        return begun

    def _new_roots(self, count: int) -> tuple[int, ...]:
        while True:
            roots = self._draw(count)
            if len({*roots}) == count and self.pending.keys().isdisjoint(roots):  # practically always
                return roots

    def _draw(self, count: int) -> tuple[int, ...]:
        return unpack_numbers(self._random.getrandbits(EDGE_BITS * count).to_bytes(EDGE_BITS // 8 * count, "little"))
