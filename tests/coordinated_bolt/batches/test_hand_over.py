"""What is handed over in memory arrives as if it had travelled."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.batches.hand_over import HandOver, make_received
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.outbox import FrameOutbox, SingleFrames
from state.codec import CodecError, pack, unpack
from tests.support.tasks.wirings import attempt
from tests.support.values import mutables, values

HERE, INSIDE, OUTSIDE = 1, 2, 3


def received(rows):
    """The rows as their receiver has them."""
    copies = list(rows)
    make_received(copies)
    return copies


def typed(value: object) -> object:
    """A value with the types of all there is in it."""
    if isinstance(value, dict):
        return dict, [(typed(key), typed(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [typed(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value), [typed(item) for item in sorted(value, key=repr)]
    return type(value), repr(value)


@given(st.lists(st.lists(values, min_size=2, max_size=2)))
def test_values_have_the_types_the_codec_gives_them(rows):
    copies = received(rows)
    assert typed(copies) == typed(unpack(pack(rows)))
    assert not {*map(id, mutables(copies))} & {*map(id, mutables(rows))}


def test_a_row_that_is_sent_twice_is_received_as_two():
    row = ["word", 1]
    first, second = received([row, row])
    first[0] = "changed"
    assert (second, row) == (["word", 1], ["word", 1])


def test_a_time_zone_loses_its_name_as_in_a_frame():
    named = dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1), "home"))
    assert received([[named]])[0][0].tzname() == "UTC+01:00"


def test_a_tuple_too_large_for_a_frame_is_refused_here_too(monkeypatch):
    monkeypatch.setattr("coordinated_bolt.transport.outbox.TUPLE_BYTES_MAX", 100)
    with pytest.raises(CodecError, match=r"emitted tuple has 1,0.. bytes, more than the limit of 100"):
        received([[["x" * 1000]]])


def outbox(sent):
    handed = HandOver(attempt(1), HERE, INSIDE)
    return handed, FrameOutbox(attempt(1), HERE, [OUTSIDE], SingleFrames(sent.append), handed=[handed])


def test_rows_of_streams_that_take_turns_keep_their_order():
    handed, box = outbox([])
    for number, stream in enumerate((0, 0, 1, 0)):
        box.add(INSIDE, stream, [number])
    box.add_all(INSIDE, 0, [[4], [5]])
    box.close()
    assert handed.stretches == [(0, [[0], [1]]), (1, [[2]]), (0, [[3], [4], [5]])]
    assert handed.reported_count == 6


def test_rows_for_others_travel_in_frames():
    sent: list[Frame] = []
    handed, box = outbox(sent)
    box.add(OUTSIDE, 0, ["far"])
    box.add(INSIDE, 0, ["near"])
    box.add_all(OUTSIDE, 1, [["farther"]])
    edges = box.close()
    assert edges.keys() == {INSIDE, OUTSIDE}
    assert [frame.kind for frame in sent] == [FrameKind.REGULAR, FrameKind.COORD]
    assert unpack(sent[0].payload) == [[0, [["far"]]], [1, [["farther"]]]]
    assert handed.stretches == [(0, [["near"]])]
    assert box.transferred == {0: 2, 1: 1}


def test_nothing_is_reported_before_the_sender_has_closed():
    handed, box = outbox([])
    box.add(INSIDE, 0, ["row"])
    assert handed.reported_count is None
    assert box.transferred == {}


def test_a_row_after_the_count_is_refused():
    _, box = outbox([])
    box.close()
    with pytest.raises(RuntimeError, match="emitted after finish_batch had returned"):
        box.add(INSIDE, 0, ["late"])
    with pytest.raises(RuntimeError, match="emitted after finish_batch had returned"):
        box.add_all(INSIDE, 0, [["late"]])
