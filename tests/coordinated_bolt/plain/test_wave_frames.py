"""Frames of a plain wave and blocks of attempts share a header, and are never taken for each other."""

from __future__ import annotations

import pytest

from coordinated_bolt.plain.wave_frames import (
    WaveFrame,
    WaveFrameKind,
    WaveId,
    pack_wave_frame,
    unpack_wave_frame,
)
from coordinated_bolt.transport.blocks import Block, pack_block, unpack_block
from coordinated_bolt.transport.frames import FrameKind, frame_target
from state.codec import CodecError

FRAME = WaveFrame(WaveId(3, 2**64 - 1), 1, 4, 2, WaveFrameKind.MESSAGES, b"messages")


def test_a_frame_comes_out_as_it_went_in():
    packed = pack_wave_frame(FRAME)

    assert unpack_wave_frame(packed) == FRAME
    assert frame_target(packed) == 2


def test_frames_sort_as_bytes_by_wave_sender_and_sequence():
    frames = [
        FRAME._replace(wave_id=WaveId(number, draw_id), sender=source, sequence=sequence)
        for number in (1, 256)
        for draw_id in (0, 2**63)
        for source in (1, 300)
        for sequence in (0, 70_000)
    ]

    assert [unpack_wave_frame(packed) for packed in sorted(map(pack_wave_frame, reversed(frames)))] == frames


def test_a_changed_byte_is_found():
    packed = bytearray(pack_wave_frame(FRAME))
    packed[-1] ^= 1

    with pytest.raises(CodecError, match="checksum"):
        unpack_wave_frame(bytes(packed))


def test_a_frame_of_a_plain_wave_is_refused_as_a_block_and_the_other_way_round():
    block = pack_block(Block(3, 1, 4, 2, FrameKind.BLOCK, b"rows"))

    with pytest.raises(ValueError, match="6 is not a valid FrameKind"):
        unpack_block(pack_wave_frame(FRAME))
    with pytest.raises(ValueError, match="3 is not a valid WaveFrameKind"):
        unpack_wave_frame(block)


def test_a_wave_id_says_that_it_is_one():
    assert str(WaveId(3, 255)) == "wave 3:00000000000000ff"
