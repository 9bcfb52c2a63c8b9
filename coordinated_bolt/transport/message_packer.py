"""What one task of a plain topology sends during one wave: messages, collected per target and framed."""

from __future__ import annotations

from collections.abc import Callable

from coordinated_bolt.transport.messages import Message
from coordinated_bolt.transport.outbox import FRAME_TUPLES, check_tuple_size
from coordinated_bolt.transport.wave_frames import WaveFrame, WaveFrameKind, WaveId
from state.codec import CodecError, pack, unpack

FRAME_BYTES = 4 * 1024 * 1024
"""A frame is sent once it holds this many bytes, far below the codec's limit."""


class _TargetBox:
    """Packed messages on their way to one target."""

    __slots__ = ("byte_count", "held", "sequence")

    def __init__(self) -> None:
        self.sequence = 0
        self.held: list[bytes] = []
        self.byte_count = 0


class MessagePacker:
    """Packs the messages one task sends for one wave into frames.

    Args:
        wave_id: the wave.
        sender: task id of the sender.
        send: takes each finished frame.
        frame_messages: most messages in a frame; 1 sends each message when it is added.

    Attributes:
        byte_count: size of all messages added so far.
    """

    def __init__(
        self, wave_id: WaveId, sender: int, send: Callable[[WaveFrame], None], frame_messages: int = FRAME_TUPLES
    ) -> None:
        self._wave_id, self._sender, self._send = wave_id, sender, send
        self._frame_messages = frame_messages
        self._boxes: dict[int, _TargetBox] = {}
        self.byte_count = 0

    def add(self, message: Message) -> None:
        """Sends one message.

        Raises:
            CodecError: a value cannot travel or is too large; raised here, where the emitter can see it.
        """
        packed = pack(message.to_wire())
        check_tuple_size(packed)
        box = self._boxes.get(message.target)
        if box is None:
            box = self._boxes[message.target] = _TargetBox()
        box.held.append(packed)
        box.byte_count += len(packed)
        self.byte_count += len(packed)
        if len(box.held) >= self._frame_messages or box.byte_count >= FRAME_BYTES:
            self._flush(message.target, box)

    def close(self) -> None:
        """Sends the remaining messages."""
        for target, box in self._boxes.items():
            if box.held:
                self._flush(target, box)

    def _flush(self, target: int, box: _TargetBox) -> None:
        frame = WaveFrame(self._wave_id, self._sender, box.sequence, target, WaveFrameKind.MESSAGES, pack(box.held))
        box.sequence += 1
        box.held, box.byte_count = [], 0
        self._send(frame)


def messages_of(frame: WaveFrame) -> list[Message]:
    """Returns the messages of a frame, in the order they were added.

    Raises:
        CodecError: the frame does not hold messages.
    """
    if frame.kind is not WaveFrameKind.MESSAGES:
        raise CodecError(f"frame is of kind {frame.kind.name}, expected {WaveFrameKind.MESSAGES.name}")
    return [Message.from_wire(unpack(packed)) for packed in unpack(frame.payload)]
