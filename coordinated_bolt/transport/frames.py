"""Frames: the tuples of one attempt from one task to another, in few large pieces; and how bytes are sealed.

On one process frames travel as they are, one by one (see `SingleFrames`); between processes those of a whole wave
travel together (see `blocks`). Whatever crosses a process is sealed: a fixed header, which names the receiver, a
checksum and the payload.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from state.attempt import TransactionAttempt
from state.codec import CodecError
from state.printable import counted

Header = tuple[int, int, int, int, int, int]
"""Identity of what it belongs to (two numbers of 64 bits), sender, sequence, target, kind."""
_HEADER = struct.Struct(">QQIIIB")
_CHECKSUM = struct.Struct(">I")
NOWHERE = -1
_PAYLOAD_START = _HEADER.size + _CHECKSUM.size


class FrameKind(IntEnum):
    """What a frame or a block carries."""

    REGULAR = 1
    """Tuples: a list of stretches [stream index, rows], where the rows may be held as columns."""
    COORD = 2
    """How many tuples the sender sent to the target for the attempt."""
    BLOCK = 3
    """The frames and counts of many attempts."""
    ACK = 4
    """A processing task's report to the acker, on one attempt or many."""
    VERDICT = 5
    """A commit task's report to the driver."""


class Frame(NamedTuple):
    """One frame, or one report, of one attempt.

    Attributes:
        attempt: the attempt it belongs to.
        sender: task id of the sender.
        sequence: position among the frames of this attempt from this sender to this target, from 0.
        target: task id of the receiver.
        kind: what the payload holds.
        payload: content, packed by the codec.
    """

    attempt: TransactionAttempt
    sender: int
    sequence: int
    target: int
    kind: FrameKind
    payload: bytes


def seal_frame(header: Header, payload: bytes) -> bytes:
    """Returns a frame of any kind as it travels."""
    packed = _HEADER.pack(*header)
    return packed + _CHECKSUM.pack(crc32(payload, crc32(packed))) + payload


def frame_target(packed: bytes) -> int:
    """Returns the task id of the receiver without unpacking the rest; `NOWHERE` if the frame is truncated."""
    if len(packed) < _PAYLOAD_START:
        return NOWHERE
    target: int = _HEADER.unpack_from(packed)[4]
    return target


def open_frame(packed: bytes) -> tuple[Header, bytes]:
    """Inverse of `seal_frame`.

    Raises:
        CodecError: the frame is truncated, or one of its bytes has changed.
    """
    if len(packed) < _PAYLOAD_START:
        raise CodecError(f"frame of {counted(len(packed), 'byte')} is shorter than its header")
    payload = packed[_PAYLOAD_START:]
    (checksum,) = _CHECKSUM.unpack_from(packed, _HEADER.size)
    if checksum != crc32(payload, crc32(packed[: _HEADER.size])):
        raise CodecError("frame is damaged: its checksum does not match its bytes")
    header: Header = _HEADER.unpack_from(packed)
    return header, payload
