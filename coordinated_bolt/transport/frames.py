"""Frames: the few large pieces in which tuples travel from one task to another.

A frame is a fixed header, which sorts as bytes by (attempt, source task, sequence), and a packed payload.
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

_HEADER = struct.Struct(">QQIIIB")
_CHECKSUM = struct.Struct(">I")
NOWHERE = -1
_PAYLOAD_START = _HEADER.size + _CHECKSUM.size


class FrameKind(IntEnum):
    """What a frame carries."""

    REGULAR = 1
    """Tuples: a list of runs [stream index, rows]."""
    COORD = 2
    """How many tuples the source sent to the target for the attempt."""
    META = 3
    """Metadata cut by an emitter, on its way to be stored."""
    ACK = 4
    """A processing task's report to the acker."""
    VERDICT = 5
    """A commit task's report to the driver."""
    MESSAGES = 6
    """Messages of a plain topology, each packed by itself."""
    FAILURE = 7
    """An exception of a plain topology's user code, on its way to the driver."""
    METRICS = 8
    """The metrics of a plain topology's bolt task, on their way to the driver."""


class Frame(NamedTuple):
    """One frame, unpacked.

    Attributes:
        attempt: the attempt it belongs to.
        source: task id of the sender.
        sequence: position among the frames of this attempt from this source to this target, from 0.
        target: task id of the receiver.
        kind: what the payload holds.
        payload: content, packed by the codec.
    """

    attempt: TransactionAttempt
    source: int
    sequence: int
    target: int
    kind: FrameKind
    payload: bytes


def pack_frame(frame: Frame) -> bytes:
    """Returns header, checksum and payload as bytes."""
    txid, attempt_id = frame.attempt.txid, frame.attempt.attempt_id
    header = _HEADER.pack(txid, attempt_id, frame.source, frame.sequence, frame.target, frame.kind)
    return header + _CHECKSUM.pack(crc32(frame.payload, crc32(header))) + frame.payload


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
    """
    if len(packed) < _PAYLOAD_START:
        raise CodecError(f"frame of {counted(len(packed), 'byte')} is shorter than its header")
    payload = packed[_PAYLOAD_START:]
    (checksum,) = _CHECKSUM.unpack_from(packed, _HEADER.size)
    if checksum != crc32(payload, crc32(packed[: _HEADER.size])):
        raise CodecError("frame is damaged: its checksum does not match its bytes")
    txid, attempt_id, source, sequence, target, kind = _HEADER.unpack_from(packed)
    return Frame(TransactionAttempt(txid, attempt_id), source, sequence, target, FrameKind(kind), payload)
