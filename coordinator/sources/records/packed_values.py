"""A record is a value packed by msgpack, as `state.codec` packs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.sources.records.field_types import checked_fields
from coordinator.sources.records.record_format import BadRecordError, RecordFormat
from state.codec import CodecError, unpack


class PackedValues(RecordFormat):
    """Values packed by msgpack: a list with a value for every field, or a mapping from their names.

    What other programs pack with msgpack is read too, as long as it uses no extension types but those of
    `state.codec`, which stand for tuples, sets, dates, decimals and large integers.

    Args:
        fields: their names.

    Raises:
        TopologyError: they are no list of names.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = tuple(each.name for each in checked_fields(type(self).__name__, fields))

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    def row(self, data: bytes) -> list[Any]:
        try:
            found = unpack(data)
        except CodecError as error:
            raise BadRecordError(f"it is not packed by msgpack: {error}") from None
        if isinstance(found, dict):
            for name in self._fields:
                if name not in found:
                    raise BadRecordError(f"field {name!r} is missing")
            return [found[name] for name in self._fields]
        if not isinstance(found, (list, tuple)) or len(found) != len(self._fields):
            raise BadRecordError(
                f"it is a {type(found).__name__}; a list of {len(self._fields)} values or a mapping is wanted"
            )
        return list(found)
