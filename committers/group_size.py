"""The size of the next group: as large as allowed, or smaller if recent groups were cut or took long.

Pure. After a group that was cut, the next takes twice as many transactions as were published, and the size doubles
again with every group that is published whole. Operations and bytes per transaction of the last group predict which
size would exceed a limit.

A call that commits a group blocks the server for everybody, so the duration of recent calls also limits groups. Of the
last two calls the quicker one counts: a server may stall for other reasons.
"""

from __future__ import annotations

from collections import deque

OVERRUN_FACTOR = 4
"""A group may take this many times its target before it is cut after its commit phase, which then has to run again."""
FIRST_MAX = 16
"""Most transactions of a group while no duration is known."""
FEW_OPERATIONS = 1_000
"""A call with fewer operations takes a few milliseconds; a longer duration is not due to its size."""


class GroupSize:
    """The limit on the size of the next group.

    Args:
        group_max: the user's limit on transactions.
        operations_max: most changes in one commit.
        bytes_max: the commit of a group aims to stay below this size.
        target_s: how long the call that commits a group may take; 0 sets no limit.

    Attributes:
        operations_limit: most changes in a group of more than one transaction: `operations_max`, or fewer while calls
            take too long.
    """

    def __init__(self, group_max: int, operations_max: int, bytes_max: int, target_s: float = 0) -> None:
        self._group_max = group_max
        self._operations_max, self._bytes_max, self._target_s = operations_max, bytes_max, target_s
        self._limit = group_max
        self._by_operations = self._by_bytes = group_max
        self._by_time = min(group_max, FIRST_MAX) if target_s else group_max
        self.operations_limit = operations_max
        self._costs: deque[tuple[float, float]] = deque(maxlen=2)

    def limit(self) -> int:
        """Returns how many transactions the next group may take, at least 1."""
        return max(1, min(self._limit, self._by_operations, self._by_bytes, self._by_time, self._group_max))

    def published(
        self, *, asked: int, published: int, operation_count: int, byte_count: int, call_s: float = 0
    ) -> None:
        """Records that the first `published` transactions of a group of `asked` were published.

        `call_s` is how long the call kept the server busy, 0 if unknown.
        """
        if published < asked:
            self._limit = max(1, 2 * published)
        else:
            self._limit = min(self._group_max, 2 * self._limit)
        if published and operation_count >= FEW_OPERATIONS and call_s and self._target_s:
            self._note_time(published, operation_count, call_s)
        else:
            self._by_time = min(self._group_max, 2 * self._by_time)
        if published and operation_count:
            self._by_operations = max(1, published * self.operations_limit // operation_count)
        if published and byte_count:
            self._by_bytes = max(1, published * self._bytes_max // byte_count)

    def _note_time(self, published: int, operation_count: int, call_s: float) -> None:
        """Predicts sizes from the time; a quick call shows only how much to try next, not the limit."""
        is_slow = call_s > self._target_s
        self._costs.append((call_s / published, call_s / operation_count if is_slow else 0))
        transaction_s, operation_s = map(min, zip(*self._costs, strict=True))
        self._by_time = max(1, int(self._target_s / transaction_s))
        fitting = int(OVERRUN_FACTOR * self._target_s / operation_s) if operation_s else 2 * self.operations_limit
        self.operations_limit = max(1, min(self._operations_max, fitting))

    def one_by_one(self) -> None:
        """Limits groups to one transaction, after the store refused a group's content: this finds the culprit."""
        self._limit = 1
