"""One partition of the plain Kafka spout: which messages to fetch and emit, which are done, which offset to store.

Pure: the spout reports fetched messages, acks and fails, and the manager decides. Several tuples may be made of a
message; it is done when all of them are acked, and only failed tuples are emitted again.

Source: storm.kafka.PartitionManager.
Differs from Storm: the number of uncommitted messages is bounded, and retries continue within the bound; a reset purges
messages under way, failed and waiting together, and counts lost ones; none is dropped for being far behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from heapq import heappop, heappush
from typing import NamedTuple

from coordinator.plain.kafka.retry_manager import RetryManager, RetryRules


class TupleId(NamedTuple):
    """The message id of one tuple.

    Attributes:
        partition: the partition.
        epoch: counts restarts; acks and fails of an earlier epoch are ignored.
        offset: offset of the message.
        number: the tuple's number among the tuples made of the message, from 0.
    """

    partition: int
    epoch: int
    offset: int
    number: int


class AfterFail(Enum):
    """What to do with a tuple that failed."""

    RETRY = auto()
    """The tuple is emitted again, later."""
    GIVE_UP = auto()
    """The tuple was tried often enough; the caller calls `acked` once it has dealt with it."""
    IGNORE = auto()
    """The tuple is not under way: it is of an earlier epoch, or done."""


@dataclass(slots=True)
class _Message:
    """The tuples made of a message, and the numbers of those under way and failed."""

    tuple_count: int
    out: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)


class PartitionManager:
    """Decides for one partition; used by one spout task.

    Args:
        partition: number of the partition.
        at: the offset of the first message to emit.
        rules: when and how often failed tuples are tried again.
        max_uncommitted: how many messages may be emitted beyond the offset that may be stored.

    Attributes:
        partition: number of the partition.
        epoch: counts restarts.
        emitted_to: the offset after the last message that was taken.
        committed_to: the offset that was stored last.
        number_acked, number_failed: how often a tuple under way was acked or left out, and how often one failed.
    """

    def __init__(self, partition: int, at: int, rules: RetryRules, *, max_uncommitted: int) -> None:
        self.partition, self._max_uncommitted = partition, max_uncommitted
        self._rules = rules
        self._offsets = OffsetManager(at)
        self._retries = RetryManager(rules)
        self._messages: dict[int, _Message] = {}
        self._waiting: deque[int] = deque()
        self.epoch = 0
        self.emitted_to = self.committed_to = at
        self.number_acked = self.number_failed = 0

    def fetch_from(self, now_ms: int) -> int | None:
        """Returns the offset to fetch: the lowest failed message that is due, else the next new one; None at the bound.

        Called when no message is waiting.
        """
        due = self._retries.lowest_due(now_ms)
        if due is not None:
            return due
        return self.emitted_to if self.room() > 0 else None

    def room(self) -> int:
        """Returns how many new messages may be taken."""
        return self._max_uncommitted - self._offsets.uncommitted_count()  # waiting messages are included

    def held_up_by(self) -> int | None:
        """Returns the offset whose missing ack blocks new messages; None if there is room, or it is not under way."""
        lowest = self._offsets.lowest_open() if self.room() <= 0 else None
        return lowest if lowest in self._messages and self._messages[lowest].out else None

    def fetched(self, start: int, offsets: Sequence[int], position: int, now_ms: int) -> list[int]:
        """Queues fetched messages to be emitted, as far as they are wanted.

        Args:
            start: the result of `fetch_from`.
            offsets: offsets of the fetched messages, ascending.
            position: where the next fetch would continue; offsets below it that were not fetched hold no message.
            now_ms: current time.

        Returns:
            The offsets that were queued; the caller keeps their messages until `take` has returned all of them.
        """
        if start != self.emitted_to:
            return self._fetched_again(start, offsets, position, now_ms)
        taken = list(offsets[: self.room()])
        self._waiting.extend(taken)
        self.emitted_to = max(start, position if len(taken) == len(offsets) else taken[-1] + 1 if taken else start)
        for offset in taken:
            self._offsets.emitted(offset)  # while it waits, it must not be stored as done
        return taken

    def take(self) -> int | None:
        """Returns the offset of the next message to emit; None if none is waiting."""
        return self._waiting.popleft() if self._waiting else None

    def made_before(self, offset: int) -> int | None:
        """Returns how many tuples were made of a message before; None at its first try."""
        found = self._messages.get(offset)
        return None if found is None else found.tuple_count

    def emitting(self, offset: int, tuple_count: int) -> list[TupleId]:
        """Returns the ids of a message's tuples to emit: all at its first try, then the failed ones.

        A message without tuples is done at once.

        Args:
            offset: the result of `take`.
            tuple_count: how many tuples were made of the message, the same number at every try.
        """
        found = self._messages.get(offset)
        if found is None:
            found = self._messages[offset] = _Message(tuple_count, failed=set(range(tuple_count)))
        wanted = sorted(found.failed)
        found.out |= found.failed
        found.failed = set()
        if not found.out:
            self._done(offset)
        return [TupleId(self.partition, self.epoch, offset, number) for number in wanted]

    def acked(self, tuple_id: TupleId) -> bool:
        """Marks a tuple as done; returns whether its whole message is done."""
        found = self._under_way(tuple_id)
        if found is None:
            return False
        self.number_acked += 1
        found.out.remove(tuple_id.number)
        if found.out or found.failed:
            return False
        self._done(tuple_id.offset)
        return True

    def failed(self, tuple_id: TupleId, now_ms: int) -> AfterFail:
        """Marks a tuple as failed; returns what to do with it."""
        found = self._under_way(tuple_id)
        if found is None:
            return AfterFail.IGNORE
        self.number_failed += 1
        if not self._retries.failed(tuple_id.offset, now_ms, tuple_id.number):
            return AfterFail.GIVE_UP
        found.out.remove(tuple_id.number)
        found.failed.add(tuple_id.number)
        return AfterFail.RETRY

    def reset(self, to: int) -> int:
        """Forgets every message below `to`, under way, failed or waiting, since it is gone from the log.

        Returns:
            How many offsets are lost: failed ones that cannot be tried again, and ones that were never emitted.
        """
        failed = len(self._retries.clear_below(to))
        skipped = max(0, to - self.emitted_to)
        self._offsets.clear_below(to)
        self._messages = {offset: found for offset, found in self._messages.items() if offset >= to}
        self._waiting = deque(offset for offset in self._waiting if offset >= to)
        self.emitted_to = max(self.emitted_to, to)
        return failed + skipped

    def restart(self, at: int) -> None:
        """Forgets everything: the log has lost its end, so its offsets will be given to other messages."""
        self.epoch += 1
        self._offsets, self._retries = OffsetManager(at), RetryManager(self._rules)
        self._messages.clear()
        self._waiting.clear()
        self.emitted_to = at

    def holds(self, offset: int) -> bool:
        """Returns whether a message is waiting, under way or failed."""
        return self._offsets.is_open(offset)

    def completed_to(self) -> int:
        """Returns the offset before which every message is done, which may be stored."""
        lowest = self._offsets.lowest_open()
        return self.emitted_to if lowest is None else lowest

    def to_commit(self) -> int | None:
        """Returns the offset to store, None if it is stored already; the caller then calls `committed`."""
        completed = self.completed_to()
        return completed if completed != self.committed_to else None

    def committed(self, offset: int) -> None:
        """Records that an offset is stored."""
        self.committed_to = offset

    def statistics(self) -> dict[str, int]:
        """Returns acks and fails so far, current numbers of messages by status, and the offsets reached."""
        return {
            "number_acked": self.number_acked,
            "number_failed": self.number_failed,
            "uncommitted": self._offsets.uncommitted_count(),
            "under_way": sum(len(found.out) for found in self._messages.values()),
            "failed": self._retries.waiting_count(),
            "waiting": len(self._waiting),
            "completed_to": self.completed_to(),
            "emitted_to": self.emitted_to,
        }

    def _fetched_again(self, start: int, offsets: Sequence[int], position: int, now_ms: int) -> list[int]:
        taken = [offset for offset in offsets if self._retries.is_due(offset, now_ms)]
        for offset in taken:
            self._retries.started(offset)
        self._waiting.extend(taken)
        if position > start and start not in offsets:  # compaction has removed it
            self._done(start)
        return taken

    def _under_way(self, tuple_id: TupleId) -> _Message | None:
        if tuple_id.epoch != self.epoch:
            return None
        found = self._messages.get(tuple_id.offset)
        return found if found is not None and tuple_id.number in found.out else None

    def _done(self, offset: int) -> None:
        self._messages.pop(offset, None)
        self._retries.forget(offset)
        self._offsets.acked(offset)


class OffsetManager:
    """The emitted offsets of one partition.

    Args:
        at: where the partition begins: the offset to commit before any message is acked.
    """

    def __init__(self, at: int) -> None:
        self._next = at
        self._open: set[int] = set()
        self._open_heap: list[int] = []
        self._acked: set[int] = set()
        self._acked_heap: list[int] = []

    def emitted(self, offset: int) -> None:
        """Records that a message is under way, perhaps again."""
        if offset not in self._open and offset >= self._next:
            self._open.add(offset)
            heappush(self._open_heap, offset)

    def acked(self, offset: int) -> None:
        """Records that a message is done."""
        if offset in self._open:
            self._open.remove(offset)
            self._acked.add(offset)
            heappush(self._acked_heap, offset)

    def is_open(self, offset: int) -> bool:
        """Returns whether a message is under way or waits to be tried again."""
        return offset in self._open

    def lowest_open(self) -> int | None:
        """Returns the lowest offset that was emitted and is not acked."""
        while self._open_heap and self._open_heap[0] not in self._open:
            heappop(self._open_heap)
        return self._open_heap[0] if self._open_heap else None

    def next_commit_offset(self) -> int:
        """Returns the offset after the last acked message without an open one below it; never decreases."""
        lowest = self.lowest_open()
        while self._acked_heap and (lowest is None or self._acked_heap[0] < lowest):
            offset = heappop(self._acked_heap)
            if offset in self._acked:
                self._acked.remove(offset)
                self._next = max(self._next, offset + 1)
        return self._next

    def uncommitted_count(self) -> int:
        """Returns the number of emitted messages from `next_commit_offset` on, acked or not."""
        self.next_commit_offset()
        return len(self._open) + len(self._acked)

    def clear_below(self, offset: int) -> None:
        """Forgets every message below an offset."""
        self._open = {each for each in self._open if each >= offset}
        self._acked = {each for each in self._acked if each >= offset}
        self._next = max(self._next, offset)
