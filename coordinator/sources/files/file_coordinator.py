"""Cuts files into transactions (driver): the ranges, their order, and the report on changes.

The metadata of a transaction is a list of byte ranges with digests, so a replay reads exactly the same
bytes or stops with an error. Large files are split among the emitter tasks, small ones share a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.files.done_files import DoneDestinations, FinishedFile, FinishedFiles
from coordinator.sources.files.file_comparison import GrowingComparison, SortedComparison
from coordinator.sources.files.file_cursor import FileCursor
from coordinator.sources.files.file_kind import FileKind, FoundFile
from coordinator.sources.files.known_files import JoinedFile
from coordinator.sources.files.prefix_digest import PrefixMark, noted
from coordinator.sources.files.reading_order import GrowingOrder, Lag, ReadingOrder
from coordinator.sources.files.record_ranges import (
    PathChange,
    RecordRange,
    parse_path_changes,
    parse_ranges,
    with_last_marks,
)
from coordinator.sources.files.record_scanner import BLOCK_BYTES
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import FailedException, SourceError
from state.troubles import Trouble

RANGE_RECORDS = 1024
"""Fewest records of a range, if the transaction has as many. Smaller ranges cost more than they help: the other tasks
are busy with other transactions anyway, since the txid decides which task reads the first range."""


class _LastCut(NamedTuple):
    """The transaction that was cut last, as plain data and as ranges, and the file of its last range."""

    metadata: list[Any]
    ranges: list[RecordRange]
    file: JoinedFile | None = None


class FileCoordinator(SpoutCoordinator):
    """Cuts files into transactions of a given number of records.

    Args:
        kind: how a file is cut.
        store: where the files are.
        order: the input's files, in reading order.
        records_per_batch: records per transaction.
        context: has the number of reading tasks and the topology's id.
        found: path -> the file as the run found it; empty for a followed folder.
        finished: records the files that end in each transaction.
        places: where done files go.
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
        places: DoneDestinations | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._kind, self._store, self._order = kind, store, order
        self._cursor = FileCursor(kind, store, order, found or {}, block_bytes)
        self._records_per_batch = records_per_batch
        range_count = max(1, min(context.task_count, records_per_batch // RANGE_RECORDS))
        self._records_per_range = -(-records_per_batch // range_count)
        self._topology_id = context.topology_id
        self._found = found or {}
        self._finished = finished or FinishedFiles()
        self._places = places or DoneDestinations()
        self._notes: dict[str, PrefixMark] = {}
        self._growing: GrowingComparison | None = None  # of a followed folder, once it was compared
        self._is_compared = False
        self._last: RecordRange | None = None  # the cursor stands after it
        self._cut_last = _LastCut([], [])

    def is_empty(self) -> bool:
        return not self._order.is_growing and self._order.after(None) is None

    def resume(self) -> None:
        last_txid, last = self.run_so_far.last_txid, self.run_so_far.last
        self._notes = noted(self._places.recall(self.run_so_far.notes), self._topology_id)
        if last is None and last_txid:
            raise SourceError(
                f"topology {self._topology_id!r} has reached txid {last_txid}, but its position in the input "
                "is not stored: it was run with another kind of source before; drop it or take another topology id"
            ).about(Trouble.OTHER_SOURCE)
        self._finished.recover()  # not before: only a run that owns the topology gets here
        final = None
        if last is not None:
            try:
                final = parse_ranges(last)[-1]
            except SourceError as error:
                field = f"metadata field 'coordinator:{last_txid}' of topology {self._topology_id!r}"
                raise SourceError(f"{field}: {error}") from None
        if isinstance(self._order, GrowingOrder):
            growing = self._growing
            if growing is None:
                self._order.resume(self._notes, self._notes)
            else:
                self._order.resume(growing.former, growing.accepted(self._notes))
            self._notes = self._order.known.notes
        self._order.begin(self._notes if self._is_compared else {}, final)
        # it is no longer known where each file ended, but all of them ended by the last transaction
        self._finished.cut(last_txid, _finished(self._notes))
        self._go_after(last)

    def is_ready(self) -> bool:
        return self._cursor.has_more()

    def initialize_transaction(self, txid: int, previous: Any) -> list[Any]:
        try:
            self._go_after(previous)
            if not self._cursor.has_more():
                raise FailedException(f"txid {txid} cannot be cut: the input ends with the one before")
            ranges = list(self._cut())
        except SourceError:
            self._go_to_start()
            raise
        self._last = ranges[-1]
        ranges = with_last_marks(ranges)
        marks = [(each.path, each.mark) for each in ranges if each.mark is not None and each.mark.is_whole]
        cut = {each.path: each.mark for each in ranges if each.mark is not None}
        names = self._order.take_path_changes(cut, ranges[-1].path)
        ended = {**self._cursor.take_finished_marks(), **dict(marks), **names}
        self._finished.cut(txid, _finished(ended))
        path_changes = [
            PathChange(path, None if note is None else note.to_plain()).to_plain() for path, note in names.items()
        ]
        self._cut_last = _LastCut([*path_changes, *(each.to_plain() for each in ranges)], ranges, self._cursor.file)
        return self._cut_last.metadata

    def position(self, metadata: Any) -> list[Any]:
        """Returns the ranges, and the digest of each file up to its last range; stamps do not describe a position."""
        ranges = parse_ranges(metadata)
        digests = [each.mark.digest for each in ranges if each.mark is not None]
        return [*(replace(each, mark=None).to_plain() for each in ranges), digests]

    def notes(self, metadata: Any) -> dict[str, Any]:
        """Returns path -> note of the files that a transaction read or renamed, and the notes of `DoneDestinations`."""
        named = {each.path: each.note for each in parse_path_changes(metadata)}
        read = {
            each.path: replace(each.mark, record_count=each.first + each.count).to_plain()
            for each in self._ranges(metadata)
            if each.mark is not None
        }
        return read | named | self._places.notes()

    def compare(self, former: FormerInput) -> InputChange:
        """Returns how the files that were read have changed, and which files would be skipped or read again.

        Raises:
            SourceError: a file cannot be read, or the stored metadata is not of files.
        """
        self._is_compared = True
        if former.last is None:
            return InputChange()
        last = parse_ranges(former.last)[-1]
        pending = {each.path for metadata in former.pending for each in parse_ranges(metadata)}
        stored = {name: note for name, note in former.notes.items() if note is not None}
        notes = noted(self._places.recall(stored), self._topology_id)
        if isinstance(self._order, GrowingOrder):
            self._places.tell_change(self._topology_id)
            self._growing = GrowingComparison(self._order.known.like_it(notes), pending, self._store)
            change = self._growing.change(self._order.look())
            return replace(change, notes={**change.notes, **self._places.notes()})
        sizes = {path: found.size for path, found in self._found.items()}
        return SortedComparison(
            sizes,
            notes,
            pending,
            self._store,
            position=last.path,
            is_empty=self._cursor.is_empty,
            ends_at=self._kind.ends_at,
        ).change()

    def is_exhausted(self) -> bool:
        if self._order.is_growing:
            return False
        self._go_after(self.run_so_far.last)
        return not self._cursor.has_more()

    def is_finite(self) -> bool:
        return not self._order.is_growing

    def estimated_bytes(self, metadata: Any) -> int:
        return sum(map(self._kind.estimated_bytes, self._ranges(metadata)))

    def progress(self) -> float | None:
        file = self._cursor.file
        if self._last is None or file is None:
            return self._order.fraction(None, 0.0)
        stored = file.byte_count
        is_whole = self._last.mark is not None and self._last.mark.is_whole
        share = 1.0 if is_whole or not stored else min(1.0, self._last.end / stored)
        return self._order.fraction(file.path, share)

    def lag(self) -> Lag:
        """Returns how far the run is behind a followed folder (driver, any time)."""
        assert isinstance(self._order, GrowingOrder), "an input that has an end has progress instead"
        return self._order.lag(self._cursor.file)

    def close(self) -> None:
        self._cursor.close()

    def _ranges(self, metadata: Any) -> list[RecordRange]:
        """Returns the ranges of a transaction; those of the last cut are kept, since they are needed several times."""
        last = self._cut_last
        return last.ranges if metadata == last.metadata else parse_ranges(metadata)

    def _cut(self) -> Iterator[RecordRange]:
        missing = self._records_per_batch
        while missing and self._cursor.has_more():
            part = self._cursor.cut(min(missing, self._records_per_range))
            missing -= part.count
            yield part

    def _go_after(self, metadata: Any) -> None:
        """Moves after the last range of a transaction, which is read again unless we just cut it.

        If its file has left the input, as `compare` has reported, the files that sort after it follow.
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
        cut = self._cut_last
        known = cut.file if cut.ranges and cut.ranges[-1] == last else self._order.holding(last)
        self._cursor.go_after(last, known)
        self._last = last

    def _go_to_start(self) -> None:
        self._cursor.go_to_start()
        self._last = None


def _finished(notes: Mapping[str, PrefixMark | None]) -> list[FinishedFile]:
    """Returns the files that were read to their end, except those left unread or without a name of their own."""
    read = {path: note for path, note in notes.items() if note and note.is_whole and not note.is_left}
    return [FinishedFile(path, note) for path, note in read.items() if not note.is_made_up(path)]
