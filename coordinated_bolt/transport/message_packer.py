"""What one task of a plain topology sends during one wave: messages, collected per target and framed.

Small messages are packed in portions, since packing one costs more than all of its values. What ackers are told
travels as two columns, roots and edges, and a task tells an acker only once a frame about each root: the xor of all its
acks, which is all that an acker makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from coordinated_bolt.transport.messages import Message, MessageKind
from coordinated_bolt.transport.outbox import FRAME_TUPLES, check_tuple_size
from coordinated_bolt.transport.wave_frames import WaveFrame, WaveFrameKind, WaveId
from state.codec import CodecError, pack, unpack

FRAME_BYTES = 4 * 1024 * 1024
"""A frame is sent once it holds this many bytes, far below the codec's limit."""
PORTION = 64
"""Small messages packed together."""
SMALL_BYTES = 1024
"""Values of a message that take no more than about this much are small."""
NUMBER_BYTES = 9
"""What a number takes at most, as long as it has 64 bits."""
EDGE_BYTES = 2 * NUMBER_BYTES
"""What a root and its edge take."""

_NUMBERS = frozenset({int, float, bool, type(None)})
_TEXTS = frozenset({str, bytes})
_KINDS = {int(kind): kind for kind in MessageKind}


class Trees(NamedTuple):
    """What a frame tells an acker about trees.

    Attributes:
        begun: (root, xor of the first edges) of every INIT.
        acked: (root, xor of the edges of all ACKs).
    """

    begun: list[tuple[int, int]]
    acked: list[tuple[int, int]]


class _TargetBox:
    """Messages on their way to one target."""

    __slots__ = ("acks", "begun", "byte_count", "held", "message_count", "portion", "sequence")

    def __init__(self) -> None:
        self.sequence = 0
        self.clear()

    def clear(self) -> None:
        self.portion: list[list[Any]] = []
        self.held: list[bytes] = []
        self.begun: list[tuple[int, int]] = []
        self.acks: dict[int, int] = {}
        self.message_count = 0
        self.byte_count = 0


class MessagePacker:
    """Packs the messages one task sends for one wave into frames.

    Args:
        wave_id: the wave.
        sender: task id of the sender.
        send: takes each finished frame.
        frame_messages: most messages in a frame; 1 sends each message when it is added.

    Attributes:
        byte_count: about the size of all messages added so far.
    """

    def __init__(
        self, wave_id: WaveId, sender: int, send: Callable[[WaveFrame], None], frame_messages: int = FRAME_TUPLES
    ) -> None:
        self._wave_id, self._sender, self._send = wave_id, sender, send
        self._frame_messages = frame_messages
        self._boxes: dict[int, _TargetBox] = {}
        self.byte_count = 0

    def add(self, message: Message) -> None:
        """Sends one message of the task.

        Raises:
            CodecError: a value cannot travel or is too large; raised here, where the emitter can see it.
        """
        _, target, kind, payload = message
        box = self._boxes.get(target)
        if box is None:
            box = self._boxes[target] = _TargetBox()
        size = EDGE_BYTES
        if kind is MessageKind.ACK:
            root, edges = payload
            box.acks[root] = box.acks.get(root, 0) ^ edges
        elif kind is MessageKind.INIT:
            box.begun.append(payload)
        else:
            size = self._add_whole(box, kind, payload)
        box.message_count += 1
        box.byte_count += size
        self.byte_count += size
        if box.message_count >= self._frame_messages or box.byte_count >= FRAME_BYTES:
            self._flush(target, box)

    def close(self) -> None:
        """Sends the remaining messages."""
        for target, box in self._boxes.items():
            if box.message_count:
                self._flush(target, box)

    def _add_whole(self, box: _TargetBox, kind: MessageKind, payload: tuple[Any, ...]) -> int:
        """Takes a message that the receiver is to see as it is; returns its size, which is a guess if it is small."""
        wire = [int(kind), *payload]
        room = _room_left(payload[1]) if kind is MessageKind.TUPLE else -1
        if room >= 0:
            box.portion.append(wire)
            if len(box.portion) >= PORTION:
                _pack_portion(box)
            return SMALL_BYTES - room + EDGE_BYTES * len(payload[2])
        packed = pack([wire])
        check_tuple_size(packed)
        _pack_portion(box)
        box.held.append(packed)
        return len(packed)

    def _flush(self, target: int, box: _TargetBox) -> None:
        _pack_portion(box)
        payload = pack([box.held, _columns(box.begun), _columns(box.acks.items())])
        frame = WaveFrame(self._wave_id, self._sender, box.sequence, target, WaveFrameKind.MESSAGES, payload)
        box.sequence += 1
        box.clear()
        self._send(frame)


def messages_of(frame: WaveFrame) -> list[Message]:
    """Returns the messages of a frame for a bolt, in the order they were added; without what `trees_of` returns.

    Raises:
        CodecError: the frame does not hold messages.
    """
    held, _, _ = _content(frame)
    sender, target = frame.sender, frame.target
    return [
        Message(sender, target, _KINDS[wire[0]], tuple(wire[1:]))
        for wire in chain.from_iterable(unpack(packed) for packed in held)
    ]


def trees_of(frame: WaveFrame) -> Trees:
    """Returns what a frame tells an acker of trees that begin and grow.

    Raises:
        CodecError: the frame does not hold messages.
    """
    _, begun, acked = _content(frame)
    return Trees(_pairs(begun), _pairs(acked))


def _content(frame: WaveFrame) -> list[Any]:
    if frame.kind is not WaveFrameKind.MESSAGES:
        raise CodecError(f"frame is of kind {frame.kind.name}, expected {WaveFrameKind.MESSAGES.name}")
    content: list[Any] = unpack(frame.payload)
    return content


def _columns(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    return [list(column) for column in zip(*pairs, strict=True)]


def _pairs(columns: list[list[int]]) -> list[tuple[int, int]]:
    return list(zip(*columns, strict=True)) if columns else []


def _pack_portion(box: _TargetBox) -> None:
    if box.portion:
        box.held.append(pack(box.portion))
        box.portion = []


def _room_left(values: Sequence[Any]) -> int:
    """How much smaller values are than they may be, to be surely packed without an error into few bytes."""
    room = SMALL_BYTES - NUMBER_BYTES * len(values)
    for value in values:
        kind = type(value)
        if kind in _TEXTS:
            room -= len(value)
        elif kind not in _NUMBERS:
            return -1
    return room
