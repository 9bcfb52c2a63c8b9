"""A Redis list, whole or only its last items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from state.kinds.state_handle import StateHandle, check_most
from state.values.state_kind import VALUE_FIELD, Retention, Side, StateKind, ValueType


class ListState(StateHandle):
    """A Redis list that grows at its end. Write-only: a transaction never reads a list.

    Args:
        name: state name.
        value: type of the items: ``int``, ``float``, ``str``, ``bytes``, ``Decimal`` or ``"json"``; or its name.
        scale: as of a `HashState`.
        keep_last: how many items stay: each commit cuts off what is before them. None keeps all.
    """

    kind = StateKind.LIST
    field_type = ValueType.STR

    def __init__(
        self, name: str, value: type | str = str, *, scale: int | None = None, keep_last: int | None = None
    ) -> None:
        super().__init__(name)
        self._declare_value("item", value, scale)
        if keep_last is not None:
            self.retention = Retention(Side.LAST, check_most(f"keep_last of state {name!r}", keep_last))

    def append(self, value: Any) -> None:
        """Appends one item.

        Raises:
            TypeError, ValueError: the item has the wrong type or is out of range.
        """
        self._open().appends.append(self._to_stored("item", value))

    def extend(self, values: Iterable[Any]) -> None:
        """Appends items in order."""
        items = list(values)
        if self._form is not None or not self._are_plain(items, self.value_type):
            items = [self._to_stored("item", value) for value in items]
        self._open().appends.extend(items)

    def delete(self) -> None:
        """Empties the list; items appended afterwards stay."""
        self._open().delete(VALUE_FIELD)
