"""What files hold now, compared with what was read of them: changed, gone, unread, or the same under a new name.

A file whose size, times and inode are those it had when it was read is taken to be unchanged, unless it had been
changed within two seconds before; of any other the bytes that were read are read again and their digest compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from coordinator.sources.files.prefix_digest import PrefixMark, marks_at, whole_mark
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import NO_STAMP, InputFile, identity_of, is_settled
from coordinator.spouts.run_so_far import InputChange


class FileComparison(ABC):
    """Compares files with what was read of files; made once, at the start of a run (driver).

    Args:
        marks: path -> mark of every file that was read.
        pending: paths of files that are read again, for transactions that are not committed.
        store: where the files are.
    """

    def __init__(self, marks: Mapping[str, PrefixMark], pending: Collection[str], store: FileStore) -> None:
        self._marks, self._pending = marks, pending
        self._store = store
        self._changed: list[str] = []
        self._impossible: list[str] = []
        self._notes: dict[str, Any] = {}

    @abstractmethod
    def change(self) -> InputChange:
        """Returns the differences.

        Raises:
            SourceError: a file cannot be read.
        """

    def _open(self, path: str) -> InputFile:
        return open_content(self._store, path)

    def _tell_lost(self, path: str, sentence: str, *, is_next: bool) -> bool:
        """Returns whether the run can do without the bytes that were read, which are no longer there."""
        if path in self._pending:
            self._impossible.append(f"{sentence}; transactions that are not committed yet have to read it again")
        elif is_next:
            self._impossible.append(f"{sentence}; the next transaction would have to begin in it")
        else:
            self._changed.append(sentence)
            return True
        return False

    def _note_stamp(self, path: str, mark: PrefixMark, found: PrefixMark) -> None:
        """Notes a new stamp of unchanged bytes, which spares the next run reading them."""
        if found.stamp != mark.stamp:
            self._notes[path] = replace(mark, stamp=found.stamp).to_plain()


class SortedComparison(FileComparison):
    """Compares an input that is read by path.

    Args:
        sizes: path -> size of every file of the input.
        marks: see `FileComparison`.
        pending: see `FileComparison`.
        store: see `FileComparison`.
        position: path of the file in which the last transaction ended.
        is_empty: whether a file holds no record, though it may hold a header; nothing is noted of such a file.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        marks: Mapping[str, PrefixMark],
        pending: Collection[str],
        store: FileStore,
        *,
        position: str,
        is_empty: Callable[[InputFile], bool],
    ) -> None:
        super().__init__(marks, pending, store)
        self._sizes, self._position, self._is_empty = sizes, position, is_empty
        self._skipped: list[str] = []
        self._again: list[str] = []

    def change(self) -> InputChange:
        lost = {path: mark for path, mark in sorted(self._marks.items()) if not self._holds(path, mark)}
        known = dict(self._known_under_other_names(lost))
        for path, size in sorted(self._sizes.items()):
            if size and path < self._position and path not in lost:
                self._look_at(path, known.get(path, 0))
            elif path > self._position and path in self._marks:
                self._tell_again(path, self._marks[path])
        return InputChange(
            tuple(self._skipped), tuple(self._again), tuple(self._changed), tuple(self._impossible), self._notes
        )

    def _holds(self, path: str, mark: PrefixMark) -> bool:
        """Returns whether a file still begins with what was read of it."""
        if path not in self._sizes:
            sentence = f"file {path!r} is no longer part of the input; {mark.end} bytes of it were read"
            if self._tell_lost(path, sentence, is_next=False):
                self._notes[path] = None
            return False
        with closing(self._open(path)) as file:
            if file.stamp == mark.stamp:
                return True
            found = marks_at(file, {mark.end}).get(mark.end)
            if found is not None and found.digest == mark.digest:
                if path == self._position and mark.is_whole and mark.end:
                    self._tell_continued(file, mark)
                self._note_stamp(path, mark, found)
                return True
            now = f"has {file.byte_count} bytes" if found is None else "differs from them"
            whole = whole_mark(file).to_plain()
        sentence = f"file {path!r} has changed: {mark.end} bytes of it were read, and it {now} now"
        if self._tell_lost(path, sentence, is_next=path == self._position):
            self._notes[path] = whole
        return False

    def _tell_continued(self, file: InputFile, mark: PrefixMark) -> None:
        """A last record without an end counted as one; what was appended to it since would be another."""
        last_and_next = file.read_up_to(mark.end - 1, mark.end + 1)
        if len(last_and_next) == 2 and not last_and_next.startswith(b"\n"):
            self._changed.append(
                f"file {file.path!r} ended at byte {mark.end} within a line, which was read as it was, and continues "
                "now: the rest of that line would be a record of its own"
            )

    def _known_under_other_names(self, lost: Mapping[str, PrefixMark]) -> Iterator[tuple[str, int]]:
        """Unread files that begin with what was read of a file that is lost, and how many bytes that is."""
        ends = {mark.end for mark in lost.values()}
        for path, size in sorted(self._sizes.items()):
            if path in self._marks or not lost:
                continue
            with closing(self._open(path)) as file:
                may_hold = file.is_compressed or any(end <= size for end in ends)
                marks = marks_at(file, ends) if may_hold else {}
            for former, mark in lost.items():
                if mark.end in marks and marks[mark.end].digest == mark.digest:
                    if path > self._position:
                        self._again.append(
                            f"file {path!r} begins with the {mark.end} bytes that were read of {former!r}"
                        )
                    yield path, mark.end
                    break

    def _tell_again(self, path: str, mark: PrefixMark) -> None:
        """A file was read that sorts after the position: a run that followed the folder took files as they joined."""
        self._again.append(
            f"file {path!r}, of which {mark.end} bytes were read, lies after the position, in file {self._position!r}"
        )
        self._notes[path] = None  # it is read from its beginning, and noted then

    def _look_at(self, path: str, known: int) -> None:
        """Tells what was not read of a file before the position, and remembers all of it as done with."""
        mark = self._marks.get(path)
        read = known if mark is None else mark.end
        with closing(self._open(path)) as file:
            if mark is not None and mark.is_whole and file.is_compressed and file.stamp == mark.stamp:
                return  # it cannot have grown, and to count its content it would have to be unpacked
            if mark is None and not known and self._is_empty(file):
                return
            size = file.byte_count
            if size > read:
                what = f"bytes {read} to {size} of file {path!r} lie" if read else f"file {path!r} ({size} bytes) lies"
                self._skipped.append(f"{what} before the position, in file {self._position!r}, and would never be read")
            if size > read or mark is None:
                self._notes[path] = whole_mark(file).to_plain()


class GrowingComparison(FileComparison):
    """Compares a folder that is followed.

    New files are what it is followed for, and a file that was read to its end and committed may go. A file that has
    grown since it was complete is told, because nobody would ever read the rest.

    Args:
        marks: see `FileComparison`.
        pending: see `FileComparison`.
        store: see `FileComparison`.
        removes: whether files that are done are removed, so that a file of the same content is not as good.

    Attributes:
        replaced: paths under which there is something now that was not read; told by `change`.
    """

    def __init__(
        self,
        marks: Mapping[str, PrefixMark],
        pending: Collection[str],
        store: FileStore,
        *,
        removes: bool,
    ) -> None:
        super().__init__(marks, pending, store)
        self._removes = removes
        self.replaced: set[str] = set()

    def change(self) -> InputChange:
        for path, mark in sorted(self._marks.items()):
            place = self._store.place_of(path)
            if place is not None:
                self._look_at(path, mark, place)
            elif path in self._pending or not mark.is_whole:
                self._tell_changed(path, mark, "is gone")
        return InputChange(changed=tuple(self._changed), impossible=tuple(self._impossible), notes=self._notes)

    def _look_at(self, path: str, mark: PrefixMark, place: str) -> None:
        with closing(self._open(place)) as file:
            if file.stamp == mark.stamp:
                return
            found = marks_at(file, {mark.end}).get(mark.end)
            if found is None or found.digest != mark.digest:
                self.replaced.add(path)
                self._tell_changed(path, mark, "differs from them now" if found else "is shorter now")
            elif mark.is_whole and file.read_up_to(mark.end, mark.end + 1):
                self.replaced.add(path)
                self._changed.append(
                    f"file {path!r} was complete with {mark.end} bytes of content, and has more now, which would never "
                    "be read"
                )
            elif not mark.is_whole and is_settled(mark.stamp) and file.stored_bytes != mark.stamp[0]:
                self._changed.append(
                    f"file {path!r} had {mark.stamp[0]} bytes when it was taken to be complete, and has "
                    f"{file.stored_bytes} now: its writer was not done, and the rest may end within a record"
                )
            elif self._removes and mark.is_whole and mark.stamp != NO_STAMP and _is_other(found, mark):
                self.replaced.add(path)
                self._changed.append(
                    f"file {path!r} holds what was read of a file of that name, and is another by inode or time: it "
                    "would neither be read nor removed"
                )
            else:
                self._note_stamp(path, mark, found)

    def _tell_changed(self, path: str, mark: PrefixMark, now: str) -> None:
        sentence = f"file {path!r} has changed: {mark.end} bytes of it were read, and it {now}"
        self._tell_lost(path, sentence, is_next=not mark.is_whole)


def _is_other(found: PrefixMark, read: PrefixMark) -> bool:
    return identity_of(found.stamp) != identity_of(read.stamp)
