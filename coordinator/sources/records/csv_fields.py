"""A record is a row of CSV, read by the csv module in any of its dialects."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from coordinator.sources.records.field_types import FieldTypes, checked_fields, from_text
from coordinator.sources.records.plain_formats import decoded
from coordinator.sources.records.record_format import BadRecordError, RecordFormat
from state.errors import TopologyError

OPTIONS = ("delimiter", "quotechar", "escapechar", "doublequote", "skipinitialspace", "quoting")
_QUOTINGS = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE)


class CsvDialect:
    """A dialect of the csv module, as plain values that can be shipped. A spec.

    Args:
        dialect: a registered name, a subclass of `csv.Dialect`, or an object of one.
        options: those of the csv module; they win over the dialect's.

    Raises:
        TopologyError: the csv module does not know the dialect or an option.
    """

    def __init__(self, dialect: Any = "excel", **options: Any) -> None:
        try:
            found = csv.reader([], dialect, **options).dialect
        except (csv.Error, TypeError, ValueError) as error:
            raise TopologyError(
                f"dialect={dialect!r} with the options {options!r} is refused by csv: {error}"
            ) from None
        self.options: dict[str, Any] = {name: getattr(found, name) for name in OPTIONS}
        if found.quoting not in _QUOTINGS:
            raise TopologyError(
                "a CSV dialect whose quoting gives texts a type is refused: fields=… says which types they have; take "
                "quoting=csv.QUOTE_MINIMAL"
            )

    def rows(self, lines: Sequence[str]) -> list[list[str]]:
        """Reads rows, strictly.

        Raises:
            csv.Error: one of them is not in the dialect.
        """
        return list(csv.reader(lines, strict=True, **self.options))


class CsvFields(RecordFormat):
    """Fields of a row of CSV, by the names of its columns.

    A row with more or fewer values than there are columns is bad, and so is a text that does not read as its
    field's type. With a type ``… | None`` an empty text is None.

    Args:
        columns: names of all columns, in order.
        fields: which of them are wanted, with types as for `JsonFields`. All, as texts, if left out.
        dialect: of the csv module: a registered name, a subclass of `csv.Dialect`, or an object of one.
        options: of the csv module, such as ``delimiter=";"``; they win over the dialect's.

    Raises:
        TopologyError: a field is not a column, a type is unknown, or the dialect is.
    """

    def __init__(
        self, columns: Sequence[str], fields: FieldTypes | None = None, *, dialect: Any = "excel", **options: Any
    ) -> None:
        self.columns = tuple(columns) if not isinstance(columns, str) else ()
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise TopologyError(f"columns={columns!r} of CsvFields has to be a list of different names")
        self._types = checked_fields(type(self).__name__, self.columns if fields is None else fields)
        for each in self._types:
            if each.name not in self.columns:
                raise TopologyError(f"field {each.name!r} of CsvFields is not a column; there are {self.columns}")
        self._places = tuple(self.columns.index(each.name) for each in self._types)
        self.dialect = dialect if isinstance(dialect, CsvDialect) else CsvDialect(dialect, **options)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._types)

    def row(self, data: bytes) -> list[Any]:
        text = decoded(data)
        try:
            (texts,) = self.dialect.rows([text])
        except csv.Error as error:
            raise BadRecordError(f"it is not a row of CSV: {error}") from None
        return self._typed(texts)

    def rows(self, records: Sequence[bytes]) -> list[Sequence[Any] | BadRecordError]:
        try:
            found = self.dialect.rows([data.decode() for data in records])
        except (csv.Error, UnicodeDecodeError):
            return super().rows(records)
        if len(found) != len(records):  # a row without an end has taken the next one in
            return super().rows(records)
        made: list[Sequence[Any] | BadRecordError] = []
        for texts in found:
            try:
                made.append(self._typed(texts))
            except BadRecordError as error:
                made.append(error)
        return made

    def _typed(self, texts: list[str]) -> list[Any]:
        if len(texts) != len(self.columns):
            raise BadRecordError(f"it has {len(texts)} values, and there are {len(self.columns)} columns")
        return [from_text(each, texts[place]) for each, place in zip(self._types, self._places, strict=True)]
