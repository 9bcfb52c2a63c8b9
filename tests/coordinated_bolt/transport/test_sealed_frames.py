"""Whatever crosses a process is sealed in one way, and is never taken for something else."""

from __future__ import annotations

import pytest

from coordinated_bolt.transport.blocks import Arrived, Inbox
from coordinated_bolt.transport.frames import FrameKind, SealedFrame, WaveId, open_frame, seal_frame
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from coordinator.plain.tasks.message_packer import contents_of
from state.codec import CodecError
from tests.support.tasks.wirings import attempt

FRAME = SealedFrame(WaveId(3, 2**64 - 1), 1, 4, 2, FrameKind.MESSAGES, b"messages")


def test_frames_sort_as_bytes_by_wave_sender_and_sequence():
    frames = [
        FRAME._replace(wave_id=WaveId(number, draw_id), sender=source, sequence=sequence)
        for number in (1, 256)
        for draw_id in (0, 2**63)
        for source in (1, 300)
        for sequence in (0, 70_000)
    ]

    assert [open_frame(packed) for packed in sorted(map(seal_frame, reversed(frames)))] == frames


def test_a_frame_of_a_plain_wave_is_dropped_as_a_block_and_a_block_refused_as_messages():
    wave = WaveAttempts([attempt(1)])
    assert Inbox([seal_frame(FRAME._replace(wave_id=wave.key))], wave).take(attempt(1)) == Arrived()
    with pytest.raises(CodecError, match="frame is of kind BLOCK, expected MESSAGES"):
        contents_of(FRAME._replace(kind=FrameKind.BLOCK))


@pytest.mark.parametrize("kind", [0, max(FrameKind) + 1])
def test_a_frame_of_no_kind_is_refused(kind):
    with pytest.raises(ValueError, match=f"{kind} is not a valid FrameKind"):
        open_frame(seal_frame(FRAME._replace(kind=kind)))


def test_a_wave_id_says_that_it_is_one():
    assert str(WaveId(3, 255)) == "wave 3:00000000000000ff"
