"""Cuts ranges of records out of one open file, from an offset on (driver).

The driver finds the ends of records and digests their bytes; it decodes nothing. A function, `Find`, finds the ends,
so that a quoted line break in CSV does not end a row.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NoReturn

from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark, short_digest
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.stores.input_file import InputFile
from state.errors import SourceError

BLOCK_BYTES = 1024 * 1024
"""How much the driver reads at a time."""

STRIDE_BYTES = 4096
"""Newlines are first counted in strides of this size, then in quarters of it, and so on."""
LAST_STRIDE_BYTES = 64
"""In a stride of this size, newlines are searched one by one."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""A file may begin with it; it belongs to no record."""

RECORD_BYTES_MAX = 64 * 1024 * 1024
"""Longer records are refused when they are cut: as one tuple, a record has to fit into a worker several times."""

Find = Callable[[bytes, int, int], tuple[int, int]]
"""(block, cursor, wanted) -> (stop, found): finds up to `wanted` records that end at or after the cursor; the last one
ends at `stop`. If fewer end in the block, `stop` is the end of the block if the function needs no earlier bytes, and
otherwise the end of the last record, so that the rest is passed again together with the next block."""


class Scanner(ABC):
    """Cuts ranges from one open file, in order.

    Attributes:
        file: the file; closed by the caller that made the scanner.
        offset: where the next range begins.
        prefix: the digest of everything before `offset`.
    """

    file: InputFile
    offset: int
    prefix: PrefixDigest

    def mark(self) -> PrefixMark:
        """Returns the mark of the file up to where the next range begins."""
        return self.prefix.mark(self.file.stamp, is_whole=self.is_done())

    @abstractmethod
    def is_done(self) -> bool:
        """Returns whether everything has been cut; may read on to find out.

        Raises:
            SourceError: the file cannot be read.
        """

    @abstractmethod
    def take(self, record_limit: int) -> RecordRange:
        """Cuts the next `record_limit` records, or the rest of the file; not to be called when done.

        Raises:
            SourceError: the file has shrunk, cannot be read, or has a record that is too long or never ends.
        """


class RecordScanner(Scanner):
    """Cuts records whose ends are found in their bytes.

    Args:
        file: the file.
        start: offset where the first range begins.
        end: offset after the last byte that may be cut, usually the size of the file; None for wherever it ends.
        find: finds the ends of records.
        first: number of records before `start`.
        columns: the column names in a header before `start`.
        block_bytes: how much is read at a time.
        prefix: the digest of everything before `start`; may be left out at 0.
        record_bytes_max: longer records are refused; an excess under one block may go unnoticed.
    """

    def __init__(
        self,
        file: InputFile,
        start: int,
        end: int | None,
        *,
        find: Find,
        first: int = 0,
        columns: tuple[str, ...] = (),
        block_bytes: int = BLOCK_BYTES,
        prefix: PrefixDigest | None = None,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        self.file = file
        self.offset = start
        self.columns = columns
        self.prefix = prefix or PrefixDigest()
        assert self.prefix.end == start, "the digest is of everything before"
        self._end, self._find, self._first = end, find, first
        self._block_bytes, self._record_bytes_max = block_bytes, record_bytes_max
        self._block = b""
        self._cursor = 0

    def is_done(self) -> bool:
        if self._end is None:
            if self._cursor == len(self._block):
                self._fill()
            if self._cursor < len(self._block):
                return False
            self._end = self.offset  # bytes added from now on do not belong to the input
        return self.offset >= self._end

    def take(self, record_limit: int) -> RecordRange:
        start = record_start = self.offset
        hasher = hashlib.sha256()
        count = 0
        while count < record_limit and not self.is_done():
            if self._cursor == len(self._block):
                self._fill()
            stop, found = self._find(self._block, self._cursor, record_limit - count)
            while stop == self._cursor:  # the rest of the block holds no whole record
                self._check_length(self.offset, len(self._block) - self._cursor, count)
                if not self._extend():
                    self._refuse_open_quote()
                    stop = len(self._block)  # the last record has no end
                else:
                    stop, found = self._find(self._block, self._cursor, record_limit - count)
            piece = memoryview(self._block)[self._cursor : stop]
            hasher.update(piece)
            self.prefix.update(piece)
            self.offset += stop - self._cursor
            count += found
            if found:
                record_start = self.offset - (stop - 1 - self._block.rindex(b"\n", self._cursor, stop))
            self._cursor = stop
            self._check_length(record_start, self.offset - record_start, count)
        if self.offset > record_start:
            count += 1  # the last record of a file may lack its end
        mark = self.mark()
        first, self._first = self._first, self._first + count
        digest = short_digest(hasher)
        return RecordRange(self.file.path, start, self.offset, first, count, digest, self.columns, mark)

    def take_header(self) -> bytes:
        """Takes the first record as a header, which is not counted; only for a `find` that stops after whole records.

        Raises:
            SourceError: see `take`.
        """
        part = self.take(1)
        self._first = 0
        return self._block[self._cursor - (part.end - part.start) : self._cursor]

    def _refuse_open_quote(self) -> None:
        """Raises SourceError if a quote that is never closed makes one record of all lines after it."""
        rest = self._block[self._cursor :]
        if b"\n" in rest and not self._find(rest + b"\n", 0, 1)[1]:
            raise SourceError(
                f"input file {self.file.path!r} has a quote that is never closed: the row that starts at byte "
                f"{self.offset:,} takes in everything after it, {len(rest):,} bytes; fix the file, or leave it out"
            )

    def _check_length(self, start: int, byte_count: int, count: int) -> None:
        if byte_count > self._record_bytes_max:
            self._fail_long_record(start, self._first + count + 1)

    def _fail_long_record(self, start: int, number: int) -> NoReturn:
        raise SourceError(
            f"input file {self.file.path!r} has a record of more than {self._record_bytes_max:,} bytes: record "
            f"{number:,}, which starts at byte {start:,}; it is one tuple and has to fit into a worker: break it up, "
            "or leave the file out"
        )

    def _fill(self) -> None:
        self._block, self._cursor = self._read_on(self.offset), 0

    def _extend(self) -> bool:
        """Reads more after the rest of the block; False at the end of the file."""
        rest = self._block[self._cursor :]
        more = self._read_on(self.offset + len(rest))
        self._block, self._cursor = rest + more, 0
        return bool(more)

    def _read_on(self, start: int) -> bytes:
        if self._end is None:
            return self.file.read_up_to(start, start + self._block_bytes)
        end = min(start + self._block_bytes, self._end)
        return self.file.read(start, end) if start < end else b""


def after_lines(block: bytes, cursor: int, wanted: int) -> tuple[int, int]:
    """Finds the position after the `wanted`-th newline at or after `cursor`.

    Returns:
        That position and `wanted`; or the length of the block and the smaller number of newlines found.
    """
    found, stride = 0, STRIDE_BYTES
    while stride > LAST_STRIDE_BYTES:
        in_stride = block.count(b"\n", cursor, cursor + stride)
        if found + in_stride >= wanted:
            stride //= 4
            continue
        found += in_stride
        cursor += stride
        if cursor >= len(block):
            return len(block), found
    while found < wanted:
        cursor = block.index(b"\n", cursor) + 1
        found += 1
    return cursor, found
