"""Compares files with the bytes that were read from them: changed, gone, unread, or the same under a new name.

A file is taken to be unchanged if its size, times and inode are the same as when it was read, unless it had been
modified within two seconds before that. Otherwise the bytes that were read are read again, and their digest compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from coordinator.sources.files.known_files import KnownFiles, if_read
from coordinator.sources.files.prefix_digest import PrefixMark, marks_at, whole_mark
from coordinator.sources.files.rotation import FINGERPRINT_BYTES
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_listing import FileFacts
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import NO_STAMP, InputFile, identity_of
from coordinator.spouts.run_so_far import InputChange


class FileComparison:
    """Compares the present files with those that were read; made once, at the start of a run (driver).

    Args:
        pending: paths of files that uncommitted transactions will read again.
        store: where the files are.
    """

    def __init__(self, pending: Collection[str], store: FileStore) -> None:
        self._pending, self._store = pending, store
        self._changed: list[str] = []
        self._again: list[str] = []
        self._renamed: list[str] = []
        self._impossible: list[str] = []
        self._notes: dict[str, Any] = {}
        self._again_notes: dict[str, Any] = {}

    def _open(self, path: str) -> InputFile:
        return open_content(self._store, path)

    def _tell_lost(self, path: str, sentence: str, *, is_next: bool) -> bool:
        """Reports that bytes we read are gone; returns whether the run can do without them."""
        if path in self._pending:
            self._impossible.append(f"{sentence}; transactions that are not committed yet have to read it again")
        elif is_next:
            self._impossible.append(f"{sentence}; the next transaction would have to begin in it")
        else:
            self._changed.append(sentence)
            return True
        return False

    def _tell_renamed(self, former: str, path: str, note: PrefixMark, sentence: str) -> None:
        """Reports a file that may be a renamed file; the user decides whether it is, or whether to read it as new."""
        self._renamed.append(sentence)
        self._notes |= {former: None, path: note.to_plain()}
        self._again_notes |= {former: None, path: None}


class SortedComparison(FileComparison):
    """Compares an input whose files are read in the order of their paths.

    Args:
        sizes: path -> size of every file of the input.
        notes: path -> note of every file that was read.
        pending: see `FileComparison`.
        store: see `FileComparison`.
        position: path of the file in which the last transaction ended.
        is_empty: returns whether a file holds no record, apart from a header; such files have no note.
        ends_at: see `FileKind.ends_at`.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        notes: Mapping[str, PrefixMark],
        pending: Collection[str],
        store: FileStore,
        *,
        position: str,
        is_empty: Callable[[InputFile], bool],
        ends_at: Callable[[InputFile, int], bool],
    ) -> None:
        super().__init__(pending, store)
        self._marks = notes
        self._sizes, self._position, self._is_empty, self._ends_at = sizes, position, is_empty, ends_at
        self._skipped: list[str] = []

    def change(self) -> InputChange:
        """Returns the differences.

        Raises:
            SourceError: a file cannot be read.
        """
        gone = {path: mark for path, mark in sorted(self._marks.items()) if path not in self._sizes}
        known = self._known_under_other_names(gone)
        renamed = {former for former, _ in known.values()}
        lost = [path for path, mark in sorted(self._marks.items()) if not self._holds(path, mark, renamed)]
        for path, size in sorted(self._sizes.items()):
            is_read_here = path < self._position or path in self._marks
            if size and path != self._position and path not in lost and is_read_here:
                self._look_at(path, known[path][1] if path in known else 0)
        return InputChange(
            tuple(self._skipped),
            tuple(self._again),
            tuple(self._changed),
            tuple(self._impossible),
            self._notes,
            renamed=tuple(self._renamed),
            again_notes=self._again_notes,
        )

    def _holds(self, path: str, mark: PrefixMark, renamed: Collection[str]) -> bool:
        """Returns whether a file still begins with the bytes we read from it."""
        if path not in self._sizes:
            sentence = f"file {path!r} is no longer part of the input; {mark.end} bytes of it were read"
            is_known = (path in renamed or not mark.end) and path not in self._pending
            if is_known or self._tell_lost(path, sentence, is_next=False):
                self._notes[path] = None
            return False
        with closing(self._open(path)) as file:
            if file.stamp == mark.stamp:
                return True
            found = marks_at(file, {mark.end}).get(mark.end)
            if found is not None and found.digest == mark.digest:
                if path == self._position and mark.is_whole and mark.end:
                    self._tell_continued(file, mark)
                if found.stamp != mark.stamp:  # so that the next run need not read it
                    self._notes[path] = replace(mark, stamp=found.stamp).to_plain()
                return True
            now = f"has {file.byte_count} bytes" if found is None else "differs from them"
            whole = whole_mark(file).to_plain()
        sentence = f"file {path!r} has changed: {mark.end} bytes of it were read, and it {now} now"
        if self._tell_lost(path, sentence, is_next=path == self._position):
            self._notes[path] = whole
        return False

    def _tell_continued(self, file: InputFile, mark: PrefixMark) -> None:
        """Reports text appended to a line that was read without its end: it would become a record of its own."""
        if file.read_up_to(mark.end, mark.end + 1) and not self._ends_at(file, mark.end):
            self._changed.append(
                f"file {file.path!r} ended at byte {mark.end} within a line, which was read as it was, and continues "
                "now: the rest of that line would be a record of its own"
            )

    def _known_under_other_names(self, gone: Mapping[str, PrefixMark]) -> dict[str, tuple[str, int]]:
        """Returns unread path -> vanished path and byte count, of files that begin with a vanished file's bytes.

        A vanished file has one match at most. For files before the position the user is not asked, so their equal
        content has to be long, unless inode, size and time match too.
        """
        ends = {mark.end for mark in gone.values() if mark.end}
        alike: list[tuple[bool, int, str, str, PrefixMark]] = []
        for path, size in sorted(self._sizes.items()) if ends else ():
            if path in self._marks:
                continue
            with closing(self._open(path)) as file:
                may_hold = file.is_compressed or any(end <= size for end in ends)
                marks = marks_at(file, ends) if may_hold else {}
                for former, mark in gone.items():
                    if (found := if_read(marks.get(mark.end), mark, file)) is not None:
                        has_its_look = bool(mark.stamp[3]) and identity_of(found.stamp) == identity_of(mark.stamp)
                        alike.append((not has_its_look, -mark.end, path, former, found))
        known: dict[str, tuple[str, int]] = {}
        for is_other, _, path, former, found in sorted(alike, key=lambda each: each[:4]):
            is_next = path > self._position
            is_it = is_next or not is_other or found.end >= FINGERPRINT_BYTES
            if is_it and path not in known and former not in {other for other, _ in known.values()}:
                known[path] = former, found.end
                if is_next:
                    self._tell_known(former, path, found)
        return known

    def _tell_known(self, former: str, path: str, found: PrefixMark) -> None:
        if found.is_whole and self._marks[former].is_whole and former not in self._pending:
            note = replace(self._marks[former], stamp=found.stamp)
            said = f"file {path!r} holds the {found.end} bytes that were read of {former!r}, which is no longer there"
            self._tell_renamed(former, path, note, said)
        else:
            self._again.append(f"file {path!r} begins with the {found.end} bytes that were read of {former!r}")

    def _look_at(self, path: str, known: int) -> None:
        """Reports the unread bytes of a file that will not be read again, and notes the whole file as read."""
        mark = self._marks.get(path)
        read = known if mark is None else mark.end
        with closing(self._open(path)) as file:
            if mark is not None and mark.is_whole and file.is_compressed and file.stamp == mark.stamp:
                return  # it cannot have grown, and counting its content would mean unpacking it
            if mark is None and not known and self._is_empty(file):
                return
            size = file.byte_count if file.is_compressed else min(file.byte_count, self._sizes[path])
            if size > read:
                what = f"bytes {read} to {size} of file {path!r} lie" if read else f"file {path!r} ({size} bytes) lies"
                self._skipped.append(f"{what} before the position, in file {self._position!r}, and would never be read")
            if size > read or mark is None:
                whole = whole_mark(file) if size == file.byte_count else marks_at(file, {size})[size]
                self._notes[path] = replace(whole, is_whole=True).to_plain()  # later growth is for the next run


class GrowingComparison(FileComparison):
    """Compares a followed folder.

    New files are expected, a file that was read to its end and committed may vanish, and a grown file is read further.

    Args:
        known: the files that earlier runs have read.
        pending: see `FileComparison`.
        store: see `FileComparison`.

    Attributes:
        former: the notes as they are stored.
        moved: former path -> current path of renamed files.
        alike: former path -> current path of files that may be the same; the user decides.
    """

    def __init__(self, known: KnownFiles, pending: Collection[str], store: FileStore) -> None:
        super().__init__(pending, store)
        self._known = known
        self.former = dict(known.notes)
        self.moved: dict[str, str] = {}
        self.alike: dict[str, str] = {}

    def change(self, found: Mapping[str, FileFacts]) -> InputChange:
        """Returns the differences, given every file that matches the patterns.

        Raises:
            SourceError: a file cannot be read.
        """
        former = self.former
        aside = [path for path in former if path not in found and self._store.place_of(path) is not None]
        still_there = {path: facts for path in aside if (facts := self._known.facts_at(path)) is not None}
        settled = self._known.settle({**found, **still_there}, lambda waiting: waiting.keys())
        self.moved = settled.moved
        for path, note in settled.missing.items():
            is_needed = path in self._pending or not note.is_whole
            if is_needed and (now := self._known.forget_former_name(path, note)) is not None:
                self.moved[path] = now
                continue
            is_known = any(path == each.path for each in settled.replaced)
            if not is_known and (path in self._pending or not note.is_whole):
                self._tell_changed(path, note, "is gone")
        for each in settled.replaced:
            if self._tell_lost(each.path, each.sentence, is_next=not each.note.is_whole):
                self._known.leave(each.path)
        for each in settled.outgrown:
            self._tell_outgrown(each.path, each.note, each.sentence, found)
        for alike in settled.alike:
            is_first = alike.former not in self.alike  # only one of several candidates can be the same file
            if is_first and alike.note.is_whole and alike.former not in self._pending:
                self._tell_renamed(alike.former, alike.path, alike.note, alike.sentence)
                self.alike[alike.former] = alike.path
        for path, note in self._known.notes.items():
            if former.get(path) != note:
                self._notes.setdefault(path, note.to_plain())
        self._notes |= dict.fromkeys(former.keys() - self._known.notes.keys())
        return InputChange(
            changed=tuple(self._changed),
            impossible=tuple(self._impossible),
            notes=self._notes,
            renamed=tuple(self._renamed),
            again_notes=self._again_notes,
        )

    def accepted(self, notes: Mapping[str, PrefixMark]) -> dict[str, PrefixMark]:
        """Returns the notes under the current paths of the files; call `change` first.

        Args:
            notes: the stored notes, after the user has decided which files are renamed ones.
        """
        now = {path: note for path, note in self._known.notes.items() if path not in self.alike}
        return now | {path: notes[path] for path in self.alike.values() if path in notes}

    def _tell_changed(self, path: str, mark: PrefixMark, now: str) -> None:
        sentence = f"file {path!r} has changed: {mark.end} bytes of it were read, and it {now}"
        self._tell_lost(path, sentence, is_next=not mark.is_whole)

    def _tell_outgrown(self, path: str, mark: PrefixMark, sentence: str, found: Mapping[str, FileFacts]) -> None:
        """Reports a file that was read whole and has more now, or was complete and has another size now."""
        is_as_it_was = path not in found or self.moved.get(path) != path
        size = mark.stamp[0] if is_as_it_was else found[path].byte_count
        if mark.is_whole:
            self._changed.append(sentence)
            self._known.leave(path)
        elif mark.stamp != NO_STAMP and size != mark.stamp[0] and not self._known.may_grow:
            self._changed.append(
                f"file {path!r} had {mark.stamp[0]} bytes when it was taken to be complete, and has {size} now: its "
                "writer was not done, and the rest may end within a record"
            )
