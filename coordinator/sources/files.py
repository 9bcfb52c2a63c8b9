"""Text files as a source: one tuple a line, cut by line count on the driver, read on the executors.

The metadata of a transaction is a list of byte ranges with digests, so a replay reads exactly the same
bytes or stops with an error. Large files are split among the emitter tasks, small ones share a batch.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeAlias, get_args

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.file_comparison import FileComparison
from coordinator.sources.file_listing import list_files
from coordinator.sources.input_file import FAULT, NO_STAMP, FileStamp, InputFile
from coordinator.sources.line_ranges import BLOCK_BYTES, LineRange, LineScanner, share, with_last_marks
from coordinator.sources.prefix_digest import PrefixMark, resumed_digest
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.codec import digest64
from state.errors import FailedException, SourceError, TopologyError

INVALID_LINES_COUNTER = "invalid_utf8_lines"
FINGERPRINT_HEAD_BYTES = 4096
FINGERPRINT_PATTERNS_SHOWN = 3
EMITTED_LINES = 1024  # at a time: in larger portions Python's garbage collector takes over
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

EncodingErrors: TypeAlias = Literal["fail", "replace", "skip"]
Pattern: TypeAlias = str | os.PathLike[str]


class TextFiles(ITransactionalSpout):
    r"""Lines of UTF-8 text files, as tuples of one field, ``line``.

    Files are read in the order of their absolute paths, one after the other; a batch may run over the
    border of two. A line ends with ``\n`` or ``\r\n``, which is left out; a last line without one counts.
    A byte order mark at the start of a file is left out. A line may have 64 MiB. Files are listed once, when
    this is made, and their sizes taken when the run begins: the input is finite. What is appended later is left
    to a later run, where it begins a new line even if the line before had no end.

    Args:
        pattern: a path or a glob (``**`` for any depth of folders), or a list of these. Directories are
            not taken, a file matched twice is taken once.
        lines_per_batch: lines of a transaction; only the last one has fewer. May change between runs.
        encoding_errors: what becomes of a line that is not valid UTF-8: ``fail`` stops the run, ``replace``
            puts U+FFFD where bytes are wrong, ``skip`` leaves the line out. The latter two are counted as
            ``invalid_utf8_lines``.

    Raises:
        TopologyError: nothing matches a pattern, a file is compressed or otherwise no UTF-8 text, or a parameter is
            no good.
    """

    output_fields = ("line",)

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        lines_per_batch: int | str = 1000,
        *,
        encoding_errors: EncodingErrors = "fail",
    ) -> None:
        self.patterns = _patterns(pattern)
        self.lines_per_batch = _positive("lines_per_batch", lines_per_batch)
        if encoding_errors not in get_args(EncodingErrors):
            raise TopologyError(
                f"encoding_errors={encoding_errors!r} of TextFiles is unknown; take 'fail', 'replace' or 'skip'"
            )
        self.encoding_errors = encoding_errors
        self._folder = os.getcwd()  # noqa: PTH109 - a plain string, as everything that is stored
        self._paths: tuple[str, ...] | None = None
        self.paths()

    def paths(self) -> tuple[str, ...]:
        """Absolute paths of the files, in the order in which they are read."""
        if self._paths is None:
            self._paths = list_files(self.patterns, self._folder)
        return self._paths

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> TextFilesCoordinator:
        return TextFilesCoordinator(self.paths(), self.lines_per_batch, context)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> TextFilesEmitter:
        return TextFilesEmitter(self.encoding_errors, context)

    def fingerprint(self) -> str:
        """Number, size and a digest of paths, sizes and beginnings of the files, and the patterns.

        Raises:
            SourceError: a file is missing or cannot be read.
        """
        digest = digest64(*map(str.encode, self.patterns))
        byte_count = 0
        for path in self.paths():
            with closing(InputFile(path, "TOPOLOGY")) as file:
                size = file.byte_count
                head = file.read(0, min(size, FINGERPRINT_HEAD_BYTES))
            digest = digest64(b"%016x" % digest, path.encode(), b"%d" % size, head)
            byte_count += size
        shown = ", ".join(map(repr, self.patterns[:FINGERPRINT_PATTERNS_SHOWN]))
        more = ", …" if len(self.patterns) > FINGERPRINT_PATTERNS_SHOWN else ""
        files = "1 file" if len(self.paths()) == 1 else f"{len(self.paths())} files"
        return f"text files {shown}{more}: {files}, {byte_count} bytes, digest {digest:016x}"

    def __getstate__(self) -> dict[str, Any]:
        # executors find paths in the metadata; the whole list may be large
        return {**self.__dict__, "_paths": None}


class TextFilesCoordinator(SpoutCoordinator):
    """Cuts files into transactions of so many lines (driver).

    Args:
        paths: the files, in order.
        lines_per_batch: lines of a transaction.
        context: tells how many tasks read and what to call the topology.
        block_bytes: how much is read at a time.

    Raises:
        SourceError: a file has gone since the input was listed.
    """

    def __init__(
        self,
        paths: Sequence[str],
        lines_per_batch: int,
        context: TopologyContext,
        *,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._lines_per_batch = lines_per_batch
        self._lines_per_range = -(-lines_per_batch // context.task_count)
        self._topology_id = context.topology_id
        self._block_bytes = block_bytes
        self._listed = {path: self._look(path) for path in paths}
        self._sizes = {path: listed.size for path, listed in self._listed.items()}
        self._files = [(path, size) for path, size in self._sizes.items() if size]
        self._next_file = 0  # behind the one the scanner is in
        self._scanner: LineScanner | None = None
        self._last: LineRange | None = None

    def resume(self, last_txid: int, last: Any) -> None:
        if last is None and last_txid:
            raise SourceError(
                f"topology {self._topology_id!r} has come to txid {last_txid}, but where in the input that ended "
                "is not stored: it was run with another kind of source before; drop it or take another topology id"
            )
        if last is not None:
            try:
                parse_ranges(last)
            except SourceError as error:
                field = f"metadata field 'coordinator:{last_txid}' of topology {self._topology_id!r}"
                raise SourceError(f"{field}: {error}") from None
        self._go_behind(last)

    def is_ready(self) -> bool:
        within = self._scanner is not None and not self._scanner.is_done()
        return within or self._next_file < len(self._files)

    def initialize_transaction(self, txid: int, previous: Any) -> list[Any]:
        self._go_behind(previous)
        if not self.is_ready():
            raise FailedException(f"txid {txid} cannot be cut: the input ends with the one before")
        try:
            ranges = list(self._cut())
        except SourceError:
            self._go_to_start()
            raise
        self._last = ranges[-1]
        return [line_range.to_plain() for line_range in with_last_marks(ranges)]

    def notes(self, metadata: Any) -> dict[str, Any]:
        """Path -> mark, of the files a transaction was cut from."""
        ranges = parse_ranges(metadata)
        return {each.path: each.mark.to_plain() for each in ranges if each.mark is not None}

    def compare(self, former: FormerInput) -> InputChange:
        """What is different about the files that were read, and which would be skipped or read again.

        Raises:
            SourceError: a file cannot be read, or what is stored is not of text files.
        """
        if former.last is None:
            return InputChange()
        position = parse_ranges(former.last)[-1].path
        pending = {each.path for metadata in former.pending for each in parse_ranges(metadata)}
        return FileComparison(self._sizes, former.notes, position, pending, self._topology_id).change()

    def is_exhausted(self, last: Any) -> bool:
        self._go_behind(last)
        return not self.is_ready()

    def estimated_bytes(self, metadata: Any) -> int:
        return sum(line_range.end - line_range.start for line_range in parse_ranges(metadata))

    def progress(self, last: Any) -> float:
        if self._last is None:
            return 0.0
        behind = sum(size for _, size in self._files[: self._next_file - 1])
        return (behind + self._last.end) / sum(size for _, size in self._files)

    def close(self) -> None:
        self._close_file()

    def _cut(self) -> Iterator[LineRange]:
        missing = self._lines_per_batch
        while missing and self.is_ready():
            if self._scanner is None or self._scanner.is_done():
                self._open(self._next_file, 0)
            assert self._scanner is not None
            line_range = self._scanner.take(min(missing, self._lines_per_range))
            missing -= line_range.line_count
            yield line_range

    def _go_behind(self, metadata: Any) -> None:
        """Stands behind the last range of a transaction, which is read again unless we just cut it.

        A file that has left the input, which `compare` has told, is followed by those that sort after.
        """
        last = None if metadata is None else parse_ranges(metadata)[-1]
        if last == self._last:
            return
        self._go_to_start()
        if last is None:
            return
        after = bisect_right(self._files, last.path, key=itemgetter(0))
        if last.mark is None:
            raise SourceError(
                f"stored metadata of input file {last.path!r} has no digest of what was read: another version of "
                f"txbatch wrote it; run that one, or start over by `txbatch drop {self._topology_id}`"
            )
        if last.path in self._sizes:
            with closing(InputFile(last.path, self._topology_id)) as file:
                last.read(file)
            self._open(after - 1, last.end, last.mark)
        else:
            self._next_file = after
        self._last = last

    def _go_to_start(self) -> None:
        self._close_file()
        self._next_file, self._last = 0, None

    def _open(self, index: int, start: int, mark: PrefixMark | None = None) -> None:
        self._close_file()
        path, size = self._files[index]
        file = InputFile(path, self._topology_id)
        try:
            if mark is None and start == 0:
                self._refuse_rewritten(file)
            prefix = None if mark is None else resumed_digest(file, mark)
        except SourceError:
            file.close()
            raise
        self._scanner = LineScanner(file, start, size, block_bytes=self._block_bytes, prefix=prefix)
        self._next_file = index + 1

    def _close_file(self) -> None:
        if self._scanner is not None:
            self._scanner.file.close()
            self._scanner = None

    def _look(self, path: str) -> _Listed:
        with closing(InputFile(path, self._topology_id)) as file:
            return _Listed(file.byte_count, file.stamp, _edges(file, file.byte_count))

    def _refuse_rewritten(self, file: InputFile) -> None:
        """Makes sure that a file that was not read yet is the one the run began with, or has only grown."""
        listed = self._listed[file.path]
        if file.stamp == listed.stamp != NO_STAMP:
            return
        if file.byte_count < listed.size or _edges(file, listed.size) != listed.edges:
            raise SourceError(
                f"input file {file.path!r} was changed after the run began and before it was read; {FAULT}: run again, "
                "and leave files alone while they are read, but for lines appended to them"
            )


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file as the run found it: how much of it is input, and by what it is known again."""

    size: int
    stamp: FileStamp
    edges: int


def _edges(file: InputFile, size: int) -> int:
    """Digest of the beginning of a file and of the end of its first `size` bytes."""
    head = min(size, FINGERPRINT_HEAD_BYTES)
    return digest64(file.read(0, head), file.read(size - head, size))


class TextFilesEmitter(SpoutEmitter):
    """Reads this task's ranges of every batch (executor).

    Args:
        encoding_errors: what becomes of a line that is not valid UTF-8.
        context: the task.
    """

    def __init__(self, encoding_errors: EncodingErrors, context: TopologyContext) -> None:
        self._encoding_errors = encoding_errors
        self._context = context
        self._file: InputFile | None = None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        for line_range in share(parse_ranges(metadata), self._context.task_index, self._context.task_count):
            lines = self.read_lines(line_range)
            for start in range(0, len(lines), EMITTED_LINES):
                collector.emit_all(zip(lines[start : start + EMITTED_LINES]))  # rows of one field

    def read_lines(self, line_range: LineRange) -> list[str]:
        """Returns the lines of a range.

        Raises:
            SourceError: the file is missing, has shrunk or changed, or has a bad line and ``fail`` is set.
        """
        content = line_range.read(self._open(line_range.path))
        if line_range.start == 0:
            content = content.removeprefix(BYTE_ORDER_MARK)
        bare = content.replace(b"\r\n", b"\n").removesuffix(b"\n")
        try:
            return bare.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            if self._encoding_errors == "fail":
                raise _bad_line(line_range, content) from None
        return list(self._decode_each(bare.split(b"\n")))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, path: str) -> InputFile:
        # ranges come file by file, so the one last used is the one to keep
        if self._file is None or self._file.path != path:
            self.close()
            self._file = InputFile(path, self._context.topology_id)
        return self._file

    def _decode_each(self, lines: list[bytes]) -> Iterator[str]:
        for line in lines:
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                self._context.count(INVALID_LINES_COUNTER)
                if self._encoding_errors == "replace":
                    yield line.decode("utf-8", "replace")


def parse_ranges(metadata: Any) -> list[LineRange]:
    """Restores the ranges of a transaction, of which there is at least one.

    Raises:
        SourceError: it is not the metadata of text files.
    """
    plain = metadata if isinstance(metadata, list) and metadata else [metadata]
    return [LineRange.from_plain(item) for item in plain]


def _bad_line(line_range: LineRange, content: bytes) -> SourceError:
    """The error for the first line that is not UTF-8; a byte order mark is already off the content."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = line_range.end - len(content)
        line_start = content.rfind(b"\n", 0, error.start) + 1
        return SourceError(
            f"input file {line_range.path!r} is not valid UTF-8 in the line that starts at byte "
            f"{before + line_start}: byte {content[error.start]:#04x} at {before + error.start}, "
            f"{error.reason}; convert the file to UTF-8 and start over, or run again with "
            'encoding_errors="replace" (U+FFFD for what is wrong) or "skip" (leaves such lines out)'
        )
    raise AssertionError("called for content that is valid")


def _patterns(given: Pattern | Sequence[Pattern]) -> tuple[str, ...]:
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(several, (list, tuple)) or not several:
        raise TopologyError(f"pattern={given!r} of TextFiles is neither a path or glob nor a list of these")
    return tuple(map(_pattern, several))


def _pattern(given: Any) -> str:
    text = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise TopologyError(f"pattern {given!r} of TextFiles is no path or glob: give a text such as 'logs/*.txt'")
    return text


def _positive(name: str, given: Any) -> int:
    """A positive integer, which the command line gives as a string."""
    number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise TopologyError(f"{name}={given!r} of TextFiles has to be a whole number of at least 1")
    return number
