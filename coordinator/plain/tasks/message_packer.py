"""The outbox of a task of a plain topology for one wave: packs tuples and messages into frames for each target.

Small tuples are packed in portions, as stretches, since packing a single tuple costs more than packing its values. Acks
travel as two columns, roots and edges, with at most one entry per root: the xor of all acks of a task, which is all
that an acker needs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from coordinated_bolt.transport.frames import FrameKind, SealedFrame, WaveId
from coordinated_bolt.transport.outbox import FRAME_TUPLES, check_tuple_size
from coordinator.plain.tasks.messages import Message, MessageKind, StretchOrMessage, TupleStretch, tree_message
from state.codec import CodecError, pack, unpack

EDGE_BITS = 64
FRAME_BYTES = 4 * 1024 * 1024
"""A frame is sent once it holds this many bytes, far below the codec's limit."""
PORTION = 256
"""Small tuples packed together."""
SMALL_BYTES = 1024
"""A tuple is small if its values take no more than about this many bytes."""
NUMBER_BYTES = 9
"""The largest size of a packed number of 64 bits."""

_NUMBERS = frozenset({int, float, bool, type(None)})
_TEXTS = frozenset({str, bytes})
_KINDS = {int(kind): kind for kind in MessageKind}
_STRETCH = 0
"""Marks a stretch; a message has its kind in this place."""
_NO_TREES = [b"", b""]
"""The columns of a frame without trees."""


RootEdges = tuple[tuple[int, ...], tuple[int, ...]]
"""Roots, and for each root the xor of some of its edges."""


class Trees(NamedTuple):
    """The INITs and ACKs in a frame for an acker.

    Attributes:
        begun: roots and first edges, from every INIT.
        acked: roots and edges, from all ACKs.
    """

    begun: RootEdges
    acked: RootEdges


class _HeldMessages:
    """The tuples and messages that wait for one target."""

    __slots__ = ("byte_count", "held", "item_count", "rows", "sequence", "stream_index", "trees")

    def __init__(self) -> None:
        self.sequence = 0
        self.stream_index = -1
        self.rows: list[list[Any]] = []
        self.trees: list[dict[int, int]] = []
        self.held: list[bytes] = []
        self.item_count = self.byte_count = 0

    def pack_rows(self) -> None:
        """Packs the tuples that are not packed yet."""
        if self.rows:
            self.hold(pack([_STRETCH, self.stream_index, self.rows, *_trees_wire(self.trees)]), len(self.rows))
            self.rows, self.trees = [], []

    def hold(self, packed: bytes, item_count: int = 1) -> None:
        self.held.append(packed)
        self.item_count += item_count
        self.byte_count += len(packed)


class MessagePacker:
    """The outbox of a task for one wave: packs messages into frames; nothing is delivered before a method returns.

    All messages about a root go to one acker; every sender chooses the same one.

    Args:
        wave_id: the wave.
        sender: task id of the sender.
        send: takes each finished frame.
        frame_messages: most tuples and messages in a frame, not counting the last portion, and most roots; 1 sends each
            message when it is added.
        acker_tasks: every acker task.

    Attributes:
        acks: root -> the xor of the edges that have not been sent to its acker yet.
        byte_count: the size of everything packed so far, without the last portion of small tuples for each target.
    """

    def __init__(
        self,
        wave_id: WaveId,
        sender: int,
        send: Callable[[SealedFrame], None],
        frame_messages: int = FRAME_TUPLES,
        acker_tasks: Sequence[int] = (),
    ) -> None:
        self._wave_id, self._sender, self._send_frame = wave_id, sender, send
        self._frame_messages, self._portion = frame_messages, min(PORTION, frame_messages)
        self._acker_tasks = acker_tasks
        self._boxes: dict[int, _HeldMessages] = {}
        self.acks: dict[int, int] = {}
        self.byte_count = 0

    def add(self, target: int, stream_index: int, row: list[Any], roots: dict[int, int]) -> None:
        """Sends a tuple; `roots` is root -> edge, and belongs to the packer from then on, but `row` does not.

        Raises:
            CodecError: a value cannot travel or is too large; raised here, where the emitter can see it.
        """
        box = self._boxes.get(target) or self._box(target)
        if is_small(row):
            if stream_index != box.stream_index:
                box.pack_rows()
                box.stream_index = stream_index
            box.rows.append(row)
            box.trees.append(roots)
            if len(box.rows) >= self._portion:
                self._hold(target, box)
        else:
            packed = pack([_STRETCH, stream_index, [row], *_trees_wire([roots])])
            check_tuple_size(packed)
            self._hold(target, box, packed)

    def add_all(
        self, target: int, stream_index: int, rows: Sequence[list[Any]], roots: Sequence[int], edges: Sequence[int]
    ) -> None:
        """Sends small tuples, see `is_small`, with one root and edge each, or with none; the same as `add` for each."""
        box = self._boxes.get(target) or self._box(target)
        for start in range(0, len(rows), self._portion):
            part = slice(start, start + self._portion)
            columns = (pack_numbers(roots[part]), pack_numbers(edges[part])) if roots else (None, None)
            self._hold(target, box, pack([_STRETCH, stream_index, rows[part], *columns]), len(rows[part]))

    def begin(self, begun: dict[int, int]) -> None:
        """Tells the ackers which roots a spout has emitted: root -> the xor of its first edges."""
        self._tell(begun, {})

    def init(self, root: int, edges: int) -> None:
        """Tells the acker of a root that a spout has emitted it."""
        self._tell({root: edges}, {})

    def ack(self, root: int, edges: int) -> None:
        """Tells the acker of a root some edges that the task has received and sent."""
        acks = self.acks
        acks[root] = acks.get(root, 0) ^ edges
        if len(acks) >= self._frame_messages:
            self._tell_acks()

    def fail(self, root: int) -> None:
        """Tells the acker of a root that it has failed."""
        self._send_root(MessageKind.FAIL, root)

    def reset_timeout(self, root: int) -> None:
        """Asks for the timeout of a root to be restarted."""
        self._send_root(MessageKind.RESET_TIMEOUT, root)

    def send(self, message: Message) -> None:
        """Sends any message of the task.

        Raises:
            CodecError: see `add`.
        """
        _, target, kind, payload = message
        match kind:
            case MessageKind.TUPLE:
                self.add(target, *payload)
            case MessageKind.INIT:
                self.init(*payload)
            case MessageKind.ACK:
                self.ack(*payload)
            case _:
                packed = pack([int(kind), *payload])
                check_tuple_size(packed)
                self._hold(target, self._box(target), packed)

    def close(self) -> None:
        """Sends all unsent frames; nothing may be added afterwards."""
        self._tell_acks()
        for target, box in self._boxes.items():
            box.pack_rows()
            if box.item_count:
                self._flush(target, box)

    def _send_root(self, kind: MessageKind, root: int) -> None:
        self.send(tree_message(kind, self._sender, self._acker_of(root), root))

    def _acker_of(self, root: int) -> int:
        return self._acker_tasks[root % len(self._acker_tasks)]

    def _box(self, target: int) -> _HeldMessages:
        return self._boxes.setdefault(target, _HeldMessages())

    def _hold(self, target: int, box: _HeldMessages, packed: bytes | None = None, item_count: int = 1) -> None:
        """Packs the tuples held so far, appends packed content, and sends a frame once it is full."""
        before = box.byte_count
        box.pack_rows()
        if packed is not None:
            box.hold(packed, item_count)
        self.byte_count += box.byte_count - before
        if box.item_count >= self._frame_messages or box.byte_count >= FRAME_BYTES:
            self._flush(target, box)

    def _flush(self, target: int, box: _HeldMessages) -> None:
        self._send_content(target, box, [box.held, _NO_TREES, _NO_TREES])
        box.held, box.item_count, box.byte_count = [], 0, 0

    def _tell_acks(self) -> None:
        self._tell({}, self.acks)
        self.acks.clear()  # tasks of a chain share it

    def _tell(self, begun: dict[int, int], acks: dict[int, int]) -> None:
        """Sends each acker a frame about its roots."""
        for target in self._acker_tasks if begun or acks else ():
            its = [pairs if len(self._acker_tasks) == 1 else self._share(target, pairs) for pairs in (begun, acks)]
            if any(its):
                self._send_content(target, self._box(target), [[], *map(_columns_wire, its)])

    def _share(self, target: int, pairs: dict[int, int]) -> dict[int, int]:
        return {root: edges for root, edges in pairs.items() if self._acker_of(root) == target}

    def _send_content(self, target: int, box: _HeldMessages, content: list[Any]) -> None:
        frame = SealedFrame(self._wave_id, self._sender, box.sequence, target, FrameKind.MESSAGES, pack(content))
        box.sequence += 1
        self._send_frame(frame)


def pack_numbers(numbers: Iterable[int]) -> bytes:
    """Returns numbers of 64 bits as one bytes object."""
    listed = tuple(numbers)
    return struct.pack(f"<{len(listed)}Q", *listed)


def unpack_numbers(packed: bytes) -> tuple[int, ...]:
    """Inverse of `pack_numbers`."""
    return struct.unpack(f"<{len(packed) // 8}Q", packed)


def contents_of(frame: SealedFrame) -> list[StretchOrMessage]:
    """Returns the stretches and messages in a frame, in order, without the INITs and ACKs that `trees_of` returns.

    Raises:
        CodecError: the frame does not hold messages.
    """
    held, _, _ = _content(frame)
    return [_content_of(frame.sender, frame.target, unpack(packed)) for packed in held]


def messages_in(frame: SealedFrame) -> Iterator[Message]:
    """Yields everything in a frame as messages, tuples first; for an engine whose frames hold one message each.

    Raises:
        CodecError: the frame does not hold messages.
    """
    for each in contents_of(frame):
        yield from each.messages() if isinstance(each, TupleStretch) else (each,)
    for kind, (roots, edges) in zip((MessageKind.INIT, MessageKind.ACK), trees_of(frame), strict=True):
        for pair in zip(roots, edges, strict=True):
            yield Message(frame.sender, frame.target, kind, pair)


def trees_of(frame: SealedFrame) -> Trees:
    """Returns the INITs and ACKs in a frame for an acker.

    Raises:
        CodecError: the frame does not hold messages.
    """
    _, begun, acked = _content(frame)
    return Trees(_columns(begun), _columns(acked))


def _content(frame: SealedFrame) -> list[Any]:
    if frame.kind is not FrameKind.MESSAGES:
        raise CodecError(f"frame is of kind {frame.kind.name}, expected {FrameKind.MESSAGES.name}")
    content: list[Any] = unpack(frame.payload)
    return content


def _content_of(sender: int, target: int, wire: list[Any]) -> StretchOrMessage:
    if wire[0] != _STRETCH:
        return Message(sender, target, _KINDS[wire[0]], tuple(wire[1:]))
    _, stream_index, rows, roots, edges = wire
    if roots is None:
        trees = edges or [{} for _ in rows]
    else:
        trees = [{root: edge} for root, edge in zip(unpack_numbers(roots), unpack_numbers(edges), strict=True)]
    return TupleStretch(sender, target, stream_index, rows, trees)


def _trees_wire(trees: list[dict[int, int]]) -> tuple[bytes | None, Any]:
    """Returns roots and edges as columns if every tuple has one root, otherwise None and the trees, if any."""
    sizes = {*map(len, trees)}
    if sizes == {1}:
        return pack_numbers(chain.from_iterable(trees)), pack_numbers(chain.from_iterable(map(dict.values, trees)))
    return None, None if sizes == {0} else trees


def _columns_wire(pairs: dict[int, int]) -> list[bytes]:
    return [pack_numbers(pairs), pack_numbers(pairs.values())]


def _columns(wire: list[bytes]) -> RootEdges:
    roots, edges = map(unpack_numbers, wire)
    return roots, edges


def is_small(row: list[Any]) -> bool:
    """Returns whether values are certain to be packed without an error into few bytes."""
    room = SMALL_BYTES - NUMBER_BYTES * len(row)
    for value in row:
        kind = type(value)
        if kind in _TEXTS:
            room -= len(value)
        elif kind not in _NUMBERS:
            return False
    return room >= 0
