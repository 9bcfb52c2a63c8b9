"""Blocks: what tasks send for the attempts of a wave arrives attempt by attempt, or not at all."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.transport import blocks
from coordinated_bolt.transport.blocks import Arrived, BlockContent, BlockWriter, Inbox, PlacedFrame
from coordinated_bolt.transport.frames import FrameKind, SealedFrame, WaveId, frame_target, open_frame, seal_frame
from coordinated_bolt.transport.outbox import Sent
from coordinated_bolt.transport.wave_attempts import WaveAttempts, places_in
from state.codec import CodecError, pack
from tests.support.tasks.wirings import attempt

ATTEMPTS = [attempt(n) for n in range(1, 12)]
WAVE = WaveAttempts(ATTEMPTS)
HERE, THERE, ELSEWHERE = 3, 8, 9

ids = st.integers(0, 2**32 - 1)
some_blocks = st.builds(
    SealedFrame,
    st.builds(WaveId, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    *(ids, ids, ids, st.sampled_from(FrameKind), st.binary(max_size=40)),
)


def block_of(payload: bytes, sequence: int = 0) -> SealedFrame:
    return SealedFrame(WAVE.key, HERE, sequence, THERE, FrameKind.BLOCK, payload)


contents = st.builds(
    lambda counts, others, frames: BlockContent(sum(1 << p for p in {*counts, *others}), counts, frames),
    st.dictionaries(st.integers(0, 1100), st.integers(1, 2**40), max_size=6),
    st.sets(st.integers(0, 1100), max_size=6),
    st.lists(st.tuples(st.integers(0, 1100), st.integers(0, 5), st.binary(max_size=9)), max_size=5),
)


def written(write, *, wave=WAVE):
    """The packed blocks of what `write` gives a writer."""
    sent: list[bytes] = []
    writer = BlockWriter(wave, lambda block: sent.append(seal_frame(block)))
    write(writer)
    writer.flush()
    return sent


def to(target, packed_blocks, wave=WAVE):
    return Inbox([packed for packed in packed_blocks if frame_target(packed) == target], wave)


@given(some_blocks)
def test_a_block_survives_packing(block):
    packed = seal_frame(block)
    assert open_frame(packed) == block
    assert frame_target(packed) == block.target


@given(contents)
def test_the_content_of_a_block_survives_packing(content):
    assert BlockContent.from_payload(content.to_payload()) == content


@given(st.sets(st.integers(0, 3000)))
def test_places_are_the_bits_of_a_mask_in_order(places):
    assert list(places_in(sum(1 << place for place in places))) == sorted(places)


def test_an_attempt_that_was_sent_nothing_costs_two_bits():
    """One says that it is reported; the other, that its count is not 0, is needed only up to the last that is not."""
    one = BlockContent((1 << 400) - 1, {}, []).to_payload()
    other = BlockContent((1 << 1200) - 1, {}, []).to_payload()
    assert len(other) - len(one) <= 800 // 8 + 1


PACKED = seal_frame(block_of(BlockContent(7, {1: 3}, []).to_payload(), 2))


def test_faults_33_every_flipped_bit_is_noticed():
    for bit in range(len(PACKED) * 8):
        damaged = bytearray(PACKED)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CodecError, match="checksum does not match"):
            open_frame(bytes(damaged))


def test_every_torn_block_is_noticed():
    for length in range(len(PACKED)):
        with pytest.raises(CodecError, match=r"checksum does not match|shorter than its header"):
            open_frame(PACKED[:length])
    with pytest.raises(CodecError, match="checksum does not match"):
        open_frame(PACKED + b"\0")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        pack(5),
        pack([1, 2]),
        pack([b"\1", b"\1", [True], [], [], []]),
        pack([b"\1", b"\1", [2.0], [], [], []]),
        pack([b"\1", b"\1", [], [], [], []]),
        pack([b"\1", b"", [1], [], [], []]),
        pack([b"", b"\1", [1], [], [], []]),
        pack([b"\1", b"", [], [0], [], [b""]]),
        pack([b"\1", b"", [], [0.0], [0], [b""]]),
        pack([b"\1", b"", [], [0], ["0"], [b""]]),
        pack([b"\1", b"", [], [0], [0], ["text"]]),
        pack([1, b"", [], [], [], []]),
    ],
    ids=repr,
)
def test_a_block_of_no_known_form_is_dropped(payload):
    with pytest.raises(CodecError):
        BlockContent.from_payload(payload)
    inbox = Inbox([seal_frame(block_of(payload))], WAVE)
    assert inbox.take(ATTEMPTS[0]) == Arrived()


def everything(writer):
    """Two tasks send to two; of attempt 2 nothing is sent, attempt 3 is never reported by the second."""
    for sender in (HERE, HERE + 1):
        for place, of in enumerate(ATTEMPTS[:4]):
            if place != 1:
                writer.carry(of, sender, THERE, sequence=0, payload=b"%d of %d" % (place, sender))
                writer.carry(of, sender, THERE, sequence=1, payload=b"more")
            if (sender, place) != (HERE + 1, 2):
                writer.report(of, sender, (THERE, ELSEWHERE), {THERE: Sent(2, 10 + place)} if place != 1 else {})


@pytest.mark.parametrize("seed", range(4))
def test_what_was_sent_arrives_by_attempt_in_order_of_sender_and_sequence(seed):
    packed = written(everything)
    Random(seed).shuffle(packed)
    inbox = to(THERE, packed)
    assert inbox.take(ATTEMPTS[0]) == Arrived(
        [PlacedFrame(*each) for each in ((3, 0, b"0 of 3"), (3, 1, b"more"), (4, 0, b"0 of 4"), (4, 1, b"more"))],
        frozenset({3, 4}),
        {3: 10, 4: 10},
        [],
    )
    assert inbox.take(ATTEMPTS[1]) == Arrived((), frozenset({3, 4}), {}, ())
    assert inbox.take(ATTEMPTS[2])[1:] == (frozenset({3}), {3: 12}, [])
    assert inbox.take(ATTEMPTS[0]).frames == (), "it is taken once"


def test_a_task_sends_another_one_block_and_one_to_whom_it_sends_nothing_too():
    sent = [open_frame(packed) for packed in written(everything)]
    assert [(b.sender, b.target, b.sequence) for b in sent] == [(3, 8, 0), (3, 9, 0), (4, 8, 0), (4, 9, 0)]
    assert to(ELSEWHERE, written(everything)).take(ATTEMPTS[3]) == Arrived((), frozenset({3, 4}), {}, ())


@pytest.mark.parametrize("most", [1, 7, 20])
def test_a_long_block_is_sent_in_parts_that_mean_the_same(monkeypatch, most):
    whole = written(everything)
    monkeypatch.setattr(blocks, "BLOCK_BYTES_MAX", most)
    parts = written(everything)
    assert len(parts) > len(whole)
    one, other = to(THERE, whole), to(THERE, parts)
    assert [one.take(of) for of in ATTEMPTS] == [other.take(of) for of in ATTEMPTS]


def test_what_is_flushed_between_two_attempts_means_the_same():
    def flushing(writer):
        for place, of in enumerate(ATTEMPTS[:4]):
            writer.carry(of, HERE, THERE, sequence=0, payload=b"%d" % place)
            writer.report(of, HERE, (THERE, ELSEWHERE), {THERE: Sent(1, 1 + place)})
            assert writer.byte_count
            writer.flush()
            assert not writer.byte_count

    for target in (THERE, ELSEWHERE):
        inbox = to(target, written(flushing))
        for place, of in enumerate(ATTEMPTS[:4]):
            frames = [(HERE, 0, b"%d" % place)] if target == THERE else ()
            counts = {HERE: 1 + place} if target == THERE else {}
            assert inbox.take(of)[:3] == (frames, frozenset({HERE}), counts)


def test_a_block_that_is_lost_takes_the_reports_of_its_attempts_with_it():
    inbox = to(THERE, [packed for packed in written(everything) if open_frame(packed).sender != HERE])
    assert inbox.take(ATTEMPTS[0])[1:] == (frozenset({HERE + 1}), {HERE + 1: 10}, [])


def test_a_block_that_arrives_twice_repeats_its_frames_and_reports():
    inbox = to(THERE, 2 * [packed for packed in written(everything) if open_frame(packed).sender == HERE])
    arrived = inbox.take(ATTEMPTS[0])
    assert len(arrived.frames) == 4
    assert arrived[1:] == (frozenset({HERE}), {HERE: 10}, [(HERE, 10)])
    assert inbox.take(ATTEMPTS[1])[1:] == (frozenset({HERE}), {}, [(HERE, 0)])


def test_blocks_of_another_wave_and_of_another_kind_are_dropped():
    other = WaveAttempts(ATTEMPTS[:4])
    stray = [seal_frame(open_frame(packed)._replace(kind=FrameKind.ACK)) for packed in written(everything)]
    inbox = to(THERE, written(everything, wave=other) + stray)
    assert inbox.take(ATTEMPTS[0]) == Arrived()


def test_an_attempt_of_another_wave_has_nothing():
    assert to(THERE, written(everything)).take(attempt(99)) == Arrived()


def test_a_wave_is_known_by_all_of_its_attempts_in_order():
    keys = {
        WaveAttempts(each).key
        for each in (ATTEMPTS, ATTEMPTS[:-1], ATTEMPTS[::-1], [attempt(1, 7), *ATTEMPTS[1:]], [], [attempt(77)])
    }
    assert len(keys) == 6
    assert WaveAttempts(ATTEMPTS).key == WAVE.key
