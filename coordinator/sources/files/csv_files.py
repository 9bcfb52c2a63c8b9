"""Files of CSV as a source: one tuple a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.sources.files.csv_kind import HeaderCsvKind
from coordinator.sources.files.csv_records import RowFinder
from coordinator.sources.files.file_kind import FILE, OFFSET, RecordKind
from coordinator.sources.files.file_spout import FileSpout, Pattern
from coordinator.sources.files.growing.follow import Follow
from coordinator.sources.files.parquet_kind import ROW_NUMBER
from coordinator.sources.records.csv_fields import CsvDialect, CsvFields
from coordinator.sources.records.field_types import FieldTypes
from coordinator.sources.records.record_output import RecordOutput
from state.errors import TopologyError

OFFERED = (FILE, OFFSET, ROW_NUMBER)
ROW_BYTES_MAX = 1024 * 1024
"""A quote that is never closed takes everything after it into one row; this is where it is noticed."""


class CsvFiles(FileSpout):
    """Rows of CSV files, as tuples of some of their columns. A line break inside quotes is part of a value.

    Files are found, ordered, unpacked, followed and replayed as by `TextFiles`. Empty lines are left out.

    Args:
        pattern: see `TextFiles`.
        fields: column -> type of the columns that are wanted, see `CsvFields`.
        rows_per_batch: rows of a transaction, empty lines included.
        columns: names of all columns, in order, of files without a header. Without it, the first row of every file
            names its columns.
        dialect: of the csv module: a registered name, a subclass of `csv.Dialect`, or an object of one.
        options: of the csv module, such as ``{"delimiter": ";"}``; they win over the dialect's.
        on_bad_record: see `TextFiles`.
        with_origin: which of ``"file"``, ``"offset"`` and ``"row_number"`` (from 1, empty lines included, the header
            not) every tuple carries.
        follow: see `TextFiles`.
        filesystem: see `TextFiles`.
        row_bytes_max: a longer row is refused, which is how a quote that is never closed is noticed.

    Raises:
        TopologyError: nothing matches a pattern, a file holds no text, or a parameter is of no use.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        fields: FieldTypes | None = None,
        rows_per_batch: int | str = 1000,
        *,
        columns: Sequence[str] | None = None,
        dialect: Any = "excel",
        options: dict[str, Any] | None = None,
        on_bad_record: str = "fail",
        with_origin: Sequence[str] = (),
        follow: bool | Follow = False,
        filesystem: Any = None,
        row_bytes_max: int = ROW_BYTES_MAX,
    ) -> None:
        known = CsvDialect(dialect, **(options or {}))
        kind: RecordKind
        if columns is not None:
            rows = CsvFields(columns, fields, dialect=known)
            output = RecordOutput(rows, offered=OFFERED, origin_fields=with_origin, on_bad_record=on_bad_record)
            find = RowFinder(known.options)
            kind = RecordKind(
                "CSV files", output, number_name=ROW_NUMBER, find=find, skips_blank=True, record_bytes_max=row_bytes_max
            )
        elif fields is not None:
            kind = HeaderCsvKind(
                fields,
                known,
                offered=OFFERED,
                origin_fields=tuple(with_origin),
                on_bad_record=on_bad_record,
                record_bytes_max=row_bytes_max,
            )
        else:
            raise TopologyError(
                "CsvFiles has neither fields nor columns; give fields={'price': Decimal, …} to take columns by the "
                "header of each file, or columns=[…] for files without one"
            )
        super().__init__(pattern, rows_per_batch, "rows_per_batch", kind, follow=follow, filesystem=filesystem)
