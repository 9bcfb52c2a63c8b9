"""Decodes stored values to their declared types; no other module does."""

from __future__ import annotations

from typing import Any

from state.errors import StateRefusedError
from state.troubles import Trouble
from state.values.state_kind import ValueType
from state.values.value_form import form_of


def decode_stored(stored: bytes, declared: ValueType, where: str, scale: int = 0) -> Any:
    """Returns a stored value, field or member in its declared type.

    Args:
        stored: the bytes that Redis holds.
        declared: the type that the handle declares.
        where: names the state or field, for the message.
        scale: of Decimals, the digits after the point.

    Raises:
        StateRefusedError: the bytes are not of that type.
    """
    try:
        match declared:
            case ValueType.INT:
                return int(stored)
            case ValueType.FLOAT:
                return float(stored)
            case ValueType.STR:
                return stored.decode()
            case ValueType.BYTES:
                return stored
            case ValueType.DECIMAL | ValueType.JSON:
                form = form_of(declared, scale)
                assert form is not None
                return form.from_stored(int(stored) if declared is ValueType.DECIMAL else stored.decode())
    except ValueError:
        raise StateRefusedError(
            f"{where} holds {stored[:100]!r}, but is declared as {declared.value}; correct the value, or declare the "
            "type it has"
        ).about(Trouble.STATE_VALUE) from None
