"""The position in an input of files (driver): which file, how far, and whether it is still the file that was read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from coordinator.sources.files.file_kind import FileKind, FoundFile, edges_of, refuse
from coordinator.sources.files.known_files import JoinedFile
from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark, holds, resumed_digest
from coordinator.sources.files.reading_order import ReadingOrder
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.record_scanner import Scanner
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import FAULT, InputFile, identity_of
from coordinator.sources.files.stores.packed_files import HEAD_BYTES
from state.errors import SourceError
from state.troubles import Trouble


@dataclass(slots=True)
class _OpenFile:
    """The file that is being read.

    Attributes:
        scanner: cuts the file.
        record_count: how many records were read.
        read: the mark of the bytes read so far; None before the first.
        edges: the digest of the edges of those bytes, in a store with inodes.
        is_untouched: whether nothing was cut from the file yet.
        is_noted: whether its end was reported to the order.
    """

    scanner: Scanner
    record_count: int = 0
    read: PrefixMark | None = None
    edges: int = 0
    is_untouched: bool = True
    is_noted: bool = False


class FileCursor:
    """Moves from file to file, in the order of the input, and cuts ranges of records.

    Args:
        kind: how a file is cut.
        store: where the files are.
        order: the input's files, in reading order.
        found: path -> the file as the run found it; empty for a followed folder.
        block_bytes: how much is read at a time.

    Attributes:
        file: the current file, or the last one; None at the start of the input.
    """

    def __init__(
        self, kind: FileKind, store: FileStore, order: ReadingOrder, found: Mapping[str, FoundFile], block_bytes: int
    ) -> None:
        self._kind, self._store, self._order, self._found = kind, store, order, found
        self._block_bytes = block_bytes
        self._open: _OpenFile | None = None
        self._passed: dict[str, PrefixMark] = {}
        self.file: JoinedFile | None = None

    def has_more(self) -> bool:
        """Returns whether there are records to cut; opens the next file at the end of the current one."""
        while self._open is None or self._open.scanner.is_done():
            if self._open is not None and not self._open.is_noted:
                self._note_end(self._open)
            file = self._order.after(self.file)
            if file is None:
                return False
            try:
                self._enter(file)
            except SourceError:
                if not self._order.may_have_moved(file):
                    raise
                self.file = file  # nothing was cut from it, so the next look may find it again
        return True

    def cut(self, most: int) -> RecordRange:
        """Cuts at most that many records from the current file; call it only if `has_more` returned true."""
        at = self._open
        assert at is not None, "nothing is open to be cut"
        part = at.scanner.take(most)
        if not at.scanner.file.is_compressed:
            self._refuse_overwritten(at, part.mark)
        at.is_untouched, at.record_count = False, part.first + part.count
        return part if part.mark is None else replace(part, mark=self._of_now(at, part.mark))

    def take_finished_marks(self) -> dict[str, PrefixMark]:
        """Returns path -> mark of the files passed since the last call that had nothing to cut."""
        passed, self._passed = self._passed, {}
        return passed

    def go_to_start(self) -> None:
        """Moves before the first file."""
        self.close()
        self.file = None

    def go_after(self, last: RecordRange, known: JoinedFile | None) -> None:
        """Moves after a range that was cut before; `known` is its file, or None if the file has left the input.

        Raises:
            SourceError: the file no longer holds the bytes that were read.
        """
        assert last.mark is not None
        if known is not None and not (self._order.is_growing and last.mark.is_whole):
            with closing(self.opened(known.path)) as file:
                self._kind.prove(last, file)
            self._enter(known, last)
        self.file = known or JoinedFile(last.path, 0)

    def is_empty(self, file: InputFile) -> bool:
        """Returns whether a file has no records."""
        end = None if file.is_compressed else file.byte_count
        return self._kind.scanner(file, end, None, PrefixDigest(), self._block_bytes).is_done()

    def opened(self, path: str) -> InputFile:
        """Opens the content of a file."""
        return open_content(self._store, path)

    def close(self) -> None:
        """Closes the open file."""
        if self._open is not None:
            self._open.scanner.file.close()
            self._open = None

    def _note_end(self, at: _OpenFile) -> None:
        assert self.file is not None
        at.is_noted = True  # once, since a look may give it another name
        mark = self._of_now(at, at.scanner.mark())
        self._order.note(self.file.path, replace(mark, record_count=at.record_count))
        if at.is_untouched:
            self._passed[self.file.path] = mark

    def _of_now(self, at: _OpenFile, mark: PrefixMark) -> PrefixMark:
        """Returns the mark, no longer whole if a file of a followed folder has grown since it joined."""
        file = at.scanner.file
        has_more = self._order.is_growing and not file.is_compressed and mark.end < file.stored_bytes
        return replace(mark, is_whole=False) if has_more else mark

    def _enter(self, joined: JoinedFile, last: RecordRange | None = None) -> None:
        """Opens a file to continue after a range; None to start at its beginning."""
        self.close()
        joined, file = self._found_again(joined, last)
        try:
            if self._order.is_growing:
                self._refuse_incomplete(file, joined)
            if last is None:
                self._refuse_changed(file)
                if joined.note is not None:
                    last = self._kind.read_so_far(file, joined.note)
            read = None if last is None else last.mark
            prefix = PrefixDigest() if read is None else resumed_digest(file, read)
            end = None if file.is_compressed else joined.byte_count
            scanner = self._kind.scanner(file, end, last, prefix, self._block_bytes)
        except SourceError:
            file.close()
            raise
        self._open = _OpenFile(
            scanner,
            record_count=0 if last is None else last.first + last.count,
            read=read,
            edges=0 if read is None or file.is_compressed else edges_of(file, read.end),
            is_untouched=last is None,
        )
        self.file = joined

    def _found_again(self, joined: JoinedFile, last: RecordRange | None) -> tuple[JoinedFile, InputFile]:
        """Opens a file under its current path, which may have changed."""
        file, facts = None, joined.facts
        with suppress(SourceError):  # raised again if the file is found nowhere else
            file = self.opened(joined.path)
        if file is not None and (facts is None or identity_of(file.stamp) == facts.identity):
            return joined, file
        found = self._order.relocated(joined, read_bytes=0 if last is None else last.end)
        if file is None or found.path != joined.path:
            if file is not None:
                file.close()
            read = joined.note if last is None else last.mark
            if found.path != joined.path and not self._order.note_path(joined.path, found.path, read):
                raise SourceError(
                    f"input file {joined.path!r} was renamed to {found.path!r}, a name under which another file was "
                    "read: run again"
                ).about(Trouble.INPUT_CHANGED)
            return found, self.opened(found.path)
        if facts is not None and (file.stamp[3] != facts.inode if facts.inode else self._order.may_grow):
            file.close()
            raise SourceError(
                f"input file {joined.path!r} is another file than when it joined, and was not read: put the former one "
                "back and run again, or run again to have this one read"
            ).about(Trouble.INPUT_CHANGED)
        return joined, file

    def _refuse_overwritten(self, at: _OpenFile, mark: PrefixMark | None) -> None:
        """Raises SourceError if a file was truncated or overwritten since the previous range was read."""
        file, before = at.scanner.file, at.read
        has_inode = bool(file.stamp[3])
        if before is not None and not (
            edges_of(file, before.end) == at.edges if has_inode else not file.was_touched() or holds(file, before)
        ):
            remedy = "put these back and run again"
            if self._order.is_growing:
                remedy = "run again, and what was read is looked for under other names"
            raise SourceError(
                f"input file {file.path!r} was cut off and written again after {before.end} bytes of it were read: "
                f"{remedy}"
            ).about(Trouble.INPUT_CHANGED)
        at.read = mark
        at.edges = edges_of(file, mark.end) if has_inode and mark is not None else 0

    def _refuse_changed(self, file: InputFile) -> None:
        """Raises SourceError if an unread file is of another kind, or has changed in any way but growth."""
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
