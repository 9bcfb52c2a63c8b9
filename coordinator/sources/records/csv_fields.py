"""The format of CSV rows, read by the csv module in any of its dialects."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from coordinator.option_checks import names_in
from coordinator.sources.records.field_types import (
    FieldTypes,
    checked_fields,
    column_from_text,
    declared_types,
    from_text,
    record_class_of,
)
from coordinator.sources.records.plain_formats import decoded
from coordinator.sources.records.record_format import BadRecordError, RecordFormat
from state.errors import TopologyError

OPTIONS = ("delimiter", "quotechar", "escapechar", "doublequote", "skipinitialspace", "quoting")
_QUOTINGS = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE)

_EVERY_BYTE = bytes(range(256))
_ADVICE = " - do you need to open the file in universal-newline mode?"
_CONVERT = ", a carriage return; if rows end with those, convert the file (tr '\\r' '\\n')"


class CsvDialect:
    """A dialect of the csv module, as plain values that can be shipped. A spec.

    Args:
        dialect: a registered name, a subclass of `csv.Dialect`, or an instance of one.
        options: format options of the csv module; they override the dialect's.

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
                "a CSV dialect must not convert texts by their quoting: types are given by fields=…; take "
                "quoting=csv.QUOTE_MINIMAL"
            )

    def rows(self, lines: Sequence[str]) -> list[list[str]]:
        """Reads rows without their line feeds, strictly.

        Raises:
            csv.Error: a row is not in the dialect.
        """
        ended = (f"{line}\n" for line in lines)  # without it, csv does not end a row after an escaped line break
        try:
            return list(csv.reader(ended, strict=True, **self.options))
        except csv.Error as error:
            raise csv.Error(str(error).replace(_ADVICE, _CONVERT)) from None

    def other_delimiter(self, row: str, names: Sequence[str] = (), count: int = 0) -> str:
        """Returns a usual delimiter that splits a row into these names, or into `count` values; "" if none does."""
        for other in ",;\t|".replace(self.options["delimiter"], ""):
            values = [value.strip("\r\n \"'\ufeff") for value in row.split(other)]
            if {*names} <= {*values} if names else len(values) == count:
                return other
        return ""


class CsvFields(RecordFormat):
    """Fields of a row of CSV, by the names of its columns.

    A row with more or fewer values than there are columns is bad, and so is a text that cannot be read as its field's
    type. With a type ``… | None``, an empty text is None.

    Args:
        columns: names of all columns, in order; the names of unwanted columns may be empty, or occur twice.
        fields: the wanted columns, with types as for `JsonFields`. By default all of them, as texts.
        dialect: a dialect of the csv module: a registered name, a subclass of `csv.Dialect`, or an instance of one.
        options: format options of the csv module, such as ``delimiter=";"``; they override the dialect's.

    Raises:
        TopologyError: a field is not a column, or a type or the dialect is unknown.
    """

    def __init__(
        self,
        columns: Sequence[str],
        fields: FieldTypes | type[Any] | None = None,
        *,
        dialect: Any = "excel",
        **options: Any,
    ) -> None:
        self.columns = () if isinstance(columns, str) else names_in(columns)
        if not self.columns or (fields is None and len(set(self.columns)) != len(self.columns)):
            raise TopologyError(f"columns={columns!r} of CsvFields has to be a list of different names")
        self._types = checked_fields(type(self).__name__, self.columns if fields is None else fields)
        self.record_class = record_class_of(fields)
        for each in self._types:
            if (count := self.columns.count(each.name)) != 1:
                found = f"is the name of {count} columns" if count else "is not a column"
                raise TopologyError(f"field {each.name!r} of CsvFields {found}; there are {self.columns}")
        self._places = tuple(self.columns.index(each.name) for each in self._types)
        self.dialect = dialect if isinstance(dialect, CsvDialect) else CsvDialect(dialect, **options)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._types)

    @property
    def types(self) -> Mapping[str, Any]:
        return declared_types(self._types)

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
        if len(found) != len(records):  # a row without an end has swallowed the next one
            return super().rows(records)
        made: list[Sequence[Any] | BadRecordError] = []
        for texts in found:
            try:
                made.append(self._typed(texts))
            except BadRecordError as error:
                made.append(error)
        return made

    def make_columns(self, records: Sequence[bytes]) -> list[list[Any]] | None:
        if type(self).row is not CsvFields.row or type(self).rows is not CsvFields.rows or not records:
            return None
        content = b"\n".join([*records, b""]).replace(b"\r\n", b"\n")[:-1]
        if b"\r" in content or content.count(b"\n") >= len(records) or self.dialect.options["escapechar"]:
            return None  # a value or the end of a row may hold a line break
        try:
            columns = self._split(content, len(records)) or self._parsed(content, len(records))
            return None if columns is None else list(map(column_from_text, self._types, columns))
        except (csv.Error, ValueError, ArithmeticError):  # `rows` says which record is bad, and why
            return None

    def _split(self, content: bytes, count: int) -> list[list[str]] | None:
        """Returns the columns of rows in which nothing is quoted; None if something may be, or a row has another width.

        A row is as wide as there are columns if no other byte than its delimiters and its line feed is left of it.
        """
        options, width = self.dialect.options, len(self.columns)
        delimiter, quote = options["delimiter"].encode(), (options["quotechar"] or "").encode()
        if len(delimiter) > 1 or options["skipinitialspace"] or (quote and quote in content):
            return None
        ends = content.translate(None, _EVERY_BYTE.replace(delimiter, b"").replace(b"\n", b""))
        if ends + b"\n" != (delimiter * (width - 1) + b"\n") * count:
            return None
        values = content.decode().replace("\n", options["delimiter"]).split(options["delimiter"])
        if width == 1 and "" in values:  # csv takes an empty line for a row without any value
            return None
        if len(content) > csv.field_size_limit() and max(map(len, values)) > csv.field_size_limit():
            return None
        return [values[place::width] for place in self._places]

    def _parsed(self, content: bytes, count: int) -> list[list[str]] | None:
        """Returns the columns of rows as the csv module reads them; None if a row has another width."""
        rows = list(csv.reader(content.decode().split("\n"), strict=True, **self.dialect.options))
        if len(rows) != count or {*map(len, rows)} != {len(self.columns)}:
            return None
        return [list(map(itemgetter(place), rows)) for place in self._places]

    def _typed(self, texts: list[str]) -> list[Any]:
        if len(texts) != len(self.columns):
            other = self.dialect.other_delimiter(texts[0], count=len(self.columns)) if len(texts) == 1 else ""
            hint = f"; perhaps they are separated by {other!r}: give that as delimiter" if other else ""
            raise BadRecordError(f"it has {len(texts)} values, and there are {len(self.columns)} columns{hint}")
        return [from_text(each, texts[place]) for each, place in zip(self._types, self._places, strict=True)]
