"""Reads the replies of the function library as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def text_of(item: Any) -> str:
    """Returns an item of a reply as text; bytes that are not valid UTF-8 are escaped."""
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)


def texts_by_name(items: Sequence[Any] | Mapping[Any, Any]) -> dict[str, str]:
    """Returns a flat list of names and values as a mapping; redis-py makes one of some replies itself."""
    if isinstance(items, Mapping):
        return {text_of(name): text_of(value) for name, value in items.items()}
    return {text_of(items[i]): text_of(items[i + 1]) for i in range(0, len(items), 2)}
