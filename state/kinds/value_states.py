"""A Redis string: one value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from state.kinds.session import MISSING
from state.kinds.state_handle import Item, Number, StateHandle, Value, check_most
from state.values.state_kind import VALUE_FIELD, KeptEnd, Retention, StateKind, ValueType


class ValueState(StateHandle[Value]):
    """A Redis string: one value.

    Args:
        name: state name.
        value: type of the value: ``int``, ``float``, ``str``, ``bytes``, ``Decimal`` or ``"json"``; or its name.
        scale: see `HashState`.
    """

    kind = StateKind.VALUE
    field_type = ValueType.STR

    @overload
    def __init__(self, name: str, value: type[Value] = ..., *, scale: int | None = None) -> None: ...

    @overload
    def __init__(self: ValueState[Any], name: str, value: str, *, scale: int | None = None) -> None: ...

    def __init__(self, name: str, value: type | str = int, *, scale: int | None = None) -> None:
        super().__init__(name)
        self._declare_value("value", value, scale)

    def put(self, value: Value) -> None:
        """Sets the value."""
        self._open().put(VALUE_FIELD, self._values.to_stored("value", value))

    def increment(self: ValueState[Number], by: Number | SupportsIndex = 1) -> None:
        """Adds `by` to the value, starting from 0 if there is none."""
        self._add(VALUE_FIELD, self._check_delta(by))

    def delete(self) -> None:
        """Removes the value."""
        self._open().delete(VALUE_FIELD)

    def get(self) -> Value | None:
        """Returns the value, or None.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        value = self._read([VALUE_FIELD])[VALUE_FIELD]
        return None if value is MISSING else self._values.from_stored(value)


class ListState(StateHandle[Item]):
    """A Redis list that grows at its end. Write-only: a transaction never reads a list.

    Args:
        name: state name.
        value: type of the items: ``int``, ``float``, ``str``, ``bytes``, ``Decimal`` or ``"json"``; or its name.
        scale: see `HashState`.
        keep_last: how many items stay: each commit cuts off older ones. None keeps all.
    """

    kind = StateKind.LIST
    field_type = ValueType.STR

    @overload
    def __init__(
        self, name: str, value: type[Item] = ..., *, keep_last: int | None = None, scale: int | None = None
    ) -> None: ...

    @overload
    def __init__(
        self: ListState[Any], name: str, value: str, *, keep_last: int | None = None, scale: int | None = None
    ) -> None: ...

    def __init__(
        self, name: str, value: type | str = str, *, scale: int | None = None, keep_last: int | None = None
    ) -> None:
        super().__init__(name)
        self._declare_value("item", value, scale)
        if keep_last is not None:
            self.retention = Retention(KeptEnd.LAST, check_most(f"keep_last of state {name!r}", keep_last))

    def append(self, value: Item) -> None:
        """Appends one item.

        Raises:
            TypeError, ValueError: the item has the wrong type or is out of range.
        """
        self._open().appends.append(self._values.to_stored("item", value))

    def extend(self, values: Iterable[Item]) -> None:
        """Appends items in order."""
        self._open().appends.extend(self._values.many_to_stored("item", list(values)))

    def delete(self) -> None:
        """Empties the list; items appended afterwards stay."""
        self._open().delete(VALUE_FIELD)
