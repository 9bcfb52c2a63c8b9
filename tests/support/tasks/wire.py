"""Blocks as frames and frames as blocks, so that tests can disturb a single frame or report of what is on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from coordinated_bolt.plain.message_packer import contents_of
from coordinated_bolt.plain.messages import Message, TupleStretch
from coordinated_bolt.plain.wave_frames import WaveFrame
from coordinated_bolt.transport.blocks import (
    Arrived,
    Block,
    BlockContent,
    Inbox,
    pack_block,
    unpack_block,
)
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.wave_attempts import WaveAttempts, mask_from_bytes, mask_to_bytes, places_in
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack


def frames_in(packed: bytes, attempts: Sequence[TransactionAttempt]) -> list[Frame]:
    """What a block of the wave of `attempts` holds: each frame, each report of a count and each report to an acker."""
    block = unpack_block(packed)
    if block.kind is FrameKind.ACK:
        return [
            Frame(attempts[place], block.sender, block.sequence, block.target, FrameKind.ACK, report)
            for place, report in _reports(block.payload)
        ]
    if block.kind is not FrameKind.BLOCK:
        return [Frame(attempts[0], block.sender, block.sequence, block.target, block.kind, block.payload)]
    content = BlockContent.from_payload(block.payload)
    frames = [
        Frame(attempts[place], block.sender, sequence, block.target, FrameKind.REGULAR, payload)
        for place, sequence, payload in content.frames
    ]
    frames += [
        Frame(
            attempts[place],
            block.sender,
            block.sequence,
            block.target,
            FrameKind.COORD,
            pack(content.counts.get(place, 0)),
        )
        for place in places_in(content.reported)
    ]
    return frames


def alone(frame: Frame, attempts: Sequence[TransactionAttempt]) -> bytes:
    """A block of its own for one frame or report; that of another wave if its attempt is not among `attempts`."""
    wave = WaveAttempts(attempts if frame.attempt in attempts else [frame.attempt])
    kind, payload = _content(frame, wave.places[frame.attempt])
    return pack_block(Block(wave.key, frame.sender, frame.sequence, frame.target, kind, payload))


def messages_of(frame: WaveFrame) -> list[Message]:
    """What `contents_of` returns, as messages, one by one."""
    contents = contents_of(frame)
    return [*chain.from_iterable(p.messages() if isinstance(p, TupleStretch) else (p,) for p in contents)]


def arrived(of: TransactionAttempt, frames: Iterable[Frame]) -> Arrived:
    """What a task has read of an attempt, if these are the frames and reports that it was sent."""
    return Inbox([alone(frame, [of]) for frame in frames], WaveAttempts([of])).take(of)


def _content(frame: Frame, place: int) -> tuple[FrameKind, bytes]:
    match frame.kind:
        case FrameKind.REGULAR:
            return FrameKind.BLOCK, BlockContent(0, {}, [(place, frame.sequence, frame.payload)]).to_payload()
        case FrameKind.COORD:
            try:
                count = unpack(frame.payload)
            except CodecError:
                return FrameKind.BLOCK, frame.payload
            is_zero = type(count) is int and not count
            return FrameKind.BLOCK, BlockContent(1 << place, {} if is_zero else {place: count}, []).to_payload()
        case FrameKind.ACK:
            return FrameKind.ACK, moved(frame.payload, place)
    return frame.kind, frame.payload


def moved(report: bytes, place: int) -> bytes:
    """The only report of a payload, moved to another place."""
    try:
        nothing, _, edges, residues, counts, metrics, *rare = unpack(report)
    except (CodecError, TypeError, ValueError):
        return report
    if nothing:
        return pack([mask_to_bytes(1 << place), [], edges, residues, counts, metrics, *rare])
    moved_rare = [{place: next(iter(each.values()))} if each else {} for each in rare]
    return pack([b"", [place], edges, residues, counts, metrics, *moved_rare])


def has_cuts(frame: Frame) -> bool:
    """Whether a report to an acker holds partitions that a spout's task has cut."""
    return bool(unpack(frame.payload)[-1])


def with_other_cuts(report: bytes, position: Any) -> bytes:
    """The only report of a payload, with another position in each of its cuts, or another residue if it has none."""
    nothing, places, edges, residues, *rest, cuts = unpack(report)
    if nothing:
        return pack([b"", list(places_in(mask_from_bytes(nothing))), [0], [1], [0], [1, []], {}, {}, {}, {}])
    if not cuts:
        return pack([nothing, places, edges, [residues[0] ^ 1], *rest, cuts])
    altered = {scope: [before, position] for packed in cuts.values() for scope, (before, _) in unpack(packed).items()}
    return pack([nothing, places, edges, residues, *rest, {places[0]: pack(altered)}])


def _reports(payload: bytes) -> list[tuple[int, bytes]]:
    nothing, places, edges, residues, counts, (_, columns), *rare = unpack(payload)
    of_nothing = pack([mask_to_bytes(1), [], [], [], [], [0, []], {}, {}, {}, {}])
    found = [(place, of_nothing) for place in places_in(mask_from_bytes(nothing))]
    for row, place in enumerate(places):
        figures: list[Any] = [[figure, stream, column[row : row + 1]] for figure, stream, column in columns]
        rows = [b"", [0], [edges[row]], [residues[row]], [counts[row]], [1, figures]]
        found.append((place, pack([*rows, *({0: each[place]} if place in each else {} for each in rare)])))
    return found
