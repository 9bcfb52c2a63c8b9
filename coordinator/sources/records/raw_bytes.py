"""A record is its bytes, unchanged: one field."""

from __future__ import annotations

from coordinator.sources.records.record_format import RecordFormat


class RawBytes(RecordFormat):
    """The record's bytes, unchanged, as one field.

    Args:
        field: its name.
    """

    def __init__(self, field: str = "value") -> None:
        self._field = field

    @property
    def fields(self) -> tuple[str, ...]:
        return (self._field,)

    def row(self, data: bytes) -> list[bytes]:
        return [data]
