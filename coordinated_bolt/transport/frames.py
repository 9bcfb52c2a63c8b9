"""Frames: the few large pieces in which tuples travel from one task to another.

A frame is a fixed header, which sorts as bytes by (attempt, sender, sequence), and a packed payload.
The order matters: an engine delivers frames in any order, but a stage executes them in this one, so a
recomputed stage does the same again.
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
"""Identity (two numbers of 64 bits), sender, sequence, target, kind."""
_HEADER = struct.Struct(">QQIIIB")
_CHECKSUM = struct.Struct(">I")
NOWHERE = -1
_PAYLOAD_START = _HEADER.size + _CHECKSUM.size


class FrameKind(IntEnum):
    """What a frame carries."""

    REGULAR = 1
    """Tuples: a list of stretches [stream index, rows], where the rows may be held as columns."""
    COORD = 2
    """How many tuples the sender sent to the target for the attempt."""
    META = 3
    """Metadata cut by an emitter, on its way to be stored."""
    ACK = 4
    """A processing task's report to the acker."""
    VERDICT = 5
    """A commit task's report to the driver."""


class Frame(NamedTuple):
    """One frame, unpacked.

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


def pack_frame(frame: Frame) -> bytes:
    """Returns header, checksum and payload as bytes."""
    attempt = frame.attempt
    header = (attempt.txid, attempt.attempt_id, frame.sender, frame.sequence, frame.target, frame.kind)
    return seal_frame(header, frame.payload)


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


def unpack_frame(packed: bytes) -> Frame:
    """Inverse of `pack_frame`.

    Raises:
        CodecError: the frame is truncated, or one of its bytes has changed.
        ValueError: the frame is one of a plain topology's wave.
    """
    (txid, attempt_id, sender, sequence, target, kind), payload = open_frame(packed)
    return Frame(TransactionAttempt(txid, attempt_id), sender, sequence, target, FrameKind(kind), payload)


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
