"""CSV files as a source: one tuple per row, with columns that the user gives or each file's first row names."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinated_bolt.streams.records import RowsOf, RowT
from coordinator.sources.files.file_kind import EDGE_BYTES, FILE, OFFSET, ROW_NUMBER, RecordKind, line_ends
from coordinator.sources.files.file_spout import FileSpout, Pattern
from coordinator.sources.files.follow import Follow
from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.record_scanner import BLOCK_BYTES, BYTE_ORDER_MARK, RecordScanner, after_lines
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.sources.files.text_encoding import UTF_8, UTF_8_HINT, as_utf_8, checked_encoding
from coordinator.sources.records.csv_fields import CsvDialect, CsvFields
from coordinator.sources.records.field_types import FieldTypes, checked_fields, declared_types, record_class_of
from coordinator.sources.records.record_output import RecordOutput
from state.errors import SourceError, TopologyError
from state.printable import one_line

OFFERED = (FILE, OFFSET, ROW_NUMBER)
ROW_BYTES_MAX = 1024 * 1024
"""Default length of the longest row; reveals a quote that is never closed, which makes the rest of a file one row."""


class CsvFiles(FileSpout, RowsOf[RowT]):
    """Rows of CSV files, as tuples of some of their columns. A line break inside quotes is part of a value.

    Files are found, ordered, unpacked, followed and replayed as by `TextFiles`. Empty lines are left out.

    Args:
        pattern: see `TextFiles`.
        fields: the wanted columns, as column -> type, see `CsvFields`; or as a NamedTuple or dataclass, see
            `record_class_of`.
        rows_per_batch: rows per transaction, empty lines included.
        columns: names of all columns in order, for files without a header. If omitted, the first row of every file
            names its columns.
        dialect: a dialect of the csv module: a registered name, a subclass of `csv.Dialect`, or an instance of one.
        options: format options of the csv module, such as ``{"delimiter": ";"}``; they override the dialect's.
        encoding: see `TextFiles`.
        on_bad_record: see `TextFiles`.
        with_origin: which of ``"file"``, ``"offset"`` and ``"row_number"`` (from 1, empty lines included, the header
            not) every tuple carries.
        follow: see `TextFiles`.
        filesystem: see `TextFiles`.
        row_bytes_max: longer rows are refused, so that a quote that is never closed is noticed; an excess under 1 MiB
            may go unnoticed.

    Raises:
        TopologyError: a parameter is invalid; or, as a run starts, no file matches a pattern, or a file is not text.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        fields: type[RowT] | FieldTypes | None = None,
        rows_per_batch: int | str = 1000,
        *,
        columns: Sequence[str] | None = None,
        dialect: Any = "excel",
        options: dict[str, Any] | None = None,
        encoding: str = UTF_8,
        on_bad_record: str = "fail",
        with_origin: Sequence[str] = (),
        follow: bool | Follow = False,
        filesystem: Any = None,
        row_bytes_max: int = ROW_BYTES_MAX,
    ) -> None:
        if options is not None and not isinstance(options, Mapping):
            raise TopologyError(f"options={options!r} of CsvFiles has to be a dict, such as {{'delimiter': ';'}}")
        known = CsvDialect(dialect, **{str(name): value for name, value in (options or {}).items()})
        if columns is None and fields is None:
            raise TopologyError(
                "CsvFiles has neither fields nor columns; give fields={'price': Decimal, …} to take columns by the "
                "header of each file, or columns=[…] for files without one"
            )
        kind = CsvKind(
            columns,
            fields,
            known,
            encoding="" if encoding == UTF_8 else checked_encoding("CsvFiles", encoding),
            origin_fields=with_origin,
            on_bad_record=on_bad_record,
            record_bytes_max=row_bytes_max,
        )
        super().__init__(pattern, rows_per_batch, "rows_per_batch", kind, follow=follow, filesystem=filesystem)


class CsvKind(RecordKind):
    """CSV files whose columns are given or are named by the first row of each file, in any order.

    The driver reads a header when it opens a file, and each range carries it to its reader.

    Args:
        columns: names of all columns of files without a header; None if each file has one.
        fields: the wanted columns and their types.
        dialect: the dialect of all files.
        origin_fields: see `RecordOutput`.
        on_bad_record: see `RecordOutput`.
        record_bytes_max: length of the longest row.
        encoding: see `checked_encoding`.
    """

    def __init__(
        self,
        columns: Sequence[str] | None,
        fields: FieldTypes | type[Any] | None,
        dialect: CsvDialect,
        *,
        origin_fields: Sequence[str],
        on_bad_record: str,
        record_bytes_max: int,
        encoding: str = "",
    ) -> None:
        self._has_header = columns is None
        record_class = record_class_of(fields)
        self._fields = fields if record_class is None else declared_types(checked_fields("CsvFiles", record_class))
        self._dialect = dialect
        self._origin_fields, self._on_bad_record = origin_fields, on_bad_record
        self._outputs: dict[tuple[str, ...], RecordOutput] = {}
        if columns is None:
            assert fields is not None, "CsvFiles has refused to be given neither"
            columns = [each.name for each in checked_fields("CsvFiles", fields)]
        self._rows = RowFinder(dialect.options)
        super().__init__(
            "CSV files",
            self._output(columns, record_class),
            number_name=ROW_NUMBER,
            find=self._rows,
            skips_blank=True,
            record_bytes_max=record_bytes_max,
            encoding=encoding,
        )

    def output_for(self, part: RecordRange) -> RecordOutput:
        if not part.columns:
            return self.output
        if part.columns not in self._outputs:
            self._outputs[part.columns] = self._output(part.columns)
        return self._outputs[part.columns]

    def split(self, content: bytes) -> list[bytes]:
        if self._rows.are_lines(content):
            bare = content.removesuffix(b"\n").split(b"\n")
        else:
            ends = self.ends(content)
            bare = [content[start:end].removesuffix(b"\n") for start, end in zip([0, *ends], ends, strict=False)]
        if not content.startswith(b"\r") and b"\n\r" not in content:  # no row begins with one, so none is blank
            return bare
        return [piece if piece.strip(b"\r") else b"" for piece in bare]  # the csv module knows which \r end a row

    def ends(self, content: bytes) -> list[int]:
        return self._rows.ends(content)

    def ends_at(self, file: InputFile, end: int) -> bool:
        escape = (self._dialect.options["escapechar"] or "").encode()
        if not end or not escape or not super().ends_at(file, end):
            return super().ends_at(file, end)
        before = file.read(max(0, end - EDGE_BYTES), end - 1)
        return (len(before) - len(before.rstrip(escape))) % 2 == 0  # an odd number escapes the line feed

    def scanner(
        self, file: InputFile, end: int | None, after: RecordRange | None, prefix: PrefixDigest, block_bytes: int
    ) -> RecordScanner:
        made = super().scanner(file, end, after, prefix, block_bytes)
        if self._has_header and after is None:
            header = b""
            while not header.removeprefix(BYTE_ORDER_MARK).strip(b"\r\n") and not made.is_done():
                header = made.take_header()  # the first line with more than a byte order mark
            if header.removeprefix(BYTE_ORDER_MARK).strip(b"\r\n"):
                made.columns = self._columns(file.path, header)
        return made

    def read_so_far(self, file: InputFile, mark: PrefixMark) -> RecordRange:
        read = super().read_so_far(file, mark)
        return replace(read, columns=self.scanner(file, None, None, PrefixDigest(), BLOCK_BYTES).columns)

    def _columns(self, path: str, header: bytes) -> tuple[str, ...]:
        wanted = self.output.record_format.fields
        header = as_utf_8(header, self.encoding) if self.encoding else header
        try:
            (names,) = self._dialect.rows([header.removeprefix(BYTE_ORDER_MARK).decode().removesuffix("\n")])
            CsvFields(names, wanted)
        except (csv.Error, ValueError, TopologyError) as error:
            shown = one_line(header.decode("utf-8", "replace").rstrip("\r\n"))
            other = self._dialect.other_delimiter(header.decode("utf-8", "replace"), wanted)
            hint = UTF_8_HINT if isinstance(error, UnicodeDecodeError) else ""
            if other:
                raise SourceError(
                    f"input file {path!r} is separated by {other!r}, not by {self._dialect.options['delimiter']!r}, by "
                    f"its header {shown!r}: give CsvFiles options={{'delimiter': {other!r}}}"
                ) from None
            raise SourceError(
                f"input file {path!r} begins with the row {shown!r}, which cannot be the header for the fields "
                f"{list(wanted)}: {error}{hint}; name its columns in fields, fix the file, or leave it out"
            ) from None
        return tuple(names)

    def _output(self, columns: Sequence[str], record_class: type[Any] | None = None) -> RecordOutput:
        return RecordOutput(
            CsvFields(columns, record_class or self._fields, dialect=self._dialect),
            offered=OFFERED,
            origin_fields=self._origin_fields,
            on_bad_record=self._on_bad_record,
            utf_8_hint=UTF_8_HINT,
        )


class RowFinder:
    """Finds the ends of rows. A spec: pickles.

    Args:
        options: options of the dialect, see `CsvDialect`.

    Raises:
        TopologyError: a character of the dialect is not ASCII, or is a line break.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        for name in ("delimiter", "quotechar", "escapechar"):
            character = options[name]
            if character is not None and (not character.isascii() or character in "\r\n"):
                raise TopologyError(
                    f"{name}={character!r} of a CSV file has to be an ASCII character and no line break"
                )
        quotes = options["quoting"] != csv.QUOTE_NONE and options["quotechar"]
        self._special = tuple(
            character.encode() for character in (quotes, options["escapechar"]) if character
        )  # where none of them occurs, every line is a row
        self._row = re.compile(_pattern(options, options["quotechar"] if quotes else None), re.DOTALL)

    def __call__(self, block: bytes, cursor: int, wanted: int) -> tuple[int, int]:
        """See `Find`; stops after the last whole row."""
        if self.are_lines(block, cursor):
            stop, found = after_lines(block, cursor, wanted)
            return (stop, found) if found == wanted else (max(cursor, block.rfind(b"\n", cursor) + 1), found)
        found = 0
        while found < wanted and (row := self._row.match(block, cursor)):
            cursor = row.end()
            found += 1
        return cursor, found

    def are_lines(self, content: bytes, start: int = 0) -> bool:
        """Returns whether every line from `start` on is a row, because nothing is quoted or escaped."""
        return all(content.find(character, start) < 0 for character in self._special)

    def ends(self, content: bytes) -> list[int]:
        """Returns the offset where each row ends; the last row may lack its line feed."""
        if self.are_lines(content):
            return line_ends(content)
        ends, cursor = [], 0
        for row in self._row.finditer(content):
            if row.start() != cursor:
                break  # a row without an end
            cursor = row.end()
            ends.append(cursor)
        return ends if cursor == len(content) else [*ends, len(content)]


def _pattern(options: Mapping[str, Any], quote: str | None) -> bytes:
    """Returns a regular expression for one row, line feed included."""
    delimiter, escape = _literal(options["delimiter"]), _literal(options["escapechar"])
    escaped = b"|" + escape + b"." if escape else b""
    value = b"(?:[^" + delimiter + escape + rb"\n]++" + escaped + b")*+"
    if quote is not None:
        mark = _literal(quote)
        doubled = b"|" + mark + mark if options["doublequote"] else b""
        spaces = b" *+" if options["skipinitialspace"] else b""
        quoted = mark + b"(?:[^" + mark + escape + b"]++" + doubled + escaped + b")*+" + mark
        value = b"(?:" + spaces + quoted + value + b"|(?!" + spaces + mark + b")" + value + b")"
    return b"(?:" + BYTE_ORDER_MARK + b")?" + value + b"(?:" + delimiter + value + rb")*+\n"


def _literal(character: str | None) -> bytes:
    return b"" if character is None else re.escape(character).encode()
