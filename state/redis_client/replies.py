"""Reads replies, in whichever form the client hands them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def text_of(item: Any) -> str:
    """Returns an item of a reply as text; bytes that are not valid UTF-8 are escaped."""
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)


def texts_by_name(items: Sequence[Any] | Mapping[Any, Any]) -> dict[str, str]:
    """Returns names and values as a mapping of texts."""
    return {text_of(name): text_of(value) for name, value in pairs_of(items)}


def pairs_of(reply: Sequence[Any] | Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yields names and values, which redis-py hands out as a mapping, a flat list or a list of pairs."""
    if isinstance(reply, Mapping):
        yield from reply.items()
    elif reply and isinstance(reply[0], (tuple, list)):
        yield from reply
    else:
        yield from zip(reply[::2], reply[1::2], strict=True)
