"""How many transactions the next group takes: as many as allowed, fewer where experience says so.

Pure. After a group was cut the next one aims at twice what could be published, and doubles again with
every group that went through whole. Groups that would exceed the operation limit are foreseen from
how many operations a transaction made last.
"""

from __future__ import annotations


class GroupSize:
    """The bound on the next group.

    Args:
        group_max: the user's bound.
        operations_max: most changes of one commit.
    """

    def __init__(self, group_max: int, operations_max: int) -> None:
        self._group_max = group_max
        self._operations_max = operations_max
        self._limit = group_max
        self._by_operations = group_max

    def limit(self) -> int:
        """Most transactions of the next group, at least 1."""
        return max(1, min(self._limit, self._by_operations, self._group_max))

    def published(self, *, asked: int, published: int, operation_count: int) -> None:
        """A group of `asked` transactions had a prefix of `published` go out."""
        if published < asked:
            self._limit = max(1, 2 * published)
        else:
            self._limit = min(self._group_max, 2 * self._limit)
        if published and operation_count:
            self._by_operations = max(1, published * self._operations_max // operation_count)

    def one_by_one(self) -> None:
        """The store refused a group for its content: find the culprit."""
        self._limit = 1
