"""A record is whatever a function of the user's makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coordinator.sources.records.field_types import checked_fields
from coordinator.sources.records.record_format import RecordFormat
from state.errors import TopologyError


class FunctionFormat(RecordFormat):
    """Tuples made by a function.

    Args:
        fields: names of the values it makes.
        function: record -> a list of values, one for every field. It pickles, so it is a function of a module; it
            depends on nothing but the record; it raises `BadRecordError` for one that it cannot read. Any other
            exception is a bug in it and ends the run.

    Raises:
        TopologyError: the fields are no list of names, or the function cannot be called.
    """

    def __init__(self, fields: Sequence[str], function: Callable[[bytes], Sequence[Any]]) -> None:
        self._fields = tuple(each.name for each in checked_fields(type(self).__name__, fields))
        if not callable(function):
            raise TopologyError(f"function={function!r} of FunctionFormat cannot be called")
        self._function = function

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    def row(self, data: bytes) -> Sequence[Any]:
        return self._function(data)
