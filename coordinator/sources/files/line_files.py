"""Files of lines as sources: of text, one tuple a line, and of JSON Lines, one tuple an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from coordinated_bolt.streams.records import RowsOf, RowT
from coordinator.sources.files.file_kind import FILE, OFFSET, RecordKind
from coordinator.sources.files.file_spout import FileSpout, Pattern
from coordinator.sources.files.follow import Follow
from coordinator.sources.files.record_scanner import RECORD_BYTES_MAX
from coordinator.sources.files.text_encoding import UTF_8, UTF_8_HINT, checked_encoding
from coordinator.sources.records.field_types import FieldTypes
from coordinator.sources.records.json_fields import JsonFields
from coordinator.sources.records.plain_formats import TextLine
from coordinator.sources.records.record_format import RecordFormat
from coordinator.sources.records.record_output import RecordOutput
from state.errors import TopologyError

LINE_NUMBER = "line_number"
OFFERED = (FILE, OFFSET, LINE_NUMBER)

EncodingErrors: TypeAlias = Literal["strict", "replace"]


class TextFiles(FileSpout):
    r"""Lines of text files, as tuples of one field, ``line``.

    Files are read one after another, in the order of their absolute paths; a batch may span several files.
    A line ends with ``\n`` or ``\r\n``, which is left out; a last line without it counts, too. A byte order mark at the
    start of a file is left out. Files compressed with gzip or zstd (which needs pyarrow) are unpacked as they are read.
    Unless `follow` is given, files and their sizes are listed once, when the run begins: the input is finite. Lines
    appended later are left to a later run; there, they begin a new line even if the line before had no end.

    Args:
        pattern: a path or a glob (``**`` for any depth of folders), or a list of these; or addresses that
            ``pyarrow.fs`` opens, such as ``s3://bucket/logs/*.txt``. Directories are left out, and a file matched twice
            is read once.
        lines_per_batch: lines per transaction; only the last transaction has fewer. May change between runs.
        encoding: encoding of the files: UTF-8, or a single-byte one such as ``"cp1252"``; dead letters are UTF-8.
        encoding_errors: ``strict`` treats a line that is invalid in the encoding as a bad record; ``replace`` puts
            U+FFFD in place of invalid bytes.
        on_bad_record: what to do with a bad record: ``"fail"`` stops the run and names it, ``"skip"`` leaves it out and
            counts it, ``"dead_letter"`` emits it on the stream `DEAD_LETTER_STREAM`, or keeps it with the topology's
            dead letters if no bolt subscribes to that stream.
        with_origin: which of ``"file"``, ``"offset"`` (of the line's first byte in the content, unpacked if compressed)
            and ``"line_number"`` (from 1) every tuple carries after the line.
        follow: True, or a `Follow`, to wait for new files instead of ending.
        filesystem: a file system of ``pyarrow.fs``, in which the patterns are paths.
        line_bytes_max: longer lines are refused; an excess under 1 MiB may go unnoticed.

    Raises:
        TopologyError: a parameter is invalid; or, as a run starts, no file matches a pattern, or a file is not text.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        lines_per_batch: int | str = 1000,
        *,
        encoding: str = UTF_8,
        encoding_errors: EncodingErrors = "strict",
        on_bad_record: str = "fail",
        with_origin: Sequence[str] = (),
        follow: bool | Follow = False,
        filesystem: Any = None,
        line_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        if encoding_errors not in get_args(EncodingErrors):
            raise TopologyError(
                f"encoding_errors={encoding_errors!r} of TextFiles is unknown; take 'strict' or 'replace', and "
                "on_bad_record='fail', 'skip' or 'dead_letter' for lines that are not UTF-8"
            )
        line = TextLine(replace=encoding_errors == "replace")
        hint = f"{UTF_8_HINT}, or give encoding_errors='replace'"
        output = RecordOutput(
            line, offered=OFFERED, origin_fields=with_origin, on_bad_record=on_bad_record, utf_8_hint=hint
        )
        known = "" if encoding == UTF_8 else checked_encoding("TextFiles", encoding)
        kind = RecordKind("text files", output, record_bytes_max=line_bytes_max, encoding=known)
        super().__init__(pattern, lines_per_batch, "lines_per_batch", kind, follow=follow, filesystem=filesystem)


class JsonLines(FileSpout, RowsOf[RowT]):
    """Objects of JSON Lines files, as tuples of some of their fields. Empty lines are left out.

    Files are found, ordered, unpacked, followed and replayed as by `TextFiles`.

    Args:
        pattern: see `TextFiles`.
        fields: the wanted fields, as name -> type, see `JsonFields`, or as a NamedTuple or dataclass, see
            `record_class_of`; or a format that parses the lines.
        lines_per_batch: lines per transaction, empty lines included.
        on_bad_record: see `TextFiles`.
        with_origin: see `TextFiles`.
        follow: see `TextFiles`.
        filesystem: see `TextFiles`.
        line_bytes_max: longer lines are refused; an excess under 1 MiB may go unnoticed.

    Raises:
        TopologyError: a parameter is invalid; or, as a run starts, no file matches a pattern, or a file is not text.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        fields: type[RowT] | FieldTypes | RecordFormat,
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
