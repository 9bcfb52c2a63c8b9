"""Parquet files as a source: one tuple a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.sources.files.file_spout import FileSpout, Pattern
from coordinator.sources.files.growing.follow import Follow
from coordinator.sources.files.parquet_kind import ParquetKind
from coordinator.sources.records.field_types import checked_fields
from state.errors import TopologyError


class ParquetFiles(FileSpout):
    """Rows of Parquet files, as tuples of some of their columns; takes pyarrow (the extra ``arrow``).

    Files are found, ordered, followed and replayed as by `TextFiles`. A transaction is cut out of row groups; the bytes
    of a whole row group are read and proven for every task and wave that has a share in it, so row groups of some tens
    of megabytes are best. Values are Python's; times with a zone are in UTC.

    Args:
        pattern: see `TextFiles`.
        fields: names of the columns that are wanted.
        rows_per_batch: rows of a transaction; only the last one has fewer.
        with_origin: which of ``"file"`` and ``"row_number"`` (from 1) every tuple carries after them.
        follow: see `TextFiles`.
        filesystem: see `TextFiles`.

    Raises:
        TopologyError: nothing matches a pattern, a file is not Parquet, pyarrow is missing, or a parameter is of no
            use.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        fields: Sequence[str],
        rows_per_batch: int | str = 10_000,
        *,
        with_origin: Sequence[str] = (),
        follow: bool | Follow = False,
        filesystem: Any = None,
    ) -> None:
        if isinstance(fields, (Mapping, str)):
            raise TopologyError(
                f"fields={fields!r} of ParquetFiles has to be a list of names; their types are those of the files"
            )
        names = [each.name for each in checked_fields(type(self).__name__, list(fields))]
        kind = ParquetKind(names, with_origin)
        super().__init__(pattern, rows_per_batch, "rows_per_batch", kind, follow=follow, filesystem=filesystem)
