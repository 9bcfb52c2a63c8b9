"""How an entry of a stream becomes a tuple: from its fields, or from one field in a format of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.sources.records.record_format import BadRecordError, RecordFormat
from state.codec import unpack
from state.errors import TopologyError


class EntryFields(RecordFormat):
    """Fields of an entry by name, each as a type; an entry may have more.

    Args:
        fields: name -> `str`, `int`, `float` or `bytes`.

    Raises:
        TopologyError: there is none, or another type.
    """

    def __init__(self, fields: Mapping[str, type]) -> None:
        if not isinstance(fields, Mapping) or not fields or not set(fields.values()) <= {str, int, float, bytes}:
            raise TopologyError(
                f"fields of RedisStreams is {fields!r}; map each name to str, int, float or bytes, as in "
                "{'page': str, 'clicks': int}"
            )
        self._types = {name.encode(): kind for name, kind in fields.items()}
        self._names = tuple(fields)

    @property
    def fields(self) -> tuple[str, ...]:
        return self._names

    def row(self, data: bytes) -> Sequence[Any]:
        """Makes the tuple of an entry, packed as fields and values by turns."""
        found = _by_name(data)
        return [_value(name, found.get(name), kind) for name, kind in self._types.items()]


class EntryRecord(RecordFormat):
    """One field of an entry, whose bytes are a record in any format.

    Args:
        field: its name.
        record_format: of its value.
    """

    def __init__(self, field: str, record_format: RecordFormat) -> None:
        self._field, self._format = field.encode(), record_format

    @property
    def fields(self) -> tuple[str, ...]:
        return self._format.fields

    def row(self, data: bytes) -> Sequence[Any]:
        """Makes the tuple of an entry, packed as fields and values by turns."""
        return self._format.row(_present(self._field, _by_name(data).get(self._field)))


def _by_name(data: bytes) -> dict[bytes, bytes]:
    flat = unpack(data)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _value(name: bytes, value: bytes | None, kind: type) -> Any:
    raw = _present(name, value)
    if kind is bytes:
        return raw
    try:
        text = raw.decode()
        return text if kind is str else kind(text)
    except ValueError:
        raise BadRecordError(f"field {name.decode(errors='replace')!r} is {raw[:80]!r}, not {kind.__name__}") from None


def _present(name: bytes, value: bytes | None) -> bytes:
    if value is None:
        raise BadRecordError(f"field {name.decode(errors='replace')!r} is missing")
    return value
