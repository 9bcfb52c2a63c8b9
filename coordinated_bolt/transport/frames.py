"""Frames: the tuples of one attempt from one task to another, in few large pieces; and the sealing of bytes.

Within a process frames travel unsealed, one by one (see `SingleFrames`); between processes those of a whole wave travel
together (see `blocks`). All bytes between processes are sealed: a fixed header, which names the receiver, a checksum
and the payload.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from state.attempt import TransactionAttempt
from state.codec import CodecError
from state.printable import counted

_HEADER = struct.Struct(">QQIIIB")
_CHECKSUM = struct.Struct(">I")
NOWHERE = -1
_PAYLOAD_START = _HEADER.size + _CHECKSUM.size


class WaveId(NamedTuple):
    """The wave to which a sealed frame belongs.

    Attributes:
        number: number of a plain topology's wave in its run, from 1; 0 for a wave of attempts.
        draw_id: 64 bits that distinguish the wave from all others: the digest of its attempts, see `WaveAttempts`, or
            random ones, which also seed a plain wave's bolts.
    """

    number: int
    draw_id: int

    def __str__(self) -> str:
        return f"wave {self.number}:{self.draw_id:016x}"


class FrameKind(IntEnum):
    """The content of a frame. Only the first two travel unsealed."""

    REGULAR = 1
    """Tuples: a list of stretches [stream index, rows]; the rows may be columns."""
    COORD = 2
    """How many tuples the sender sent to the target for the attempt."""
    BLOCK = 3
    """The frames and counts of many attempts."""
    ACK = 4
    """A processing task's report to the acker, on one attempt or many."""
    VERDICT = 5
    """A commit task's report to the driver."""
    MESSAGES = 6
    """Messages of a plain topology; see `message_packer`."""
    FAILURE = 7
    """An exception of a plain topology's user code, sent to the driver."""
    METRICS = 8
    """The metrics of a plain topology's bolt task, sent to the driver."""


class Frame(NamedTuple):
    """One frame, or one report, of one attempt.

    Attributes:
        attempt: the attempt it belongs to.
        sender: task id of the sender.
        sequence: position among the frames of this attempt from this sender to this target, from 0.
        target: task id of the receiver.
        kind: the kind of the payload.
        payload: content, packed by the codec.
    """

    attempt: TransactionAttempt
    sender: int
    sequence: int
    target: int
    kind: FrameKind
    payload: bytes


class SealedFrame(NamedTuple):
    """A frame from one task to another, or to the driver, in a wave; only its payload is still packed.

    Sealed frames sort as bytes by (wave, sender, sequence).

    Attributes:
        wave_id: the wave it belongs to.
        sender: task id of the sender.
        sequence: position among the frames of the wave from this sender to this target, from 0.
        target: task id of the receiver.
        kind: the kind of the payload.
        payload: content, packed by the codec.
    """

    wave_id: WaveId
    sender: int
    sequence: int
    target: int
    kind: FrameKind
    payload: bytes


def seal_frame(frame: SealedFrame) -> bytes:
    """Returns header, checksum and payload as bytes."""
    packed = _HEADER.pack(*frame.wave_id, frame.sender, frame.sequence, frame.target, frame.kind)
    return packed + _CHECKSUM.pack(crc32(frame.payload, crc32(packed))) + frame.payload


def frame_target(packed: bytes) -> int:
    """Returns the task id of the receiver without unpacking the rest; `NOWHERE` if the frame is truncated."""
    if len(packed) < _PAYLOAD_START:
        return NOWHERE
    target: int = _HEADER.unpack_from(packed)[4]
    return target


def open_frame(packed: bytes) -> SealedFrame:
    """Inverse of `seal_frame`.

    Raises:
        CodecError: the frame is truncated, or one of its bytes has changed.
        ValueError: the frame's kind is unknown.
    """
    if len(packed) < _PAYLOAD_START:
        raise CodecError(f"frame of {counted(len(packed), 'byte')} is shorter than its header")
    payload = packed[_PAYLOAD_START:]
    (checksum,) = _CHECKSUM.unpack_from(packed, _HEADER.size)
    if checksum != crc32(payload, crc32(packed[: _HEADER.size])):
        raise CodecError("frame is damaged: its checksum does not match its bytes")
    number, draw_id, sender, sequence, target, kind = _HEADER.unpack_from(packed)
    return SealedFrame(WaveId(number, draw_id), sender, sequence, target, FrameKind(kind), payload)
