"""Blocks as frames and frames as blocks, so that tests can disturb a single frame or report of what is on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult, ResultTable
from coordinated_bolt.transport.blocks import Arrived, BlockContent, Inbox
from coordinated_bolt.transport.frames import Frame, FrameKind, SealedFrame, open_frame, seal_frame
from coordinated_bolt.transport.wave_attempts import WaveAttempts, mask_from_bytes, mask_to_bytes, places_in
from coordinator.plain.tasks.message_packer import contents_of
from coordinator.plain.tasks.messages import Message, TupleStretch
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack


def frames_in(packed: bytes, attempts: Sequence[TransactionAttempt]) -> list[Frame]:
    """What a block of the wave of `attempts` holds: each frame, each report of a count and each report to an acker."""
    block = open_frame(packed)
    if block.kind is FrameKind.ACK:
        return [
            Frame(attempt, block.sender, block.sequence, block.target, FrameKind.ACK, report)
            for attempt, report in _reports(block.payload, attempts)
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
    return seal_frame(SealedFrame(wave.key, frame.sender, frame.sequence, frame.target, kind, payload))


def messages_of(frame: SealedFrame) -> list[Message]:
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
            return FrameKind.ACK, of_attempt(frame.payload, place, frame.attempt)
    return frame.kind, frame.payload


def of_attempt(report: bytes, place: int, attempt: TransactionAttempt) -> bytes:
    """The only report of a payload, as if it were on the attempt at this place."""
    try:
        skipped, (txids, attempt_ids, *rest) = unpack(report)
    except (CodecError, TypeError, ValueError):
        return report
    if skipped:
        return pack([mask_to_bytes(1 << place), [txids, attempt_ids, *rest]])
    return pack([skipped, [[attempt.txid], [attempt.attempt_id], *rest]])


def has_cuts(frame: Frame) -> bool:
    """Whether a report to an acker holds partitions that a spout's task has cut."""
    return any(result.metadata for result in _results(frame.payload))


def with_other_cuts(frame: Frame, position: Any) -> bytes:
    """The only report of a frame, with another position in each of its cuts, or another residue if it has none."""
    (result,) = _results(frame.payload) or (AttemptResult(frame.attempt),)
    if result.metadata:
        result.metadata = dict.fromkeys(result.metadata, position)
    else:
        result.residue ^= 1
    return _payload(0, result)


def _reports(payload: bytes, attempts: Sequence[TransactionAttempt]) -> list[tuple[TransactionAttempt, bytes]]:
    skipped = [(attempts[place], _payload(1)) for place in places_in(mask_from_bytes(unpack(payload)[0]))]
    return skipped + [(result.attempt, _payload(0, result)) for result in _results(payload)]


def _results(payload: bytes) -> list[AttemptResult]:
    return list(ResultTable.from_wire(unpack(payload)[1]))


def _payload(skipped: int, *results: AttemptResult) -> bytes:
    return pack([mask_to_bytes(skipped), ResultTable(results).to_wire()])
