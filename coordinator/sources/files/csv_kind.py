"""Files of CSV whose first row names the columns: each file may have its own, in any order."""

from __future__ import annotations

import csv

from coordinator.sources.files.csv_records import BYTE_ORDER_MARK, RowFinder
from coordinator.sources.files.file_kind import RecordKind
from coordinator.sources.files.prefix_digest import PrefixDigest
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.record_scanner import RecordScanner, Scanner
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.sources.records.csv_fields import CsvDialect, CsvFields
from coordinator.sources.records.field_types import FieldTypes, checked_fields
from coordinator.sources.records.record_output import RecordOutput
from state.errors import SourceError, TopologyError
from state.printable import one_line


class HeaderCsvKind(RecordKind):
    """CSV with a header. The driver reads it when it opens a file, and each range carries it to its reader.

    Args:
        fields: the columns that are wanted, with types.
        dialect: of all files.
        origin_fields: see `RecordOutput`.
        offered: see `RecordOutput`.
        on_bad_record: see `RecordOutput`.
        record_bytes_max: longest row.
    """

    def __init__(
        self,
        fields: FieldTypes,
        dialect: CsvDialect,
        *,
        offered: tuple[str, ...],
        origin_fields: tuple[str, ...],
        on_bad_record: str,
        record_bytes_max: int,
    ) -> None:
        self._fields, self._dialect = fields, dialect
        self._wanted = tuple(each.name for each in checked_fields("CsvFiles", fields))
        self._offered, self._origin_fields, self._on_bad_record = offered, origin_fields, on_bad_record
        self._outputs: dict[tuple[str, ...], RecordOutput] = {}
        super().__init__(
            "CSV files",
            self._output(self._wanted),
            number_name="row_number",
            find=RowFinder(dialect.options),
            skips_blank=True,
            record_bytes_max=record_bytes_max,
        )

    def output_for(self, part: RecordRange) -> RecordOutput:
        return self._output(part.columns)

    def scanner(
        self, file: InputFile, end: int | None, after: RecordRange | None, prefix: PrefixDigest, block_bytes: int
    ) -> Scanner:
        made = super().scanner(file, end, after, prefix, block_bytes)
        if after is None and isinstance(made, RecordScanner) and not made.is_done():
            header = made.take_header()
            if header != BYTE_ORDER_MARK:  # as some programs write a table without a row
                made.columns = self._columns(file.path, header)
        return made

    def _columns(self, path: str, header: bytes) -> tuple[str, ...]:
        try:
            (names,) = self._dialect.rows([header.removeprefix(BYTE_ORDER_MARK).decode().rstrip("\r\n")])
            CsvFields(names, self._wanted)
        except (csv.Error, ValueError, TopologyError) as error:
            shown = one_line(header.decode("utf-8", "replace").rstrip("\r\n"))
            raise SourceError(
                f"input file {path!r} begins with the row {shown!r}, which cannot be its header, because the fields "
                f"{list(self._wanted)} are wanted of it: {error}; fix the file, or leave it out"
            ) from None
        return tuple(names)

    def _output(self, columns: tuple[str, ...]) -> RecordOutput:
        if columns not in self._outputs:
            self._outputs[columns] = RecordOutput(
                CsvFields(columns, self._fields, dialect=self._dialect),
                offered=self._offered,
                origin_fields=self._origin_fields,
                on_bad_record=self._on_bad_record,
            )
        return self._outputs[columns]
