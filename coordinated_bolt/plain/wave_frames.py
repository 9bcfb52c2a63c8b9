"""Frames of a plain topology: the messages of one wave, and what its tasks tell the driver.

Their header is that of `frames`: they sort as bytes by (wave, sender task, sequence), and `frame_target` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from coordinated_bolt.transport.frames import open_frame, seal_frame


@dataclass(frozen=True, slots=True, order=True)
class WaveId:
    """One wave of a plain topology's run.

    Attributes:
        number: number of the wave in its run, from 1.
        draw_id: 64 random bits; they distinguish the wave from those of other runs, and seed its bolts' random draws.
    """

    number: int
    draw_id: int

    def __str__(self) -> str:
        return f"wave {self.number}:{self.draw_id:016x}"


class WaveFrameKind(IntEnum):
    """What a frame of a wave carries; its values differ from those of `FrameKind`."""

    MESSAGES = 6
    """Messages; see `message_packer`."""
    FAILURE = 7
    """An exception of user code, on its way to the driver."""
    METRICS = 8
    """The metrics of a bolt task, on their way to the driver."""
    ACKED = 9
    """Roots of the trees that are complete, on their way from an acker to the driver."""


class WaveFrame(NamedTuple):
    """One frame, unpacked.

    Attributes:
        wave_id: the wave it belongs to.
        sender: task id of the sender.
        sequence: position among the frames of this wave from this sender to this target, from 0.
        target: task id of the receiver.
        kind: what the payload is.
        payload: packed by the codec.
    """

    wave_id: WaveId
    sender: int
    sequence: int
    target: int
    kind: WaveFrameKind
    payload: bytes


def pack_wave_frame(frame: WaveFrame) -> bytes:
    """Returns header, checksum and payload as bytes."""
    wave_id = frame.wave_id
    header = (wave_id.number, wave_id.draw_id, frame.sender, frame.sequence, frame.target, frame.kind)
    return seal_frame(header, frame.payload)


def unpack_wave_frame(packed: bytes) -> WaveFrame:
    """Inverse of `pack_wave_frame`.

    Raises:
        CodecError: the frame is truncated, or one of its bytes has changed.
        ValueError: the frame belongs to an attempt.
    """
    (number, draw_id, sender, sequence, target, kind), payload = open_frame(packed)
    return WaveFrame(WaveId(number, draw_id), sender, sequence, target, WaveFrameKind(kind), payload)
