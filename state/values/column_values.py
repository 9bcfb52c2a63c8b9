"""Converts columns given by users, the values of many calls at once, to lists of Python's values.

`emit_batch` and the `…_many` calls of state handles take them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MappingView, Set
from typing import Any

_UNORDERED = (str, bytes, bytearray, memoryview, Mapping)
ORDERED = frozenset({list, tuple, type({}.keys()), type({}.values())})
"""The types of nearly all columns, accepted without further checks."""


def is_unordered(values: Any) -> bool:
    """Returns whether an iterable cannot be a row, a column or a list of rows: text, bytes, a mapping or a set.

    A mapping's view can be one: it has the order of the mapping.
    """
    return isinstance(values, _UNORDERED) or (isinstance(values, Set) and not isinstance(values, MappingView))


def column_values(column: Any) -> list[Any] | None:
    """Returns the values of a column as a new list; None if it is not a column.

    A column is an iterable with an order, or an array of pyarrow or NumPy, whose values become Python's.
    """
    if type(column) in ORDERED:
        return list(column)
    for method in ("to_pylist", "tolist"):
        convert = getattr(column, method, None)
        if convert is not None:
            values = convert()
            return values if isinstance(values, list) else None
    return None if is_unordered(column) or not isinstance(column, Iterable) else list(column)
