"""Formats that take a record as it is: its bytes, or the text they are."""

from __future__ import annotations

from coordinator.sources.records.record_format import BadRecordError, RecordFormat


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


class Utf8Text(RecordFormat):
    """The record as text, which has to be valid UTF-8.

    Args:
        field: its name.
    """

    def __init__(self, field: str = "value") -> None:
        self._field = field

    @property
    def fields(self) -> tuple[str, ...]:
        return (self._field,)

    def row(self, data: bytes) -> list[str]:
        try:
            return [data.decode("utf-8")]
        except UnicodeDecodeError as error:
            at = f"byte {data[error.start]:#04x} at {error.start}"
            raise BadRecordError(f"it is not valid UTF-8: {at}, {error.reason}") from None
