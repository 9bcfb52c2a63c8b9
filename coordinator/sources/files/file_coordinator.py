"""Cuts files into transactions (driver): which ranges of which files, in which order, and what is told of changes.

The metadata of a transaction is a list of byte ranges with digests, so a replay reads exactly the same
bytes or stops with an error. Large files are split among the emitter tasks, small ones share a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.files.done_files import DonePlaces, FinishedFile, FinishedFiles
from coordinator.sources.files.file_comparison import GrowingComparison, SortedComparison
from coordinator.sources.files.file_kind import FileKind, FoundFile, edges_of, refuse
from coordinator.sources.files.known_files import JoinedFile
from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark, holds, noted, resumed_digest
from coordinator.sources.files.reading_order import GrowingOrder, Lag, ReadingOrder
from coordinator.sources.files.record_ranges import (
    Naming,
    RecordRange,
    parse_namings,
    parse_ranges,
    with_last_marks,
)
from coordinator.sources.files.record_scanner import BLOCK_BYTES, Scanner
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import FAULT, InputFile, identity_of
from coordinator.sources.files.stores.packed_files import HEAD_BYTES
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import FailedException, SourceError
from state.troubles import Trouble

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
        places: where files that are done go.
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
        places: DonePlaces | None = None,
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
        self._places = places or DonePlaces()
        self._notes: dict[str, PrefixMark] = {}
        self._growing: GrowingComparison | None = None  # of a folder that is followed, if it was compared
        self._is_compared = False
        self._ended: dict[str, PrefixMark] = {}  # files done with since the last transaction, without a record of it
        self._is_untouched = False  # nothing was cut of the file the scanner is in
        self._is_noted = False  # how much of it was read, at its end
        self._scanner: Scanner | None = None
        self._after: JoinedFile | None = None  # the file the scanner is in, or was in last
        self._record_count = 0  # of that file, so far
        self._read: PrefixMark | None = None  # what was read of it
        self._edges = 0  # the digest of the edges of that, where there are inodes
        self._last: RecordRange | None = None
        self._cut_last: tuple[list[Any], list[RecordRange]] = [], []  # the same ranges, as plain data first
        self._cut_from: JoinedFile | None = None  # the file of the last of these

    def is_empty(self) -> bool:
        return not self._order.is_growing and self._order.after(None) is None

    def resume(self) -> None:
        last_txid, last = self.run_so_far.last_txid, self.run_so_far.last
        self._notes = noted(self._places.recall(self.run_so_far.notes), self._topology_id)
        if last is None and last_txid:
            raise SourceError(
                f"topology {self._topology_id!r} has come to txid {last_txid}, but where in the input that ended "
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
        # which of them ends where is no longer known, and by the last transaction all of them do
        self._finished.cut(last_txid, _finished(self._notes))
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
        self._last, self._cut_from = ranges[-1], self._after
        ranges = with_last_marks(ranges)
        marks = [(each.path, each.mark) for each in ranges if each.mark is not None and each.mark.is_whole]
        cut = {each.path: each.mark for each in ranges if each.mark is not None}
        names = self._order.take_names(cut, ranges[-1].path)
        ended = {**self._ended, **dict(marks), **names}
        self._ended = {}
        self._finished.cut(txid, _finished(ended))
        namings = [Naming(path, None if note is None else note.to_plain()).to_plain() for path, note in names.items()]
        self._cut_last = [*namings, *(each.to_plain() for each in ranges)], ranges
        return self._cut_last[0]

    def position(self, metadata: Any) -> list[Any]:
        """Returns the ranges, and the digest of the last file up to there; its stamp says nothing of that."""
        ranges = parse_ranges(metadata)
        digests = [each.mark.digest for each in ranges if each.mark is not None]
        return [*(replace(each, mark=None).to_plain() for each in ranges), digests]

    def notes(self, metadata: Any) -> dict[str, Any]:
        """Path -> note, of the files a transaction was cut from or knows by another name; and where done files go."""
        named = {each.path: each.note for each in parse_namings(metadata)}
        read = {
            each.path: replace(each.mark, record_count=each.first + each.count).to_plain()
            for each in self._ranges(metadata)
            if each.mark is not None
        }
        return read | named | self._places.notes()

    def compare(self, former: FormerInput) -> InputChange:
        """Returns what is different about the files that were read, and which would be skipped or read again.

        Raises:
            SourceError: a file cannot be read, or what is stored is not of files.
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
            sizes, notes, pending, self._store, position=last.path, is_empty=self._is_empty, ends_at=self._kind.ends_at
        ).change()

    def is_exhausted(self) -> bool:
        if self._order.is_growing:
            return False
        self._go_after(self.run_so_far.last)
        return not self._advance()

    def is_finite(self) -> bool:
        return not self._order.is_growing

    def estimated_bytes(self, metadata: Any) -> int:
        return sum(map(self._kind.estimated_bytes, self._ranges(metadata)))

    def progress(self) -> float | None:
        if self._last is None or self._after is None:
            return self._order.fraction(None, 0.0)
        stored = self._after.byte_count
        is_whole = self._last.mark is not None and self._last.mark.is_whole
        share = 1.0 if is_whole or not stored else min(1.0, self._last.end / stored)
        return self._order.fraction(self._after.path, share)

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
            if not self._scanner.file.is_compressed:
                self._refuse_overwritten(self._scanner.file, part.mark)
            self._is_untouched = False
            self._record_count = part.first + part.count
            missing -= part.count
            yield part if part.mark is None else replace(part, mark=self._of_now(part.mark))

    def _refuse_overwritten(self, file: InputFile, mark: PrefixMark | None) -> None:
        """Makes sure that a file was not cut off, or written again, since the part before was read of it."""
        before, has_inode = self._read, bool(file.stamp[3])
        if before is not None and not (
            edges_of(file, before.end) == self._edges if has_inode else not file.was_touched() or holds(file, before)
        ):
            remedy = "put these back and run again"
            if self._order.is_growing:
                remedy = "run again, and what was read is looked for under other names"
            raise SourceError(
                f"input file {file.path!r} was cut off and written again after {before.end} bytes of it were read: "
                f"{remedy}"
            ).about(Trouble.INPUT_CHANGED)
        self._read = mark
        self._edges = edges_of(file, mark.end) if has_inode and mark is not None else 0

    def _of_now(self, mark: PrefixMark) -> PrefixMark:
        """Returns the mark of a file that has perhaps more by now than when it joined a folder that grows."""
        assert self._scanner is not None
        file = self._scanner.file
        has_more = self._order.is_growing and not file.is_compressed and mark.end < file.stored_bytes
        return replace(mark, is_whole=False) if has_more else mark

    def _advance(self) -> bool:
        """Returns whether there is something to cut; opens the next file if what was opened is at its end."""
        while self._scanner is None or self._scanner.is_done():
            if self._scanner is not None and self._after is not None and not self._is_noted:
                self._is_noted = True  # once, since a look may give it another name
                mark = self._of_now(self._scanner.mark())
                self._order.note(self._after.path, replace(mark, record_count=self._record_count))
                if self._is_untouched:
                    self._ended[self._after.path] = mark
            file = self._order.after(self._after)
            if file is None:
                return False
            try:
                self._open_scanner(file)
            except SourceError:
                if not self._order.may_have_moved(file):
                    raise
                self._after = file  # nothing was cut of it: it is found again by the next look, as whatever it is then
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
        known = self._cut_from if self._cut_last[1] and self._cut_last[1][-1] == last else self._order.holding(last)
        if known is not None and not (self._order.is_growing and last.mark.is_whole):
            with closing(self._open(known.path)) as file:
                self._kind.prove(last, file)
            self._open_scanner(known, last)
        self._after, self._last = known or JoinedFile(last.path, 0), last

    def _go_to_start(self) -> None:
        self._close_file()
        self._after = self._last = None

    def _open_scanner(self, joined: JoinedFile, last: RecordRange | None = None) -> None:
        self._close_file()
        joined, file = self._opened(joined, read_bytes=0 if last is None else last.end)
        try:
            if self._order.is_growing:
                self._refuse_incomplete(file, joined)
            if last is None:
                self._refuse_changed(file)
            if last is None and joined.note is not None:
                last = self._kind.read_so_far(file, joined.note)
            prefix = PrefixDigest() if last is None or last.mark is None else resumed_digest(file, last.mark)
            end = None if file.is_compressed else joined.byte_count
            self._scanner = self._kind.scanner(file, end, last, prefix, self._block_bytes)
        except SourceError:
            file.close()
            raise
        self._record_count = 0 if last is None else last.first + last.count
        self._read = None if last is None else last.mark
        self._edges = 0 if self._read is None or file.is_compressed else edges_of(file, self._read.end)
        self._after, self._is_untouched, self._is_noted = joined, last is None, False

    def _opened(self, joined: JoinedFile, *, read_bytes: int) -> tuple[JoinedFile, InputFile]:
        """Opens a file, under the name it has by now if that is another one."""
        file, facts = None, joined.facts
        with suppress(SourceError):  # which is raised again if it is found nowhere else
            file = self._open(joined.path)
        if file is not None and (facts is None or identity_of(file.stamp) == facts.identity):
            return joined, file
        found = self._order.relocated(joined, read_bytes=read_bytes)
        if file is None or found.path != joined.path:
            if file is not None:
                file.close()
            if found.path != joined.path and self._order.is_taken(found.path):
                raise SourceError(
                    f"input file {joined.path!r} is {found.path!r} by now, and another file was read under that name: "
                    "run again"
                ).about(Trouble.INPUT_CHANGED)
            return found, self._open(found.path)
        if facts is not None and (file.stamp[3] != facts.inode if facts.inode else self._order.may_grow):
            file.close()
            raise SourceError(
                f"input file {joined.path!r} is another file than when it joined, and was not read: put the former one "
                "back and run again, or run again to have this one read"
            ).about(Trouble.INPUT_CHANGED)
        return joined, file

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

    def _refuse_incomplete(self, file: InputFile, joined: JoinedFile) -> None:
        stored = file.stored
        has_grown = stored.stored_bytes > joined.byte_count
        if stored.stored_bytes != joined.byte_count and not (
            has_grown and self._order.may_grow and not file.is_compressed
        ):
            raise SourceError(
                f"input file {stored.path!r} had {joined.byte_count} bytes when it was taken to be complete, and has "
                f"{stored.stored_bytes} bytes now: its writer was not done; give Follow a longer quiet_s, or "
                "complete='rename' or 'marker', and run again"
            )


def _finished(notes: Mapping[str, PrefixMark | None]) -> list[FinishedFile]:
    """Returns the files that were read to their end, but for those whose names others have by now."""
    read = {path: note for path, note in notes.items() if note and note.is_whole and not note.is_left}
    return [FinishedFile(path, note) for path, note in read.items() if not note.is_made_up(path)]
