"""Parquet files as a source: one tuple a row, cut by row groups.

A row group is read as a whole, and proven by a digest of its bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM, OutputFieldsDeclarer
from coordinated_bolt.streams.records import RowsOf, RowT
from coordinator.option_checks import names_in
from coordinator.sources.files.file_kind import EMITTED_RECORDS, FILE, ROW_NUMBER, FileKind
from coordinator.sources.files.file_spout import FileSpout, Pattern
from coordinator.sources.files.follow import Follow
from coordinator.sources.files.prefix_digest import PrefixDigest, short_digest
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.record_scanner import Scanner
from coordinator.sources.files.stores.arrow_streams import require_arrow
from coordinator.sources.files.stores.arrow_tables import read_columns, read_footer, values_of
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.sources.files.stores.packed_files import PARQUET
from coordinator.sources.records.field_types import FieldType, checked_fields, declared_types, record_class_of
from coordinator.sources.records.record_output import refuse_text
from state.errors import SourceError, TopologyError

OFFERED = (FILE, ROW_NUMBER)
VALUE_BYTES = 64
"""Approximate size of a value in Python."""


class ParquetFiles(FileSpout, RowsOf[RowT]):
    """Rows of Parquet files, as tuples of some of their columns; needs pyarrow (the extra ``arrow``).

    Files are found, ordered, followed and replayed as by `TextFiles`. A transaction is cut out of row groups. Every
    task, in every wave, reads and proves the whole row group even for a few of its rows, so row groups of some tens of
    megabytes are best. Values have Python's types; times with a zone are in UTC.

    Args:
        pattern: see `TextFiles`.
        fields: names of the wanted columns; or a NamedTuple or dataclass with these names, whose types the values must
            have, see `record_class_of`.
        rows_per_batch: rows per transaction; only the last transaction has fewer.
        with_origin: which of ``"file"`` and ``"row_number"`` (from 1) every tuple carries after the fields.
        follow: see `TextFiles`.
        filesystem: see `TextFiles`.

    Raises:
        TopologyError: a parameter is invalid, or pyarrow is missing; or, as a run starts, no file matches a pattern,
            or a file is not Parquet.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        fields: type[RowT] | Sequence[str],
        rows_per_batch: int | str = 10_000,
        *,
        with_origin: Sequence[str] = (),
        follow: bool | Follow = False,
        filesystem: Any = None,
    ) -> None:
        record_class = record_class_of(fields)
        if record_class is None and (isinstance(fields, (Mapping, str)) or not names_in(fields)):
            raise TopologyError(
                f"fields={fields!r} of ParquetFiles has to be a list of names, or a class; their types are the files'"
            )
        wanted = checked_fields(type(self).__name__, record_class or names_in(fields))
        kind = ParquetKind(wanted, with_origin, record_class)
        super().__init__(pattern, rows_per_batch, "rows_per_batch", kind, follow=follow, filesystem=filesystem)


class ParquetKind(FileKind):
    """Rows of Parquet files.

    Args:
        fields: the wanted columns; where one has a type, all values must have it.
        origin_fields: which of `OFFERED` each tuple carries after the fields.

    Raises:
        TopologyError: an origin field is not offered or is also a column, or pyarrow is not installed.
    """

    name = "Parquet files"

    def __init__(
        self, fields: Sequence[FieldType], origin_fields: Sequence[str], record_class: type[Any] | None = None
    ) -> None:
        require_arrow("a source of Parquet files")
        refuse_text(origin_fields)
        self._types, self._record_class = fields, record_class
        self.fields = tuple(each.name for each in fields)
        for name in origin_fields:
            if name not in OFFERED or name in self.fields:
                raise TopologyError(
                    f"origin field {name!r} of ParquetFiles is unknown or a column; there are {OFFERED}"
                )
        self.origin_fields = tuple(origin_fields)
        self._read: tuple[tuple[str, int, int], int, list[Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None, "_record_class": None}  # executors may not know its module

    def declare(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare((*self.fields, *self.origin_fields), types=declared_types(self._types))
        if self._record_class is not None:
            declarer.record_classes[DEFAULT_STREAM] = self._record_class

    def refusal(self, path: str, head: bytes) -> str:
        if not head or head.startswith(PARQUET):
            return ""
        return f"input file {path!r} is not a Parquet file, which begins with {PARQUET!r}: leave it out of the pattern"

    def scanner(
        self, file: InputFile, end: int | None, after: RecordRange | None, prefix: PrefixDigest, block_bytes: int
    ) -> Scanner:
        return RowGroupScanner(file, self.fields, after, prefix, block_bytes)

    def estimated_bytes(self, part: RecordRange) -> int:
        # a range needs its whole row group, which is read only once for many ranges
        return min(part.end - part.start, part.count * len(self.fields) * VALUE_BYTES)

    def prove(self, part: RecordRange, file: InputFile) -> bytes:
        content = file.read(part.start, part.end)
        found = short_digest(hashlib.sha256(content + read_footer(file).content))
        if found != part.digest:
            file.fail_changed(part.start, part.end, expected_digest=part.digest, found_digest=found)
        return content

    def emit(
        self, part: RecordRange, file: InputFile, collector: BatchOutputCollector, context: TopologyContext
    ) -> None:
        columns, shift = self._columns(part, file)
        wanted = [values_of(part.path, column, shift, part.count) for column in columns]
        for field, values in zip(self._types, wanted, strict=True):
            self._check(part, field, values)
        for name in self.origin_fields:
            numbers = list(range(part.first + 1, part.first + 1 + part.count))
            wanted.append(numbers if name == ROW_NUMBER else [part.path] * part.count)
        for start in range(0, part.count, EMITTED_RECORDS):
            collector.emit_batch([column[start : start + EMITTED_RECORDS] for column in wanted])

    def _check(self, part: RecordRange, field: FieldType, values: list[Any]) -> None:
        """Raises SourceError unless all values have the type of their field, if it has one."""
        allowed = {field.kind, type(None) if field.may_be_none else field.kind}
        if field.kind is None or allowed.issuperset(map(type, values)):
            return
        place, wrong = next(each for each in enumerate(values) if type(each[1]) not in allowed)
        raise SourceError(
            f"row {part.first + place + 1} of input file {part.path!r} is not as declared: {field.wrong(wrong)}; "
            "declare the type that the file has, or fix the file"
        )

    def _columns(self, part: RecordRange, file: InputFile) -> tuple[list[Any], int]:
        """Returns the columns of a range's row group, and the range's first row in it; caches the last row group."""
        key = (part.path, part.start, part.digest)
        if self._read is None or self._read[0] != key:
            footer, content = read_footer(file), self.prove(part, file)
            (group,) = [each for each in footer.groups if each.start == part.start]  # the footer is in the digest
            self._read = key, group.first_row, read_columns(file, footer, group, content, self.fields)
        _, first_row, columns = self._read
        return columns, part.first - first_row


class RowGroupScanner(Scanner):
    """Cuts rows out of one Parquet file, a row group after the other.

    Args:
        file: the file.
        fields: names of the columns that the file must have.
        after: the last range that was cut from the file; None to start at its beginning.
        prefix: the digest up to the end of `after`.
        block_bytes: how much is read at a time.

    Raises:
        SourceError: the file is damaged, lacks a column, or its row groups have changed since the run began to read it.
    """

    def __init__(
        self,
        file: InputFile,
        fields: Sequence[str],
        after: RecordRange | None,
        prefix: PrefixDigest,
        block_bytes: int,
    ) -> None:
        self.file = file
        self.offset = prefix.end
        self.prefix, self._block_bytes = prefix, block_bytes
        self._footer = read_footer(file)
        for name in fields:
            if name not in self._footer.columns:
                raise SourceError(
                    f"input file {file.path!r} has no column {name!r}, only {list(self._footer.columns)}: fix it, or "
                    "leave it out"
                )
            if self._footer.columns.count(name) > 1:
                raise SourceError(f"input file {file.path!r} has several columns {name!r}: fix it, or leave it out")
            if name in self._footer.refused:
                raise SourceError(
                    f"column {name!r} of input file {file.path!r} has the type {self._footer.refused[name]}, which a "
                    "tuple cannot carry: write it as text or as a number, or do without that column"
                )
        self._row = 0 if after is None else after.first + after.count
        self._digest = 0 if after is None else after.digest
        groups = [each for each in self._footer.groups if each.first_row + each.row_count > self._row]
        self._groups = groups[::-1]
        if after is not None and groups and groups[0].start not in (after.start, after.end):
            raise SourceError(
                f"input file {file.path!r} has other row groups than when the run began to read it: {file.remedy()}"
            )

    def is_done(self) -> bool:
        return not self._groups

    def take(self, record_limit: int) -> RecordRange:
        group = self._groups[-1]
        if self.offset < group.end:
            self._digest = self._read_on(group.end)
        first = self._row
        self._row = min(first + record_limit, group.first_row + group.row_count)
        if self._row == group.first_row + group.row_count:
            self._groups.pop()
        mark = self.mark()
        count = self._row - first
        return RecordRange(self.file.path, group.start, group.end, first, count, self._digest, (), mark)

    def _read_on(self, end: int) -> int:
        """Adds a row group to the digest of the file, and returns the digest of the row group and the footer."""
        hasher = hashlib.sha256()
        while self.offset < end:
            piece = self.file.read(self.offset, min(self.offset + self._block_bytes, end))
            hasher.update(piece)
            self.prefix.update(piece)
            self.offset += len(piece)
        hasher.update(self._footer.content)
        return short_digest(hasher)
