"""Blocks: everything that one task sends another in a wave. Only this module knows their format.

A block holds the frames of every attempt and two vectors over the attempts' places: which attempts the sender has
reported, and how many tuples it has sent for each. Zeros take one bit, and no work. The receiver compares counts and
computes edges per attempt, from the frames; a block has no edges.

A large wave is cut into several blocks, at any frame; the places show which frames belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import and_
from types import MappingProxyType
from typing import NamedTuple

from coordinated_bolt.transport.frames import FrameKind, SealedFrame, open_frame
from coordinated_bolt.transport.outbox import Sent
from coordinated_bolt.transport.wave_attempts import WaveAttempts, mask_from_bytes, mask_to_bytes, places_in
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack

BLOCK_BYTES = 8 * 1024 * 1024
"""A task sends its held frames for all targets once they exceed this size."""
BLOCK_BYTES_MAX = 64 * 1024 * 1024
"""No further frame may make a block longer than this, because a receiver refuses more than the codec's `MAX_BYTES`."""


REPORT_BYTES = 256
"""A report without tuples is shorter than this, unless the wave has more than 2,000 attempts."""


SendFrame = Callable[[SealedFrame], None]


class PlacedFrame(NamedTuple):
    """A frame of one attempt, on the receiver's side.

    Attributes:
        sender: task id of the sender.
        sequence: position among the frames of the attempt from this sender, from 0.
        payload: its tuples, packed by the codec.
    """

    sender: int
    sequence: int
    payload: bytes


PlaceFrames = list[tuple[int, int, bytes]]
"""(place, sequence, payload) of frames, in the order of sending."""


class BlockContent(NamedTuple):
    """The content of a block from one task to another.

    Attributes:
        reported: bit n means that the sender has reported the attempt at place n.
        counts: place -> number of tuples, without zeros.
        frames: the frames.
    """

    reported: int
    counts: Mapping[int, int]
    frames: PlaceFrames

    def to_payload(self) -> bytes:
        """Returns the content as bytes."""
        counted = sum(1 << place for place in self.counts)
        counts = [self.counts[place] for place in sorted(self.counts)]
        columns = [list(column) for column in zip(*self.frames, strict=True)] or [[], [], []]
        return pack([mask_to_bytes(self.reported), mask_to_bytes(counted), counts, *columns])

    @classmethod
    def from_payload(cls, payload: bytes) -> BlockContent:
        """Inverse of `to_payload`.

        Raises:
            CodecError: the payload is not a block's.
        """
        try:
            packed_reported, packed_counted, tuple_counts, places, sequences, payloads = unpack(payload)
            reported, counted = mask_from_bytes(packed_reported), mask_from_bytes(packed_counted)
            counts = dict(zip(places_in(counted), tuple_counts, strict=True))
            frames = list(zip(places, sequences, payloads, strict=True))
        except (TypeError, ValueError) as error:
            raise CodecError(f"block cannot be read: {error!r}") from None
        is_whole = {*map(type, tuple_counts), *map(type, places), *map(type, sequences)} <= {int}
        if not is_whole or not set(map(type, payloads)) <= {bytes} or counted & ~reported:
            raise CodecError("block cannot be read: its vectors hold what no sender puts there")
        return cls(reported, counts, frames)


_read_once = lru_cache(maxsize=512)(BlockContent.from_payload)


def _content_of(payload: bytes) -> BlockContent:
    """Returns the content of a block; the many blocks to targets without tuples are equal, so they are cached."""
    return _read_once(payload) if len(payload) <= REPORT_BYTES else BlockContent.from_payload(payload)


class _Held:
    """The frames and counts held for one target of one task."""

    __slots__ = ("byte_count", "counts", "frames")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.frames: PlaceFrames = []
        self.byte_count = 0


class BlockWriter:
    """The `Carrier` between processes: collects frames and counts of tasks and makes blocks (executor, one per wave).

    Args:
        wave: the attempts of the wave.
        send: takes the blocks when `flush` is called, or earlier if one gets too long.

    Attributes:
        byte_count: size of the frames held.
    """

    def __init__(self, wave: WaveAttempts, send: SendFrame) -> None:
        self._wave, self._send = wave, send
        self._held: dict[int, dict[int, _Held]] = {}
        self._targets: dict[int, tuple[int, ...]] = {}
        self._reported: dict[int, int] = {}
        self._sequences: dict[tuple[int, int], int] = {}
        self.byte_count = 0

    def carry(self, attempt: TransactionAttempt, sender: int, target: int, *, sequence: int, payload: bytes) -> None:
        """See `Carrier`."""
        held = self._held_for(sender, target)
        if held.frames and held.byte_count + len(payload) > BLOCK_BYTES_MAX:
            self._send_block(sender, target, BlockContent(0, {}, held.frames).to_payload())
            held.frames, held.byte_count = [], 0
        held.frames.append((self._wave.places[attempt], sequence, payload))
        held.byte_count += len(payload)
        self.byte_count += len(payload)

    def report(
        self, attempt: TransactionAttempt, sender: int, targets: Iterable[int], sent: Mapping[int, Sent]
    ) -> None:
        """See `Carrier`."""
        place = self._wave.places[attempt]
        self.report_nothing(1 << place, sender, targets)
        for target, each in sent.items():
            if each.tuple_count:
                self._held_for(sender, target).counts[place] = each.tuple_count

    def report_nothing(self, places: int, sender: int, targets: Iterable[int]) -> None:
        """Reports to every target that it was sent nothing for attempts, given as bits by place."""
        if sender not in self._targets:
            self._targets[sender] = tuple(targets)
        self._reported[sender] = self._reported.get(sender, 0) | places

    def flush(self) -> None:
        """Sends all held frames and counts; a target without tuples gets only the report."""
        for sender in sorted({*self._held, *self._reported}):
            reported, held = self._reported.get(sender, 0), self._held.get(sender, {})
            nothing = BlockContent(reported, {}, []).to_payload()
            for target in sorted({*held, *(self._targets[sender] if reported else ())}):
                each = held.get(target)
                payload = BlockContent(reported, each.counts, each.frames).to_payload() if each else nothing
                self._send_block(sender, target, payload)
        self._held, self._reported, self.byte_count = {}, {}, 0

    def _held_for(self, sender: int, target: int) -> _Held:
        boxes = self._held.get(sender)
        if boxes is None:
            boxes = self._held[sender] = {}
        held = boxes.get(target)
        if held is None:
            held = boxes[target] = _Held()
        return held

    def _send_block(self, sender: int, target: int, payload: bytes) -> None:
        sequence = self._sequences.get((sender, target), 0)
        self._sequences[sender, target] = sequence + 1
        self._send(SealedFrame(self._wave.key, sender, sequence, target, FrameKind.BLOCK, payload))


class Arrived(NamedTuple):
    """The input that has arrived for one attempt at one task.

    Attributes:
        frames: the frames of all senders, ordered by sender and sequence.
        reporters: the senders that have reported.
        counts: sender -> number of tuples it has reported as sent, without zeros.
        repeats: (sender, number of tuples) of reports after a sender's first.
    """

    frames: Sequence[PlacedFrame] = ()
    reporters: frozenset[int] = frozenset()
    counts: Mapping[int, int] = MappingProxyType({})
    repeats: Sequence[tuple[int, int]] = ()


class _Place:
    """The input that has arrived for one attempt, while blocks are read."""

    __slots__ = ("counts", "frames", "repeats")

    def __init__(self) -> None:
        self.frames: list[PlacedFrame] = []
        self.counts: dict[int, int] = {}
        self.repeats: list[tuple[int, int]] = []


class Inbox:
    """The blocks one task has read, attempt by attempt.

    Blocks that cannot be read, or belong to another wave, are dropped; the counts of their attempts then do not match,
    and they fail.

    Args:
        packed_blocks: the blocks that the task has read, in any order.
        wave: the attempts of the wave.
    """

    def __init__(self, packed_blocks: Iterable[bytes], wave: WaveAttempts) -> None:
        self._wave = wave
        self._places: dict[int, _Place] = {}
        self._reported: dict[int, int] = {}
        for packed in packed_blocks:
            try:
                block = open_frame(packed)
                if block.wave_id == wave.key and block.kind is FrameKind.BLOCK:
                    self._file(block.sender, _content_of(block.payload))
            except (CodecError, ValueError):
                continue
        self._senders = frozenset(self._reported)
        self._reported_by_all = reduce(and_, self._reported.values(), -1)

    def take(self, attempt: TransactionAttempt) -> Arrived:
        """Removes and returns the input of an attempt; frames are in order, however they arrived."""
        place = self._wave.places.get(attempt)
        if place is None:
            return Arrived()
        reporters = self._senders
        if not self._reported_by_all >> place & 1:
            reporters = frozenset(sender for sender, reported in self._reported.items() if reported >> place & 1)
        found = self._places.pop(place, None)
        if found is None:
            return Arrived(reporters=reporters)
        return Arrived(sorted(found.frames), reporters, found.counts, found.repeats)

    def empty_places(self, senders: frozenset[int]) -> int:
        """Returns bits, one set for each attempt without tuples that exactly these senders have reported."""
        if senders != self._senders:
            return 0
        every_place = (1 << len(self._wave.attempts)) - 1
        return self._reported_by_all & every_place & ~sum(1 << place for place in self._places)

    def waiting(self, attempt: TransactionAttempt) -> Sequence[PlacedFrame]:
        """Returns the frames of an attempt that was not taken yet, without taking them."""
        found = self._places.get(self._wave.places.get(attempt, -1))
        return () if found is None else found.frames

    def _file(self, sender: int, content: BlockContent) -> None:
        known = self._reported.get(sender, 0)
        self._reported[sender] = known | content.reported
        for place, sequence, payload in content.frames:
            self._place(place).frames.append(PlacedFrame(sender, sequence, payload))
        for place in places_in(content.reported & known):
            self._place(place).repeats.append((sender, content.counts.get(place, 0)))
        for place, tuple_count in content.counts.items():
            if not known >> place & 1:
                self._place(place).counts[sender] = tuple_count

    def _place(self, place: int) -> _Place:
        found = self._places.get(place)
        if found is None:
            found = self._places[place] = _Place()
        return found
