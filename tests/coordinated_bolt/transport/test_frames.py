"""Frames: what is packed is unpacked, they sort by what they belong to, and no bit changes unnoticed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.transport.edges import EdgeDigest, batch_edge, handed_edge
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack
from tests.support.tasks.wirings import attempt

A = attempt(1)
FRAME = Frame(TransactionAttempt(3, 2**64 - 1), 7, 2, 9, FrameKind.REGULAR, pack([[0, [["word"]]]]))

attempts = st.builds(TransactionAttempt, st.integers(1, 2**53 - 1), st.integers(0, 2**64 - 1))
tasks = st.integers(0, 2**32 - 1)
frames = st.builds(Frame, attempts, tasks, tasks, tasks, st.sampled_from(FrameKind), st.binary(max_size=40))


@settings(deadline=None)
@given(frames)
def test_a_frame_survives_packing(frame):
    packed = pack_frame(frame)
    assert unpack_frame(packed) == frame
    assert frame_target(packed) == frame.target


@settings(deadline=None)
@given(st.lists(frames, max_size=8))
def test_packed_frames_sort_by_attempt_then_source_then_sequence(several):
    unpacked = [unpack_frame(packed) for packed in sorted(map(pack_frame, several))]
    order = [(f.attempt, f.sender, f.sequence, f.target, f.kind) for f in unpacked]
    assert order == sorted(order)


def test_faults_33_every_flipped_bit_is_noticed():
    packed = pack_frame(FRAME)
    for bit in range(len(packed) * 8):
        damaged = bytearray(packed)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CodecError, match="checksum does not match"):
            unpack_frame(bytes(damaged))


def test_every_torn_frame_is_noticed():
    packed = pack_frame(FRAME)
    for length in range(len(packed)):
        with pytest.raises(CodecError, match=r"checksum does not match|shorter than its header"):
            unpack_frame(packed[:length])
    with pytest.raises(CodecError, match="checksum does not match"):
        unpack_frame(packed + b"\0")


@settings(deadline=None)
@given(st.lists(frames, max_size=6), st.lists(st.binary(max_size=60), max_size=4), st.randoms(use_true_random=False))
def test_an_inbox_gives_the_good_frames_of_each_attempt_in_order_and_drops_the_damaged(good, damaged, random):
    packed = [*map(pack_frame, good), *damaged]
    random.shuffle(packed)
    inbox = Inbox(packed)
    for one in {frame.attempt for frame in good}:
        taken = inbox.take(one)
        assert taken == [unpack_frame(p) for p in sorted(map(pack_frame, good)) if unpack_frame(p).attempt == one]
        assert inbox.take(one) == []


def test_a_frame_of_an_unknown_kind_is_dropped():
    packed = pack_frame(FRAME._replace(kind=99))  # type: ignore[arg-type] # what a newer version may send
    inbox = Inbox([packed])
    assert inbox.take(FRAME.attempt) == []


def edge(*frames_and_counts, of=A, source=1, target=2):
    digest = EdgeDigest(of, source, target)
    for frame, tuple_count in frames_and_counts:
        digest.add(frame, tuple_count)
    return digest.edge_id()


def test_an_edge_depends_on_everything_it_stands_for():
    first, second = FRAME._replace(sequence=0), FRAME._replace(sequence=1, payload=b"other")
    edges = [
        edge((first, 1), (second, 1)),
        edge((second, 1), (first, 1)),
        edge((first, 1)),
        edge((first, 1), (first, 1)),
        edge((first, 1), (second, 2)),
        edge((first, 1), (second._replace(payload=b"othes"), 1)),
        edge((first, 1), (second._replace(sequence=2), 1)),
        edge((first, 1), (second._replace(kind=FrameKind.META), 1)),
        edge((first, 1), (second, 1), of=attempt(2)),
        edge((first, 1), (second, 1), of=attempt(1, 7)),
        edge((first, 1), (second, 1), source=3),
        edge((first, 1), (second, 1), target=3),
        edge((first, 1), (second, 1), source=2, target=1),
        edge(),
    ]
    assert len(set(edges)) == len(edges)
    assert 0 not in edges


def test_an_edge_tells_where_one_payload_ends_and_the_next_begins():
    """It must not be possible to move bytes from one frame to the next without a change."""
    parts = [(b"ab", b"c"), (b"a", b"bc"), (b"", b"abc"), (b"abc", b"")]
    edges = {
        edge(*[(FRAME._replace(sequence=n, payload=payload), 1) for n, payload in enumerate(pair)]) for pair in parts
    }
    assert len(edges) == len(parts)


def test_an_edge_may_be_asked_for_while_it_grows():
    digest = EdgeDigest(A, 1, 2)
    before = digest.edge_id()
    digest.add(FRAME, 1)
    assert digest.edge_id() != before
    assert digest.edge_id() == edge((FRAME, 1))
    assert digest.tuple_count == 1


def test_a_batch_edge_depends_on_attempt_task_and_metadata():
    edges = {
        batch_edge(A, 1, b"meta"),
        batch_edge(A, 2, b"meta"),
        batch_edge(A, 1, b"metb"),
        batch_edge(attempt(2), 1, b"meta"),
        batch_edge(attempt(1, 7), 1, b"meta"),
    }
    assert len(edges) == 5
