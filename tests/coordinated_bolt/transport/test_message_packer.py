"""Messages travel in few frames, in order, and nothing that cannot travel gets into one."""

from __future__ import annotations

import pytest

from coordinated_bolt.transport import message_packer as module
from coordinated_bolt.transport.message_packer import MessagePacker, messages_of
from coordinated_bolt.transport.messages import MessageKind, edges_message, tuple_message
from coordinated_bolt.transport.wave_frames import WaveFrame, WaveFrameKind, WaveId
from state.codec import CodecError

WAVE = WaveId(3, 7)


def message(target, value):
    return tuple_message(1, target, stream_index=0, values=[value], roots={(1 << 64) - 1: 5})


def test_messages_come_out_as_they_went_in_target_by_target():
    sent: list[WaveFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append)
    init = edges_message(MessageKind.INIT, 1, 9, root=(1 << 64) - 1, edges=5)
    given = [message(2, (1, "a")), message(3, b"\xff"), init, message(2, None)]
    for each in given:
        packer.add(each)
    assert sent == []
    packer.close()
    assert [(f.wave_id, f.sender, f.sequence, f.target, f.kind) for f in sent] == [
        (WAVE, 1, 0, target, WaveFrameKind.MESSAGES) for target in (2, 3, 9)
    ]
    assert [messages_of(frame) for frame in sent] == [[given[0], given[3]], [given[1]], [init]]


def test_a_frame_is_sent_once_it_is_full_and_the_next_one_follows_it():
    sent: list[WaveFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append, frame_messages=2)
    for number in range(5):
        packer.add(message(2, number))
    assert [frame.sequence for frame in sent] == [0, 1]
    packer.close()
    assert [[m.payload[1] for m in messages_of(frame)] for frame in sent] == [[[0], [1]], [[2], [3]], [[4]]]
    assert [frame.sequence for frame in sent] == [0, 1, 2]


def test_a_frame_is_sent_once_it_is_large():
    sent: list[WaveFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append)
    for _ in range(3):
        packer.add(message(2, "x" * (module.FRAME_BYTES // 2)))
    assert [len(messages_of(frame)) for frame in sent] == [2]
    assert packer.byte_count > module.FRAME_BYTES * 3 // 2


def test_what_cannot_travel_is_refused_at_once_and_leaves_no_trace():
    sent: list[WaveFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append)
    packer.add(message(2, 1))
    with pytest.raises(CodecError, match="cannot be sent or stored"):
        packer.add(message(2, object()))
    packer.add(message(2, 2))
    packer.close()
    assert [[m.payload[1] for m in messages_of(frame)] for frame in sent] == [[[1], [2]]]


def test_other_frames_hold_no_messages():
    with pytest.raises(CodecError, match="frame is of kind FAILURE, expected MESSAGES"):
        messages_of(WaveFrame(WAVE, 1, 0, 2, WaveFrameKind.FAILURE, b""))
