"""What a stored value means: the one place that decodes state as it was declared."""

from __future__ import annotations

from typing import Any

from state.errors import StateRefusedError
from state.write_set import ValueType


def decode_stored(stored: bytes, declared: ValueType, where: str) -> Any:
    """A value, field or member as its handle declares it.

    Args:
        stored: as Redis holds it.
        declared: its type.
        where: names the state, for the message.

    Raises:
        StateRefusedError: it is not of that type.
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
    except ValueError:
        raise StateRefusedError(
            f"{where} holds {stored[:100]!r}, declared type is {declared.value}; correct it or declare the type it has"
        ) from None
