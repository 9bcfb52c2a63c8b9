"""Messages travel in few frames, in order, and nothing that cannot travel gets into one."""

from __future__ import annotations

import pytest

from coordinated_bolt.transport.frames import FrameKind, SealedFrame, WaveId
from coordinator.plain.tasks import message_packer as module
from coordinator.plain.tasks.message_packer import MessagePacker, contents_of, trees_of
from coordinator.plain.tasks.messages import MessageKind, TupleStretch, tree_message
from state.codec import CodecError
from tests.support.tasks.messages import edges_message, tuple_message
from tests.support.tasks.wire import messages_of

WAVE = WaveId(3, 7)


def packed(*messages, **options):
    """The frames in which messages travel."""
    sent: list[SealedFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append, **options)
    for each in messages:
        packer.send(each)
    packer.close()
    return sent


def values_in(frame):
    return [each.payload[1][0] for each in messages_of(frame)]


def message(target, value):
    return tuple_message(1, target, stream_index=0, values=[value], roots={(1 << 64) - 1: 5})


def test_messages_come_out_as_they_went_in_target_by_target():
    fail = tree_message(MessageKind.FAIL, 1, 9, (1 << 64) - 1)
    given = [message(2, (1, "a")), message(3, b"\xff"), fail, message(2, None)]
    sent = packed(*given)
    assert [(f.wave_id, f.sender, f.sequence, f.target, f.kind) for f in sent] == [
        (WAVE, 1, 0, target, FrameKind.MESSAGES) for target in (2, 3, 9)
    ]
    assert [messages_of(frame) for frame in sent] == [[given[0], given[3]], [given[1]], [fail]]


def test_an_acker_is_told_of_each_tree_once_a_frame():
    large = (1 << 64) - 1
    init = edges_message(MessageKind.INIT, 1, 9, root=large, edges=5)
    acks = [
        edges_message(MessageKind.ACK, 1, 9, root=root, edges=edges)
        for root, edges in ((7, 1), (7, large), (7, 2), (8, 4))
    ]
    sent = packed(init, *acks, acker_tasks=(9,))
    nothing = ((), ())
    assert [trees_of(frame) for frame in sent] == [
        (((large,), (5,)), nothing),
        (nothing, ((7, 8), (1 ^ large ^ 2, 4))),
    ]
    assert [messages_of(frame) for frame in sent] == [[], []]


@pytest.mark.parametrize(
    "trees",
    [[{}, {}], [{7: 70}, {8: 80}], [{7: 70}, {}], [{7: 70, 8: 80}, {9: 90}]],
    ids=["untracked", "one root each", "some tracked", "several roots"],
)
def test_tuples_keep_their_trees(trees):
    sent: list[SealedFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append)
    for stream_index in (0, 0, 3):
        for roots in trees:
            packer.add(2, stream_index, [stream_index], dict(roots))
    packer.close()

    assert contents_of(sent[0]) == [
        TupleStretch(1, 2, 0, [[0]] * 4, trees * 2),
        TupleStretch(1, 2, 3, [[3]] * 2, trees),
    ]


def test_tuples_keep_their_order_however_large_or_small_they_are():
    values = [0, "x" * 5000, 1, 2, [3], *range(200), {"k": 1}, b"y" * 2000, None]
    sent = packed(*(message(2, value) for value in values))
    assert [value for frame in sent for value in values_in(frame)] == values


def test_many_short_texts_count_towards_the_size_of_a_frame():
    text = "x" * (module.SMALL_BYTES // 2)
    sent = packed(*[message(2, text)] * (3 * module.FRAME_BYTES // len(text)), frame_messages=1_000_000)
    assert len(sent) >= 3
    assert max(len(frame.payload) for frame in sent) < 2 * module.FRAME_BYTES


def test_a_frame_is_sent_once_it_is_full_and_the_next_one_follows_it():
    sent: list[SealedFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append, frame_messages=2)
    for number in range(5):
        packer.send(message(2, number))
    assert [frame.sequence for frame in sent] == [0, 1]
    packer.close()
    assert [values_in(frame) for frame in sent] == [[0, 1], [2, 3], [4]]
    assert [frame.sequence for frame in sent] == [0, 1, 2]


def test_a_frame_is_sent_once_it_is_large():
    sent: list[SealedFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append)
    for _ in range(3):
        packer.send(message(2, "x" * (module.FRAME_BYTES // 2)))
    assert [len(messages_of(frame)) for frame in sent] == [2]
    assert packer.byte_count > module.FRAME_BYTES * 3 // 2


def test_what_cannot_travel_is_refused_at_once_and_leaves_no_trace():
    sent: list[SealedFrame] = []
    packer = MessagePacker(WAVE, 1, sent.append)
    packer.send(message(2, 1))
    with pytest.raises(CodecError, match="cannot be sent or stored"):
        packer.send(message(2, object()))
    packer.send(message(2, 2))
    packer.close()
    assert [values_in(frame) for frame in sent] == [[1, 2]]


def test_other_frames_hold_no_messages():
    with pytest.raises(CodecError, match="frame is of kind FAILURE, expected MESSAGES"):
        messages_of(SealedFrame(WAVE, 1, 0, 2, FrameKind.FAILURE, b""))
