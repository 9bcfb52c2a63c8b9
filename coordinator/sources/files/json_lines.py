"""Files of JSON Lines as a source: one object a line, one tuple an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator.sources.files.file_kind import RecordKind
from coordinator.sources.files.file_spout import FileSpout, Pattern
from coordinator.sources.files.growing.follow import Follow
from coordinator.sources.files.record_scanner import RECORD_BYTES_MAX
from coordinator.sources.files.text_files import OFFERED
from coordinator.sources.records.field_types import FieldTypes
from coordinator.sources.records.json_fields import JsonFields
from coordinator.sources.records.record_format import RecordFormat
from coordinator.sources.records.record_output import RecordOutput


class JsonLines(FileSpout):
    """Objects of JSON Lines files, as tuples of some of their fields. Empty lines are left out.

    Files are found, ordered, unpacked, followed and replayed as by `TextFiles`.

    Args:
        pattern: see `TextFiles`.
        fields: name -> type of the fields that are wanted, see `JsonFields`; or a format for the lines.
        lines_per_batch: lines of a transaction, empty ones included.
        on_bad_record: see `TextFiles`.
        with_origin: see `TextFiles`.
        follow: see `TextFiles`.
        filesystem: see `TextFiles`.
        line_bytes_max: a longer line is refused.

    Raises:
        TopologyError: nothing matches a pattern, a file holds no text, or a parameter is of no use.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        fields: FieldTypes | RecordFormat,
        lines_per_batch: int | str = 1000,
        *,
        on_bad_record: str = "fail",
        with_origin: Sequence[str] = (),
        follow: bool | Follow = False,
        filesystem: Any = None,
        line_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        record_format = fields if isinstance(fields, RecordFormat) else JsonFields(fields)
        output = RecordOutput(record_format, offered=OFFERED, origin_fields=with_origin, on_bad_record=on_bad_record)
        kind = RecordKind("JSON lines", output, skips_blank=True, record_bytes_max=line_bytes_max)
        super().__init__(pattern, lines_per_batch, "lines_per_batch", kind, follow=follow, filesystem=filesystem)
