"""What differs between kinds of files: how a file is cut into ranges, and which tuples a range yields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.record_scanner import (
    BYTE_ORDER_MARK,
    RECORD_BYTES_MAX,
    Find,
    RecordScanner,
    Scanner,
    after_lines,
)
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import FileStamp, InputFile
from coordinator.sources.files.stores.packed_files import HEAD_BYTES, not_text
from coordinator.sources.files.text_encoding import as_utf_8
from coordinator.sources.records.record_output import RecordOutput
from state.codec import digest64
from state.errors import SourceError

EDGE_BYTES = 4096
EMITTED_RECORDS = 1024
"""Records emitted at a time; larger portions keep Python's garbage collector busy."""

FILE, OFFSET, ROW_NUMBER = "file", "offset", "row_number"


class FileKind(ABC):
    """One kind of files. A spec: shipped with the spout.

    Attributes:
        name: for fingerprints and messages.
    """

    name: str

    @abstractmethod
    def declare(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams (driver, once)."""

    @abstractmethod
    def refusal(self, path: str, head: bytes) -> str:
        """Returns why a file with these first bytes is not of this kind, with a remedy; "" if it may be (driver)."""

    @abstractmethod
    def scanner(
        self, file: InputFile, end: int | None, after: RecordRange | None, prefix: PrefixDigest, block_bytes: int
    ) -> Scanner:
        """Opens a file for cutting (driver).

        Args:
            file: the file.
            end: how much of its content is input; None for all of it.
            after: the last range that was cut from the file; None to start at its beginning.
            prefix: the digest up to that position.
            block_bytes: how much to read at a time.

        Raises:
            SourceError: the file is not of this kind.
        """

    def ends_at(self, file: InputFile, end: int) -> bool:
        """Returns whether a whole record ends at an offset, so that records can be appended there."""
        return False

    def read_so_far(self, file: InputFile, mark: PrefixMark) -> RecordRange:
        """Returns an empty range at a mark, after which a grown file is read further."""
        return RecordRange(file.path, mark.end, mark.end, mark.record_count or 0, 0, 0, mark=mark)

    def estimated_bytes(self, part: RecordRange) -> int:
        """Returns about how many bytes have to be read for a range (driver)."""
        return part.end - part.start

    def prove(self, part: RecordRange, file: InputFile) -> bytes:
        """Reads the bytes of a range, and proves that they are the ones that were cut (driver and executor).

        Raises:
            SourceError: the file has shrunk or changed, or cannot be read.
        """
        return part.read(file)

    @abstractmethod
    def emit(
        self, part: RecordRange, file: InputFile, collector: BatchOutputCollector, context: TopologyContext
    ) -> None:
        """Emits the records of a range once its bytes are proven (executor).

        Raises:
            SourceError: the bytes have changed, or a record is bad and the policy is to fail.
        """


class RecordKind(FileKind):
    """Files whose records follow one another as bytes, each ended by a line feed.

    Args:
        name: name of the kind.
        output: makes tuples from records, with their origin.
        number_name: name of the field for a record's number, which counts from 1.
        find: finds the ends of records.
        skips_blank: whether empty lines are left out.
        record_bytes_max: length of the longest record.
        encoding: see `checked_encoding`.
    """

    def __init__(
        self,
        name: str,
        output: RecordOutput,
        *,
        encoding: str = "",
        number_name: str = "line_number",
        find: Find = after_lines,
        skips_blank: bool = False,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        self.name, self.output, self.find, self.encoding = name, output, find, encoding
        self._number_name = number_name
        self._skips_blank = skips_blank
        self._is_of_lines = find is after_lines and not skips_blank
        self._record_bytes_max = record_bytes_max

    def declare(self, declarer: OutputFieldsDeclarer) -> None:
        self.output.declare(declarer)

    def refusal(self, path: str, head: bytes) -> str:
        if self.encoding and head.startswith(BYTE_ORDER_MARK):
            return f"input file {path!r} is UTF-8 by its byte order mark: read it without encoding={self.encoding!r}"
        return not_text(path, head)

    def ends_at(self, file: InputFile, end: int) -> bool:
        return not end or file.read(end - 1, end) == b"\n"

    def scanner(
        self, file: InputFile, end: int | None, after: RecordRange | None, prefix: PrefixDigest, block_bytes: int
    ) -> RecordScanner:
        if after is None and file.is_compressed:
            refuse(self, file.path, file.read_up_to(0, HEAD_BYTES))
        return RecordScanner(
            file,
            0 if after is None else after.end,
            end,
            find=self.find,
            first=0 if after is None else after.first + after.count,
            columns=() if after is None else after.columns,
            block_bytes=block_bytes,
            prefix=prefix,
            record_bytes_max=self._record_bytes_max,
        )

    def emit(
        self, part: RecordRange, file: InputFile, collector: BatchOutputCollector, context: TopologyContext
    ) -> None:
        content = self.prove(part, file)
        if not part.start and content == BYTE_ORDER_MARK:
            return  # a byte order mark alone is not even an empty line
        text = as_utf_8(content, self.encoding) if self.encoding else content
        output = self.output_for(part)
        is_start = part.start == 0
        if self._is_of_lines and output.emit_lines(collector, _lines(text, is_start=is_start)):
            return
        records, numbers = self.records(text, is_start=is_start)
        origins = Origins(part, content, self.ends, numbers, self._number_name)
        for start in range(0, len(records), EMITTED_RECORDS):
            output.emit(
                collector,
                context,
                records[start : start + EMITTED_RECORDS],
                origin=origins.of(start),
                place=origins.place(start),
            )

    def output_for(self, part: RecordRange) -> RecordOutput:
        """Returns the output for the records of a range; a subclass may choose it by the file's header."""
        return self.output

    def records(self, content: bytes, *, is_start: bool) -> tuple[list[bytes], Sequence[int]]:
        """Returns the records of some content without their line ends, and their numbers in it, from 0."""
        records = self.split(content.removeprefix(BYTE_ORDER_MARK) if is_start else content)
        if self._skips_blank and BYTE_ORDER_MARK in content:  # files were concatenated
            records = [record.removeprefix(BYTE_ORDER_MARK) for record in records]
        if not self._skips_blank or b"" not in records:
            return records, range(len(records))
        numbers = [number for number, record in enumerate(records) if record]
        return [records[number] for number in numbers], numbers

    def split(self, content: bytes) -> list[bytes]:
        """Returns the records without their line feeds; a blank record is empty."""
        return _lines(content).split(b"\n")

    def ends(self, content: bytes) -> list[int]:
        """Returns the offset where each record of some content ends."""
        return line_ends(content)


def _lines(content: bytes, *, is_start: bool = False) -> bytes:
    """Returns lines with line feeds only between them; `is_start`: whether the content begins the file."""
    if is_start:
        content = content.removeprefix(BYTE_ORDER_MARK)
    if b"\r" in content:  # one byte is found faster than two
        content = content.replace(b"\r\n", b"\n")
    return content.removesuffix(b"\n")


class Origins:
    """The origins of the records of a range; offsets are found only on demand.

    Args:
        part: the range.
        content: its bytes.
        ends: content -> the offset where each record ends.
        numbers: numbers of the emitted records within the range, from 0.
        number_name: name of the field for a record's number.
    """

    def __init__(
        self,
        part: RecordRange,
        content: bytes,
        ends: Callable[[bytes], list[int]],
        numbers: Sequence[int],
        number_name: str,
    ) -> None:
        self._part, self._content, self._ends = part, content, ends
        self._numbers, self._number_name = numbers, number_name
        self._starts: list[int] = []

    def of(self, shift: int) -> Callable[[int], tuple[str, int, int]]:
        """Returns the function index -> (file, offset, number); index 0 is record `shift`."""
        return lambda index: self._at(shift + index)

    def place(self, shift: int) -> Callable[[int], str]:
        """Returns the function index -> origin in words; index 0 is record `shift`."""
        return lambda index: self._in_words(shift + index)

    def _at(self, index: int) -> tuple[str, int, int]:
        if not self._starts:
            self._starts = [0, *self._ends(self._content)]
        number = self._numbers[index]
        return self._part.path, self._part.start + self._starts[number], self._part.first + number + 1

    def _in_words(self, index: int) -> str:
        path, offset, number = self._at(index)
        return f"{self._number_name.replace('_number', '')} {number} of input file {path!r} (byte {offset})"


def line_ends(content: bytes) -> list[int]:
    """Returns the offset after each line of some content, line feed included."""
    ends = list(accumulate(len(line) + 1 for line in content.split(b"\n")))
    ends[-1] -= 1
    return ends[:-1] if content.endswith(b"\n") or not content else ends


def refuse(kind: FileKind, path: str, head: bytes) -> None:
    """Raises SourceError if a file with these first bytes is not of the kind."""
    said = kind.refusal(path, head)
    if said:
        raise SourceError(said)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as the run found it: how many bytes are input, and what identifies the file later."""

    size: int
    stamp: FileStamp
    edges: int


def find_file(kind: FileKind, store: FileStore, path: str) -> FoundFile:
    """Looks at a file before the run begins (driver).

    Raises:
        SourceError: the file has gone since the input was listed, cannot be read, or is of another kind.
    """
    with closing(store.open(path)) as file:
        refuse(kind, path, file.read_up_to(0, HEAD_BYTES))
        return FoundFile(file.stored_bytes, file.stamp, edges_of(file, file.stored_bytes))


def edges_of(file: InputFile, size: int) -> int:
    """Returns a digest of both edges of the first `size` bytes of a file; of fewer bytes if it is shorter."""
    head = min(size, EDGE_BYTES)
    return digest64(file.read_up_to(0, head), file.read_up_to(size - head, size))
