"""Cuts files into transactions (driver): which ranges of which files, in which order, and what is told of changes.

The metadata of a transaction is a list of byte ranges with digests, so a replay reads exactly the same
bytes or stops with an error. Large files are split among the emitter tasks, small ones share a batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.files.done_files import FinishedFile, FinishedFiles
from coordinator.sources.files.file_comparison import GrowingComparison, SortedComparison
from coordinator.sources.files.file_kind import FileKind, refuse
from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark, resumed_digest
from coordinator.sources.files.reading_order import GrowingOrder, Lag, ReadingOrder
from coordinator.sources.files.record_ranges import RecordRange, parse_ranges, with_last_marks
from coordinator.sources.files.record_scanner import BLOCK_BYTES, Scanner
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import FAULT, FileStamp, InputFile
from coordinator.sources.files.stores.packed_files import HEAD_BYTES
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import SpoutCoordinator
from state.codec import digest64
from state.errors import FailedException, SourceError
from state.troubles import Trouble

EDGE_BYTES = 4096
RANGE_RECORDS = 1024
"""Fewest records of a range, if the transaction has as many. A task that reads less costs more than it helps: it is
other transactions that keep the other tasks busy, since the task that reads the first range changes with the txid."""


class FileCoordinator(SpoutCoordinator):
    """Cuts files into transactions of a given number of records.

    Args:
        kind: how a file is cut.
        store: where the files are.
        order: which files there are, in the order in which they are read.
        records_per_batch: records of a transaction.
        context: tells how many tasks read and what to call the topology.
        found: path -> the file as the run found it, of an input that does not grow.
        finished: takes down which files end in which transaction.
        block_bytes: how much is read at a time.
    """

    def __init__(
        self,
        kind: FileKind,
        store: FileStore,
        order: ReadingOrder,
        records_per_batch: int,
        context: TopologyContext,
        *,
        found: Mapping[str, FoundFile] | None = None,
        finished: FinishedFiles | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._kind, self._store, self._order = kind, store, order
        self._records_per_batch = records_per_batch
        range_count = max(1, min(context.task_count, records_per_batch // RANGE_RECORDS))
        self._records_per_range = -(-records_per_batch // range_count)
        self._topology_id = context.topology_id
        self._block_bytes = block_bytes
        self._found = found or {}
        self._finished = finished or FinishedFiles()
        self._marks: dict[str, PrefixMark] = {}
        self._replaced: Collection[str] = ()
        self._blank: dict[str, PrefixMark] = {}  # read to the end since the last transaction, without a record
        self._is_untouched = False  # nothing was cut of the file the scanner is in
        self._scanner: Scanner | None = None
        self._after: str | None = None  # the file the scanner is in, or was in last
        self._last: RecordRange | None = None
        self._cut_last: tuple[list[Any], list[RecordRange]] = [], []  # the same ranges, as plain data first

    def recall(self, notes: Mapping[str, Any]) -> None:
        self._marks = {path: marked(path, plain, self._topology_id) for path, plain in notes.items()}

    def resume(self, last_txid: int, last: Any) -> None:
        if last is None and last_txid:
            raise SourceError(
                f"topology {self._topology_id!r} has come to txid {last_txid}, but where in the input that ended "
                "is not stored: it was run with another kind of source before; drop it or take another topology id"
            ).about(Trouble.OTHER_SOURCE)
        self._finished.recover()  # not before: only a run that owns the topology gets here
        if last is not None:
            try:
                ranges = parse_ranges(last)
            except SourceError as error:
                field = f"metadata field 'coordinator:{last_txid}' of topology {self._topology_id!r}"
                raise SourceError(f"{field}: {error}") from None
            self._order.begin(self._marks, ranges[-1].path)
        else:
            self._order.begin((), None)
        # which of them ends where is no longer known, and by the last transaction all of them do
        whole = [(path, mark) for path, mark in self._marks.items() if mark.is_whole and path not in self._replaced]
        self._finished.cut(last_txid, [FinishedFile(path, mark) for path, mark in whole])
        self._go_after(last)

    def is_ready(self) -> bool:
        return self._advance()

    def initialize_transaction(self, txid: int, previous: Any) -> list[Any]:
        try:
            self._go_after(previous)
            if not self._advance():
                raise FailedException(f"txid {txid} cannot be cut: the input ends with the one before")
            ranges = list(self._cut())
        except SourceError:
            self._go_to_start()
            raise
        self._last = ranges[-1]
        ranges = with_last_marks(ranges)
        marks = [(each.path, each.mark) for each in ranges if each.mark is not None and each.mark.is_whole]
        blank, self._blank = self._blank, {}
        self._finished.cut(txid, [FinishedFile(path, mark) for path, mark in (*blank.items(), *marks)])
        self._cut_last = [each.to_plain() for each in ranges], ranges
        return self._cut_last[0]

    def position(self, metadata: Any) -> list[Any]:
        """Returns the ranges, and the digest of the last file up to there; its stamp says nothing of that."""
        ranges = parse_ranges(metadata)
        digests = [each.mark.digest for each in ranges if each.mark is not None]
        return [*(replace(each, mark=None).to_plain() for each in ranges), digests]

    def notes(self, metadata: Any) -> dict[str, Any]:
        """Path -> mark, of the files a transaction was cut from."""
        return {each.path: each.mark.to_plain() for each in self._ranges(metadata) if each.mark is not None}

    def compare(self, former: FormerInput) -> InputChange:
        """Returns what is different about the files that were read, and which would be skipped or read again.

        Raises:
            SourceError: a file cannot be read, or what is stored is not of files.
        """
        if former.last is None:
            return InputChange()
        position = parse_ranges(former.last)[-1].path
        pending = {each.path for metadata in former.pending for each in parse_ranges(metadata)}
        marks = {path: marked(path, plain, self._topology_id) for path, plain in former.notes.items()}
        if self._order.is_growing:
            growing = GrowingComparison(marks, pending, self._store, removes=self._finished.removes)
            self._replaced = growing.replaced
            return growing.change()
        sizes = {path: found.size for path, found in self._found.items()}
        is_empty = self._is_empty
        return SortedComparison(sizes, marks, pending, self._store, position=position, is_empty=is_empty).change()

    def is_exhausted(self, last: Any) -> bool:
        if self._order.is_growing:
            return False
        self._go_after(last)
        return not self._advance()

    def is_finite(self) -> bool:
        return not self._order.is_growing

    def estimated_bytes(self, metadata: Any) -> int:
        return sum(map(self._kind.estimated_bytes, self._ranges(metadata)))

    def progress(self, last: Any) -> float | None:
        if self._last is None:
            return self._order.fraction(None, 0.0)
        stored = self._order.size(self._last.path) or 0
        is_whole = self._last.mark is not None and self._last.mark.is_whole
        share = 1.0 if is_whole or not stored else min(1.0, self._last.end / stored)
        return self._order.fraction(self._last.path, share)

    def lag(self) -> Lag:
        """Returns what waits of a folder that is followed (driver, any time)."""
        assert isinstance(self._order, GrowingOrder), "an input that has an end has progress instead"
        return self._order.lag(self._after)

    def close(self) -> None:
        self._close_file()

    def _ranges(self, metadata: Any) -> list[RecordRange]:
        """Restores the ranges of a transaction; a run asks several times about the one that was cut last."""
        plain, ranges = self._cut_last
        return ranges if metadata == plain else parse_ranges(metadata)

    def _cut(self) -> Iterator[RecordRange]:
        missing = self._records_per_batch
        while missing and self._advance():
            assert self._scanner is not None
            part = self._scanner.take(min(missing, self._records_per_range))
            self._is_untouched = False
            missing -= part.count
            yield part

    def _advance(self) -> bool:
        """Returns whether there is something to cut; opens the next file if what was opened is at its end."""
        while self._scanner is None or self._scanner.is_done():
            if self._scanner is not None and self._is_untouched and self._after is not None:
                self._blank[self._after] = self._scanner.mark()
            path = self._order.after(self._after)
            if path is None:
                return False
            self._open_scanner(path, None)
        return True

    def _go_after(self, metadata: Any) -> None:
        """Stands after the last range of a transaction, which is read again unless we just cut it.

        A file that has left the input, which `compare` has told, is followed by those that sort after.
        """
        last = None if metadata is None else self._ranges(metadata)[-1]
        if last == self._last:
            return
        self._go_to_start()
        if last is None:
            return
        if last.mark is None:
            raise SourceError(
                f"stored metadata of input file {last.path!r} has no digest of what was read: another version of "
                f"txbatch wrote it; run that one, or start over by `txbatch drop {self._topology_id}`"
            )
        if self._order.size(last.path) is not None and not (self._order.is_growing and last.mark.is_whole):
            with closing(self._open(last.path)) as file:
                self._kind.prove(last, file)
            self._open_scanner(last.path, last)
        self._after, self._last = last.path, last

    def _go_to_start(self) -> None:
        self._close_file()
        self._after = self._last = None

    def _open_scanner(self, path: str, last: RecordRange | None) -> None:
        self._close_file()
        file = self._open(path)
        try:
            if self._order.is_growing:
                self._refuse_incomplete(file.stored)
            if last is None:
                self._refuse_changed(file)
            prefix = PrefixDigest() if last is None or last.mark is None else resumed_digest(file, last.mark)
            end = None if file.is_compressed else self._order.size(path)
            self._scanner = self._kind.scanner(file, end, last, prefix, self._block_bytes)
        except SourceError:
            file.close()
            raise
        self._after, self._is_untouched = path, last is None

    def _close_file(self) -> None:
        if self._scanner is not None:
            self._scanner.file.close()
            self._scanner = None

    def _is_empty(self, file: InputFile) -> bool:
        end = None if file.is_compressed else file.byte_count
        return self._kind.scanner(file, end, None, PrefixDigest(), self._block_bytes).is_done()

    def _open(self, path: str) -> InputFile:
        return open_content(self._store, path)

    def _refuse_changed(self, file: InputFile) -> None:
        """Makes sure that a file that was not read yet is the one the run found, or has only grown."""
        stored = file.stored
        if self._order.is_growing:
            refuse(self._kind, file.path, stored.read_up_to(0, HEAD_BYTES))
            return
        found = self._found[file.path]
        if stored.stamp == found.stamp:
            return
        has_grown = stored.stored_bytes > found.size and not file.is_compressed
        is_as_long = has_grown or stored.stored_bytes == found.size
        if not is_as_long or edges_of(stored, found.size) != found.edges:
            raise SourceError(
                f"input file {file.path!r} was changed after the run began and before it was read; {FAULT}: run "
                "again, and leave files alone while they are read, but for lines appended to them"
            ).about(Trouble.INPUT_CHANGED)

    def _refuse_incomplete(self, stored: InputFile) -> None:
        expected = self._order.size(stored.path)
        if stored.stored_bytes != expected:
            raise SourceError(
                f"input file {stored.path!r} had {expected} bytes when it was taken to be complete, and has "
                f"{stored.stored_bytes} bytes now: its writer was not done; give Follow a longer quiet_s, or "
                "complete='rename' or 'marker', and run again"
            )


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as the run found it: how much of it is input, and by what it is known again."""

    size: int
    stamp: FileStamp
    edges: int


def find_file(kind: FileKind, store: FileStore, path: str) -> FoundFile:
    """Looks at a file before the run begins (driver).

    Raises:
        SourceError: it has gone since the input was listed, cannot be read, or is of another kind.
    """
    with closing(store.open(path)) as file:
        refuse(kind, path, file.read_up_to(0, HEAD_BYTES))
        return FoundFile(file.stored_bytes, file.stamp, edges_of(file, file.stored_bytes))


def edges_of(file: InputFile, size: int) -> int:
    """Digest of the beginning of a file and of the end of its first `size` bytes."""
    head = min(size, EDGE_BYTES)
    return digest64(file.read(0, head), file.read(size - head, size))


def marked(path: str, plain: Any, topology_id: str) -> PrefixMark:
    """Restores what a coordinator has noted of a file.

    Raises:
        SourceError: it is something else.
    """
    mark = PrefixMark.from_plain(plain)
    if mark is None:
        raise SourceError(
            f"stored note {plain!r} of file {path!r} is not one of files: the topology was run with another "
            f"kind of source or an earlier version before; drop it by `txbatch drop {topology_id}`, or take another "
            "topology id"
        ).about(Trouble.OTHER_SOURCE)
    return mark
