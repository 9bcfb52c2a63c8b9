"""How many transactions the next group takes: as many as allowed, or fewer if recent groups were cut.

Pure. After a group that was cut, the next takes twice as many transactions as were published, and the size doubles
again with every group that is published whole. Operations and bytes per transaction of the last group predict which
size would exceed a limit.
"""

from __future__ import annotations


class GroupSize:
    """The limit on the size of the next group.

    Args:
        group_max: the user's limit on transactions.
        operations_max: most changes in one commit.
        bytes_max: size that the commit of a group aims to stay below.
    """

    def __init__(self, group_max: int, operations_max: int, bytes_max: int) -> None:
        self._group_max = group_max
        self._operations_max, self._bytes_max = operations_max, bytes_max
        self._limit = group_max
        self._by_operations = self._by_bytes = group_max

    def limit(self) -> int:
        """Returns how many transactions the next group may take, at least 1."""
        return max(1, min(self._limit, self._by_operations, self._by_bytes, self._group_max))

    def published(self, *, asked: int, published: int, operation_count: int, byte_count: int) -> None:
        """Notes that of a group of `asked` transactions the first `published` were published."""
        if published < asked:
            self._limit = max(1, 2 * published)
        else:
            self._limit = min(self._group_max, 2 * self._limit)
        if published and operation_count:
            self._by_operations = max(1, published * self._operations_max // operation_count)
        if published and byte_count:
            self._by_bytes = max(1, published * self._bytes_max // byte_count)

    def one_by_one(self) -> None:
        """Limits groups to one transaction, after the store refused a group's content: this finds the culprit."""
        self._limit = 1
