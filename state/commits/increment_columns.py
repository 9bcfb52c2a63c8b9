"""Integer increments as a committer gives them: a column of fields and one of amounts, not yet added up by field.

A commit task adds them to those of its group in one pass. To add them up for their own transaction first would take as
long again, and nobody looks at that sum unless the transaction reads, puts or deletes too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

REACH_MAX = 2**40
"""Columns whose amounts might add up to more than this are added one by one, so that their reach is known exactly. A
thousand transactions with less are far from the range of a field."""


class IncrementColumns(NamedTuple):
    """Fields and what to add to each; a field may be there more than once.

    Attributes:
        fields: the fields.
        amounts: one for each.
        reach: no field gets farther than this from where it was.
    """

    fields: list[Any]
    amounts: list[int]
    reach: int

    @classmethod
    def of(cls, fields: list[Any], amounts: list[int]) -> IncrementColumns | None:
        """Returns columns of one length, which become its own; None if they hold other than small integers."""
        if {*map(type, amounts)} - {int}:
            return None
        highest, lowest = max(amounts, default=0), min(amounts, default=0)
        reach = max(highest, -lowest) * len(amounts)
        return cls(fields, amounts, reach) if reach <= REACH_MAX else None

    def add_to(self, increments: dict[Any, int]) -> None:
        """Adds them to field -> amount."""
        known = increments.get
        for field, amount in zip(self.fields, self.amounts, strict=True):
            increments[field] = known(field, 0) + amount
