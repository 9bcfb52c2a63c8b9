"""One partition of the plain Kafka spout: what to fetch, what to emit, what is done, what may be stored.

Pure: the spout tells it what was fetched, acked and failed, and it answers. Several tuples may be made of a message; it
is done when all of them are acked, and only those that failed are emitted again.

Source: storm.kafka.PartitionManager.
Differs from Storm: what is uncommitted is bounded, and retries continue inside the bound; a reset purges what is under
way, failed and waiting together and counts what was lost; nothing is dropped for being far behind.
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
        epoch: counts restarts; what is acked or failed of an earlier one is void.
        offset: of the message.
        number: among the tuples made of it, from 0.
    """

    partition: int
    epoch: int
    offset: int
    number: int


class AfterFail(Enum):
    """What to do with a tuple that failed."""

    RETRY = auto()
    """It is emitted again, later."""
    GIVE_UP = auto()
    """It was tried often enough; the caller says `acked` once it is dealt with."""
    IGNORE = auto()
    """It is not under way: of an earlier epoch, or done."""


@dataclass(slots=True)
class _Message:
    """The tuples made of a message, and which of them are not acked."""

    tuple_count: int
    out: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)


class PartitionManager:
    """Decides for one partition; used by one spout task.

    Args:
        partition: its number.
        at: the offset of the first message to emit.
        rules: of retries.
        max_uncommitted: how many messages may be emitted beyond the offset that may be stored.

    Attributes:
        partition: its number.
        epoch: counts restarts.
        emitted_to: the offset after the last one that was taken.
        committed_to: what was stored last.
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
        """Returns where to fetch: the lowest failed message that is due, else what is new; None if the bound is met.

        Asked when nothing is waiting.
        """
        due = self._retries.lowest_due(now_ms)
        if due is not None:
            return due
        return self.emitted_to if self.room() > 0 else None

    def room(self) -> int:
        """Returns how many new messages may be taken."""
        return self._max_uncommitted - self._offsets.uncommitted_count()  # those that wait to be emitted are in it

    def held_up_by(self) -> int | None:
        """Returns the message whose missing ack keeps the bound met; None if it is not under way, or there is room."""
        lowest = self._offsets.lowest_open() if self.room() <= 0 else None
        return lowest if lowest in self._messages and self._messages[lowest].out else None

    def fetched(self, start: int, offsets: Sequence[int], position: int, now_ms: int) -> list[int]:
        """What was fetched is waiting to be emitted, as far as it is wanted.

        Args:
            start: what `fetch_from` said.
            offsets: of the messages, ascending.
            position: where the next fetch would continue; offsets below it that were not fetched hold no message.
            now_ms: the time.

        Returns:
            The offsets taken; the caller keeps their messages until `take` has given them all.
        """
        if start != self.emitted_to:
            return self._fetched_again(start, offsets, position, now_ms)
        taken = list(offsets[: self.room()])
        self._waiting.extend(taken)
        self.emitted_to = max(start, position if len(taken) == len(offsets) else taken[-1] + 1 if taken else start)
        for offset in taken:
            self._offsets.emitted(offset)  # it may not be stored as done while it waits
        return taken

    def take(self) -> int | None:
        """Returns the next message to emit; None if none is waiting."""
        return self._waiting.popleft() if self._waiting else None

    def made_before(self, offset: int) -> int | None:
        """Returns how many tuples were made of a message that is tried again; None at its first try."""
        found = self._messages.get(offset)
        return None if found is None else found.tuple_count

    def emitting(self, offset: int, tuple_count: int) -> list[TupleId]:
        """Returns the ids of the tuples to emit of a message, which is done at once if it has none.

        Args:
            offset: what `take` gave.
            tuple_count: how many tuples were made of it, as many as before; of one that is tried again only those that
                failed are wanted.
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
        """A tuple is done; returns whether its whole message is."""
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
        """A tuple failed; returns what follows for its message."""
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
        """Everything below `to` is void, under way, failed and waiting alike: it is gone from the log.

        Returns:
            How many offsets are lost: those that failed and cannot be tried again, and those that were never emitted.
        """
        failed = len(self._retries.clear_below(to))
        skipped = max(0, to - self.emitted_to)
        self._offsets.clear_below(to)
        self._messages = {offset: found for offset, found in self._messages.items() if offset >= to}
        self._waiting = deque(offset for offset in self._waiting if offset >= to)
        self.emitted_to = max(self.emitted_to, to)
        return failed + skipped

    def restart(self, at: int) -> None:
        """Everything is void: the log has lost its end, and its offsets will be those of other messages."""
        self.epoch += 1
        self._offsets, self._retries = OffsetManager(at), RetryManager(self._rules)
        self._messages.clear()
        self._waiting.clear()
        self.emitted_to = at

    def holds(self, offset: int) -> bool:
        """Returns whether a message is waiting, under way or failed."""
        return self._offsets.is_open(offset)

    def completed_to(self) -> int:
        """Up to where everything is done: what may be stored."""
        lowest = self._offsets.lowest_open()
        return self.emitted_to if lowest is None else lowest

    def to_commit(self) -> int | None:
        """Returns what to store now, None if that is stored already; the caller then says `committed`."""
        completed = self.completed_to()
        return completed if completed != self.committed_to else None

    def committed(self, offset: int) -> None:
        """An offset is stored."""
        self.committed_to = offset

    def statistics(self) -> dict[str, int]:
        """Counts: acks and fails so far; what is uncommitted, under way, failed and waiting now; and how far it is."""
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
        if position > start and start not in offsets:  # compaction has removed it: nothing is left to process
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
        at: where the partition begins: the offset a commit would hold before anything is acked.
    """

    def __init__(self, at: int) -> None:
        self._next = at
        self._open: set[int] = set()
        self._open_heap: list[int] = []
        self._acked: set[int] = set()
        self._acked_heap: list[int] = []

    def emitted(self, offset: int) -> None:
        """A message is under way; again, if it was before."""
        if offset not in self._open and offset >= self._next:
            self._open.add(offset)
            heappush(self._open_heap, offset)

    def acked(self, offset: int) -> None:
        """A message is done."""
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
        """Returns the offset after the last acked one below which nothing is open; never goes back."""
        lowest = self.lowest_open()
        while self._acked_heap and (lowest is None or self._acked_heap[0] < lowest):
            offset = heappop(self._acked_heap)
            if offset in self._acked:
                self._acked.remove(offset)
                self._next = max(self._next, offset + 1)
        return self._next

    def uncommitted_count(self) -> int:
        """Messages that were emitted and are not below `next_commit_offset`, acked or not."""
        self.next_commit_offset()
        return len(self._open) + len(self._acked)

    def clear_below(self, offset: int) -> None:
        """Forgets everything below an offset."""
        self._open = {each for each in self._open if each >= offset}
        self._acked = {each for each in self._acked if each >= offset}
        self._next = max(self._next, offset)
