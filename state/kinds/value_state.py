"""A Redis string: one value."""

from __future__ import annotations

from typing import Any

from state.kinds.session import MISSING
from state.kinds.state_handle import StateHandle
from state.values.state_kind import VALUE_FIELD, StateKind, ValueType


class ValueState(StateHandle):
    """A Redis string: one value.

    Args:
        name: state name.
        value: type of the value: ``int``, ``float``, ``str``, ``bytes``, ``Decimal`` or ``"json"``; or its name.
        scale: as of a `HashState`.
    """

    kind = StateKind.VALUE
    field_type = ValueType.STR

    def __init__(self, name: str, value: type | str = int, *, scale: int | None = None) -> None:
        super().__init__(name)
        self._declare_value("value", value, scale)

    def put(self, value: Any) -> None:
        """Sets the value."""
        self._open().put(VALUE_FIELD, self._to_stored("value", value))

    def increment(self, by: Any = 1) -> None:
        """Adds `by` to the value, starting from 0 if there is none."""
        self._add(VALUE_FIELD, self._check_delta(by))

    def delete(self) -> None:
        """Removes the value."""
        self._open().delete(VALUE_FIELD)

    def get(self) -> Any:
        """Returns the value, or None.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        value = self._read([VALUE_FIELD])[VALUE_FIELD]
        return None if value is MISSING else self._from_stored(value)
