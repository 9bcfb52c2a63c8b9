"""A frame that would be too large travels in parts, the same ones every time; a tuple that is too large is refused."""

from __future__ import annotations

import pytest

from coordinated_bolt.transport import outbox as outbox_module
from coordinated_bolt.transport.frames import Frame, FrameKind, WaveId
from coordinated_bolt.transport.outbox import FrameOutbox, SingleFrames
from coordinator.plain.tasks.message_packer import MessagePacker
from state.codec import CodecError, unpack
from tests.support.tasks.messages import tuple_message
from tests.support.tasks.wirings import attempt


def sent_by(rows_by_stream):
    sent: list[Frame] = []
    box = FrameOutbox(attempt(1), 1, (2,), SingleFrames(sent.append))
    for stream, rows in rows_by_stream:
        box.add_all(2, stream, rows)
    return sent, box.close(), box.transferred


ROWS = [(0, [["a" * 90, n] for n in range(7)]), (1, [["b" * 90, n] for n in range(6)]), (0, [["c" * 90, 0]])]


def test_a_large_frame_is_sent_in_parts_that_hold_every_tuple_once_and_in_order(monkeypatch):
    whole, _, transferred = sent_by(ROWS)
    monkeypatch.setattr(outbox_module, "FRAME_BYTES_MAX", 250)

    parts, edges, of_parts = sent_by(ROWS)
    again, same_edges, _ = sent_by(ROWS)

    assert len(whole) == 2
    assert len(parts) > 6
    assert all(len(frame.payload) <= 250 for frame in parts)
    assert [frame.sequence for frame in parts] == list(range(len(parts)))
    rows = [
        (stream, row) for f in parts if f.kind is FrameKind.REGULAR for stream, run in unpack(f.payload) for row in run
    ]
    assert rows == [(stream, row) for stream, run in ROWS for row in run]
    assert unpack(parts[-1].payload) == 14
    assert (parts, edges) == (again, same_edges)
    assert of_parts == transferred == {0: 8, 1: 6}


def test_a_tuple_nobody_could_receive_is_refused_where_it_is_emitted(monkeypatch):
    monkeypatch.setattr(outbox_module, "FRAME_BYTES_MAX", 100)
    monkeypatch.setattr(outbox_module, "TUPLE_BYTES_MAX", 200)
    with pytest.raises(CodecError, match=r"emitted tuple has 3\d\d bytes, more than the limit of 200; emit smaller"):
        sent_by([(0, [["a"], ["b" * 300]])])


def test_a_message_nobody_could_receive_is_refused_where_it_is_emitted(monkeypatch):
    monkeypatch.setattr(outbox_module, "TUPLE_BYTES_MAX", 2000)
    outbox = MessagePacker(WaveId(1, 1), 1, lambda frame: None)
    outbox.send(tuple_message(1, 2, stream_index=0, values=["a"], roots={}))
    with pytest.raises(CodecError, match=r"emitted tuple has 3,0\d\d bytes, more than the limit of 2,000"):
        outbox.send(tuple_message(1, 2, stream_index=0, values=["b" * 3000], roots={}))
