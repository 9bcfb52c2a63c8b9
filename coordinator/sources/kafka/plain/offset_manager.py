"""Up to which offset everything that was emitted is acked.

Pure. An offset that was never emitted holds no message: compaction removed it, or one of Kafka's markers is there. It
holds up nothing. Only an offset that was emitted and is not acked does.

Source: org.apache.storm.kafka.spout.internal.OffsetManager.
"""

from __future__ import annotations

from heapq import heappop, heappush


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
        """Whether a message is under way or waits to be tried again."""
        return offset in self._open

    def lowest_open(self) -> int | None:
        """The lowest offset that was emitted and is not acked."""
        while self._open_heap and self._open_heap[0] not in self._open:
            heappop(self._open_heap)
        return self._open_heap[0] if self._open_heap else None

    def next_commit_offset(self) -> int:
        """The offset after the last acked one below which nothing is open; never goes back."""
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
