"""Reads Parquet files with pyarrow: the offsets of their row groups, and the rows of one row group."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coordinator.sources.files.stores.arrow_streams import require_arrow
from coordinator.sources.files.stores.input_file import InputFile
from state.errors import SourceError

TAIL_BYTES = 8
"""Bytes at the end of a Parquet file: the length of its footer, and the magic."""

SIGNATURE_BYTES = 28
"""Bytes after a plain footer of a file with encrypted columns. Reading such a column with pyarrow kills the process."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group that has rows.

    Attributes:
        index: its index in the file.
        first_row: number of rows before it.
        row_count: number of its rows.
        start: offset of its first byte, just after the group before.
        end: offset after its last byte; for the last group, the end of the file.
    """

    index: int
    first_row: int
    row_count: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of a Parquet file.

    Attributes:
        groups: the file's row groups, in order.
        columns: names of its columns.
        refused: column -> type, of the columns that a tuple cannot carry.
        content: the bytes of the footer.
    """

    groups: tuple[RowGroup, ...]
    columns: tuple[str, ...]
    refused: Mapping[str, str]
    content: bytes


def read_footer(file: InputFile) -> Footer:
    """Reads the footer of a Parquet file (driver and executor).

    Raises:
        SourceError: the file is damaged, or its row groups do not follow one another.
        TopologyError: pyarrow is not installed here.
    """
    size = file.stored_bytes
    tail = file.read(max(0, size - TAIL_BYTES), size)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > size - TAIL_BYTES:
        raise SourceError(
            f"input file {file.path!r} does not end as a Parquet file does: it is damaged, or its writer was not done; "
            f"{file.remedy()}"
        )
    content = file.read(size - TAIL_BYTES - length, size)
    try:
        metadata = _metadata(content)
        is_encrypted = length == metadata.serialized_size + SIGNATURE_BYTES
    except (_arrow().ArrowException, OSError) as error:
        raise SourceError(f"input file {file.path!r} has a footer that is damaged: {error}; {file.remedy()}") from error
    if is_encrypted:
        raise SourceError(
            f"input file {file.path!r} has columns that are encrypted, though its footer is not: write it in plain, or "
            "leave it out"
        )
    schema = metadata.schema.to_arrow_schema()
    refused = {each.name: str(each.type) for each in schema if not _may_travel(each.type)}
    return Footer(_groups(file, metadata), tuple(schema.names), refused, content)


def _may_travel(kind: Any) -> bool:
    types = _arrow().types
    if types.is_map(kind):
        return _may_travel(kind.key_type) and _may_travel(kind.item_type)
    if types.is_struct(kind):
        return len({field.name for field in kind}) == kind.num_fields and all(_may_travel(each.type) for each in kind)
    if hasattr(kind, "value_type"):  # lists of all sorts, and dictionaries
        return _may_travel(kind.value_type)
    is_uuid = getattr(kind, "extension_name", "") == "arrow.uuid"
    return not (is_uuid or types.is_time(kind) or types.is_duration(kind) or types.is_interval(kind))


def _metadata(footer: bytes) -> Any:
    """Parses a footer by showing pyarrow a file that consists of it."""
    import pyarrow.parquet

    return pyarrow.parquet.read_metadata(io.BytesIO(b"PAR1" + footer))


def read_columns(file: InputFile, footer: Footer, group: RowGroup, content: bytes, columns: Sequence[str]) -> list[Any]:
    """Returns some columns of a row group as Arrow columns, with times in microseconds, as in Python (executor).

    Times with a zone are in UTC.

    Args:
        file: the file, for its size and for messages.
        footer: the footer of the file.
        group: the row group.
        content: the bytes of the row group.
        columns: names of the columns.

    Raises:
        SourceError: the row group is damaged, or holds a time that Python cannot represent.
    """
    arrow = _arrow()
    import pyarrow.parquet

    def read(names: Sequence[str], unit: str) -> Any:
        piece = arrow.PythonFile(Piece(file.stored_bytes, group.start, content), mode="r")
        opened = pyarrow.parquet.ParquetFile(piece, metadata=metadata, coerce_int96_timestamp_unit=unit)
        return opened.read_row_group(group.index, columns=list(names))

    metadata = _metadata(footer.content)
    leaves = [metadata.schema.column(number) for number in range(len(metadata.schema))]
    old = [f"{leaf.path}." for leaf in leaves if leaf.physical_type == "INT96"]
    old_times = [name for name in columns if any(path.startswith(f"{name}.") for path in old)]
    try:
        table = read(columns, "us")
        if table.num_rows != group.row_count:
            raise arrow.ArrowInvalid(
                f"pyarrow found {table.num_rows:,} rows in the group, but its footer says {group.row_count:,}"
            )
        exact = read(old_times, "ns") if old_times else table
    except (arrow.ArrowException, OSError) as error:
        raise SourceError(
            f"row group {group.index} of input file {file.path!r} cannot be read: {error}; {file.remedy()}"
        ) from error
    try:
        for name in old_times:
            _refuse_nanoseconds(arrow, table.column(name), exact.column(name))
        return [_with_microseconds(arrow, table.column(name)) for name in columns]
    except arrow.ArrowException as error:
        raise _not_pythons(file.path, error) from error


class Piece(io.RawIOBase):
    """A file object that has only one piece of a file; reading elsewhere raises an error, instead of giving zeros.

    Args:
        size: size of the whole file.
        start: offset of the piece.
        content: bytes of the piece.
    """

    def __init__(self, size: int, start: int, content: bytes) -> None:
        super().__init__()
        self._size, self._start, self._content, self._offset = size, start, content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._offset = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        return self._offset

    def tell(self) -> int:
        return self._offset

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._offset + size)
        if self._offset < self._start or end > self._start + len(self._content):
            raise OSError(f"bytes {self._offset} to {end} lie outside the row group")
        found = self._content[self._offset - self._start : end - self._start]
        self._offset = end
        return found


def _arrow() -> Any:
    return require_arrow("a source of Parquet files")


def _groups(file: InputFile, metadata: Any) -> tuple[RowGroup, ...]:
    groups: list[RowGroup] = []
    row = end = 0
    for index in range(metadata.num_row_groups):
        facts = metadata.row_group(index)
        chunks = [facts.column(number) for number in range(facts.num_columns)]
        if any(chunk.file_path for chunk in chunks):
            return ()  # the `_metadata` file of a folder of tables: the rows are in the other files
        starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        if min(starts, default=end) < end:
            raise SourceError(
                f"input file {file.path!r} has row groups that do not follow one another, as those of every usual "
                "writer do: write it again"
            )
        end = max(at + chunk.total_compressed_size for at, chunk in zip(starts, chunks, strict=True))
        if facts.num_rows:
            groups.append(RowGroup(index, row, facts.num_rows, groups[-1].end if groups else 0, end))
        row += facts.num_rows
    if groups:
        last = groups.pop()
        groups.append(RowGroup(last.index, last.first_row, last.row_count, last.start, file.stored_bytes))
    return tuple(groups)


def values_of(path: str, column: Any, start: int, count: int) -> list[Any]:
    """Returns some values of a column, in Python's types (executor).

    Raises:
        SourceError: Python cannot represent a value.
    """
    try:
        values: list[Any] = column.slice(start, count).to_pylist()
    except (_arrow().ArrowException, ValueError, OverflowError) as error:
        raise _not_pythons(path, error) from error
    return values


def _not_pythons(path: str, error: Exception) -> SourceError:
    remedy = "its times in microseconds, between the years 1 and 9999"
    if isinstance(error, UnicodeDecodeError):
        remedy = "that column as binary"
    return SourceError(
        f"input file {path!r} holds a value that Python cannot have: {error}; write {remedy}, or do without that column"
    )


def _refuse_nanoseconds(arrow: Any, column: Any, exact: Any) -> None:
    """Raises ArrowInvalid if INT96 times lost digits when they were cut to microseconds; compares modulo 2**64 ns."""
    from pyarrow import compute

    for cut, whole in zip(_times_in(column), _times_in(exact), strict=True):
        microseconds = compute.multiply(cut.cast(arrow.int64()), 1000)
        if compute.all(compute.equal(microseconds, whole.cast(arrow.int64()))).as_py() is False:
            raise arrow.ArrowInvalid("casting a time from nanoseconds to microseconds would lose data")


def _times_in(column: Any) -> list[Any]:
    """Returns the arrays of times in a column, nested ones too, in order."""
    todo, found = list(column.chunks), []
    while todo:
        array = todo.pop()
        if hasattr(array.type, "value_type") or hasattr(array.type, "item_type"):
            todo.append(array.values)
        elif array.type.num_fields:
            todo += [array.field(number) for number in range(array.type.num_fields)]
        elif _arrow().types.is_timestamp(array.type):
            found.append(array)
    return found


def _with_microseconds(arrow: Any, column: Any) -> Any:
    """Returns a column with times in microseconds; finer ones would become pandas times, where pandas is installed."""
    kind = _in_microseconds(arrow, column.type)
    return column if kind == column.type else column.cast(kind)


def _in_microseconds(arrow: Any, kind: Any) -> Any:
    types, inner = arrow.types, partial(_in_microseconds, arrow)
    if types.is_timestamp(kind):
        return arrow.timestamp("us", "UTC" if kind.tz else None)
    if types.is_dictionary(kind):
        return inner(kind.value_type)
    if types.is_map(kind):
        return arrow.map_(inner(kind.key_type), inner(kind.item_type))
    if types.is_struct(kind):
        return arrow.struct([field.with_type(inner(field.type)) for field in kind])
    if types.is_list(kind):
        return arrow.list_(inner(kind.value_type))
    if types.is_large_list(kind):
        return arrow.large_list(inner(kind.value_type))
    if types.is_fixed_size_list(kind):
        return arrow.list_(inner(kind.value_type), kind.list_size)
    return kind
