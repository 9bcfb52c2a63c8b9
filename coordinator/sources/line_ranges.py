"""Ranges of whole lines: how the driver cuts a file into them, how executors read them back.

A range is a path, two byte offsets and a digest of exactly the bytes between, so that reading it again
gives the same lines or an error, never other lines. The driver only counts newlines; it decodes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from typing import Any, NoReturn

from coordinator.sources.input_file import InputFile
from coordinator.sources.prefix_digest import PrefixDigest, PrefixMark, short_digest
from state.errors import SourceError

BLOCK_BYTES = 1024 * 1024
"""How much the driver reads at a time."""

STRIDE_BYTES = 4096
"""How much of a block is counted at a time; the last stride is searched newline by newline."""

LINE_BYTES_MAX = 64 * 1024 * 1024
"""A longer line is refused where it is cut: it would have to fit into a worker, several times, as one tuple."""


@dataclass(frozen=True, slots=True)
class LineRange:
    """Whole lines of one file.

    Attributes:
        path: absolute path of the file.
        start: offset of the first byte.
        end: offset behind the last byte; more than `start`.
        line_count: lines in between; a last line without a newline counts.
        digest: of the bytes in between.
        mark: of the file up to `end`; only the last range of a file in a transaction carries one.
    """

    path: str
    start: int
    end: int
    line_count: int
    digest: int
    mark: PrefixMark | None = None

    @classmethod
    def from_plain(cls, plain: Any) -> LineRange:
        """Restores what `to_plain` gave.

        Raises:
            SourceError: it is something else.
        """
        match plain:
            case [str(path), int(start), int(end), int(line_count), int(digest), *plain_mark]:
                mark = PrefixMark.from_plain([end, *plain_mark])
                if mark is not None or not plain_mark:
                    return cls(path, start, end, line_count, digest, mark)
        raise SourceError(
            f"stored metadata {plain!r} is no range of lines: the topology was run with another kind of "
            "source before; drop it or take another topology id"
        )

    def to_plain(self) -> list[Any]:
        """The range as plain data, to be stored."""
        mark = [] if self.mark is None else self.mark.to_plain()[1:]  # its end is the range's
        return [self.path, self.start, self.end, self.line_count, self.digest, *mark]

    def read(self, file: InputFile) -> bytes:
        """Returns the bytes, which are those that were cut.

        Raises:
            SourceError: the file has shrunk or changed, or cannot be read.
        """
        content = file.read(self.start, self.end)
        digest = _digest(content)
        if digest != self.digest:
            file.fail_changed(self.start, self.end, expected_digest=self.digest, found_digest=digest)
        return content


def with_last_marks(ranges: Sequence[LineRange]) -> list[LineRange]:
    """The ranges of a transaction without the marks that a later range of the same file makes worthless."""
    last = {line_range.path: line_range for line_range in ranges}
    return [each if last[each.path] is each else replace(each, mark=None) for each in ranges]


def share(ranges: Iterable[LineRange], task_index: int, task_count: int) -> list[LineRange]:
    """The ranges one task reads: each goes, in order, to the task with the fewest lines so far.

    Ranges of equal size go round; small ones from the ends of files do not unbalance the rest. Every
    range belongs to exactly one task, whatever number of tasks it was cut for.
    """
    loads = [(0, index) for index in range(task_count)]
    heapify(loads)
    mine = []
    for candidate in ranges:
        line_count, index = loads[0]
        heapreplace(loads, (line_count + candidate.line_count, index))
        if index == task_index:
            mine.append(candidate)
    return mine


class LineScanner:
    """Cuts ranges of lines from one open file, from an offset on.

    Args:
        file: the file.
        start: offset where the first range begins.
        end: offset behind the last byte that may be cut, usually the size of the file.
        block_bytes: how much is read at a time.
        prefix: the digest of everything before `start`; may be left out at 0.
        line_bytes_max: a line that is longer, by a block at least, is refused.
    """

    def __init__(
        self,
        file: InputFile,
        start: int,
        end: int,
        *,
        block_bytes: int = BLOCK_BYTES,
        prefix: PrefixDigest | None = None,
        line_bytes_max: int = LINE_BYTES_MAX,
    ) -> None:
        self.file = file
        self.offset = start
        self._prefix = prefix or PrefixDigest()
        assert self._prefix.end == start, "the digest is of everything before"
        self._end = end
        self._block_bytes, self._line_bytes_max = block_bytes, line_bytes_max
        self._block = b""
        self._cursor = 0

    def is_done(self) -> bool:
        """Whether everything has been cut."""
        return self.offset >= self._end

    def take(self, line_limit: int) -> LineRange:
        """Cuts the next `line_limit` lines, or what is left of the file; not to be called when done.

        Memory is bound by the block size, not by lines or ranges.

        Raises:
            SourceError: the file has shrunk, cannot be read, or has a line that is too long.
        """
        start = line_start = self.offset
        hasher = hashlib.sha256()
        line_count = 0
        ends_line = True
        while line_count < line_limit and not self.is_done():
            self._fill()
            stop, found = after_lines(self._block, self._cursor, line_limit - line_count)
            piece = memoryview(self._block)[self._cursor : stop]
            hasher.update(piece)
            self._prefix.update(piece)
            self.offset += stop - self._cursor
            if found:
                line_start = self.offset - (stop - 1 - self._block.rindex(b"\n", self._cursor, stop))
            elif self.offset - line_start > self._line_bytes_max:
                self._fail_long_line(line_start)
            self._cursor = stop
            line_count += found
            ends_line = self._block[stop - 1] == ord("\n")
        if not ends_line:
            line_count += 1
        digest = short_digest(hasher)
        mark = self._prefix.mark(self.file.stamp)
        return LineRange(self.file.path, start, self.offset, line_count, digest, mark)

    def _fail_long_line(self, line_start: int) -> NoReturn:
        """Names the line by its number, for which everything before it is counted once more."""
        number = 1
        for start in range(0, line_start, self._block_bytes):
            number += self.file.read(start, min(start + self._block_bytes, line_start)).count(b"\n")
        raise SourceError(
            f"input file {self.file.path!r} has a line of more than {self._line_bytes_max:,} bytes: line {number:,}, "
            f"which starts at byte {line_start:,}; a line is one tuple and has to fit into a worker: break it up, or "
            "leave the file out"
        )

    def _fill(self) -> None:
        if self._cursor == len(self._block):
            self._block = self.file.read(self.offset, min(self.offset + self._block_bytes, self._end))
            self._cursor = 0


def after_lines(block: bytes, cursor: int, wanted: int) -> tuple[int, int]:
    """Finds the position behind the `wanted`-th newline at or after `cursor`.

    Returns:
        That position and `wanted`; or the length of the block and the smaller number of newlines found.
    """
    found = 0
    while True:
        in_stride = block.count(b"\n", cursor, cursor + STRIDE_BYTES)
        if found + in_stride >= wanted:
            break
        found += in_stride
        cursor += STRIDE_BYTES
        if cursor >= len(block):
            return len(block), found
    while found < wanted:
        cursor = block.index(b"\n", cursor) + 1
        found += 1
    return cursor, found


def _digest(content: bytes) -> int:
    return short_digest(hashlib.sha256(content))
