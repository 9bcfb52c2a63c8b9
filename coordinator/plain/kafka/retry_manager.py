"""Decides when a failed message is tried again, and when it is given up.

Pure: time is a parameter, in milliseconds of any clock that does not go back.

Source: storm.kafka.ExponentialBackoffMsgRetryManager.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from state.errors import TopologyError


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How often and how soon failed tuples are tried again.

    Attributes:
        initial_ms: wait before the first retry.
        multiplier: how many times longer each wait is than the one before.
        max_ms: the longest wait.
        limit: how many retries each tuple gets; None for no limit.

    Raises:
        TopologyError: a number is invalid.
    """

    initial_ms: int = 100
    multiplier: float = 2.0
    max_ms: int = 60_000
    limit: int | None = 10

    def __post_init__(self) -> None:
        if not 0 <= self.initial_ms <= self.max_ms:
            raise TopologyError(f"retries wait {self.initial_ms} to {self.max_ms} ms; give ascending numbers from 0")
        if not 1 <= self.multiplier < math.inf:
            raise TopologyError(f"multiplier={self.multiplier} of retries has to be a number of at least 1")
        if self.limit is not None and self.limit < 0:
            raise TopologyError(f"limit={self.limit} of retries has to be 0 or more, or None")

    def wait_ms(self, retry: int) -> int:
        """Returns the wait before retry number `retry`, which counts from 1."""
        factor = self.multiplier ** min(retry - 1, 1000 if self.multiplier == 1 else 200)
        return int(min(self.max_ms, self.initial_ms * factor))


@dataclass(slots=True)
class _Failed:
    retries: Counter[int] = field(default_factory=Counter)
    """Number of a tuple -> how many retries it had."""
    due_ms: int | None = None


class RetryManager:
    """The failed messages of one partition, by offset; tuples of a message wait together, and are counted separately.

    Args:
        rules: how often and how soon.
    """

    def __init__(self, rules: RetryRules) -> None:
        self._rules = rules
        self._failed: dict[int, _Failed] = {}
        self._none_due_before_ms: float = math.inf

    def failed(self, offset: int, now_ms: int, number: int = 0) -> bool:
        """Records a failed tuple; returns whether it is tried again, not before other failed tuples of its message.

        Args:
            offset: offset of the message.
            now_ms: current time.
            number: number of the tuple.
        """
        found = self._failed.setdefault(offset, _Failed())
        if self._rules.limit is not None and found.retries[number] >= self._rules.limit:
            return False
        found.retries[number] += 1
        found.due_ms = max(found.due_ms or 0, now_ms + self._rules.wait_ms(found.retries[number]))
        self._none_due_before_ms = min(self._none_due_before_ms, found.due_ms)
        return True

    def is_due(self, offset: int, now_ms: int) -> bool:
        """Returns whether a message failed and has waited long enough."""
        found = self._failed.get(offset)
        return found is not None and found.due_ms is not None and found.due_ms <= now_ms

    def lowest_due(self, now_ms: int) -> int | None:
        """Returns the lowest offset that may be tried again now; None if none is due."""
        if now_ms < self._none_due_before_ms:  # called far more often than any message is due
            return None
        lowest = min((offset for offset in self._failed if self.is_due(offset, now_ms)), default=None)
        if lowest is None:
            waits = (found.due_ms for found in self._failed.values() if found.due_ms is not None)
            self._none_due_before_ms = min(waits, default=math.inf)
        return lowest

    def waiting_count(self) -> int:
        """Returns the number of messages that failed and are not under way again."""
        return sum(found.due_ms is not None for found in self._failed.values())

    def started(self, offset: int) -> None:
        """Records that a message is under way again."""
        self._failed[offset].due_ms = None

    def forget(self, offset: int) -> None:
        """Records that a message is done."""
        self._failed.pop(offset, None)

    def clear_below(self, offset: int) -> list[int]:
        """Forgets all messages below an offset; returns the offsets of waiting ones, ascending."""
        gone = sorted(each for each in self._failed if each < offset)
        return [each for each in gone if self._failed.pop(each).due_ms is not None]
