"""What other files mean for those that were read: which are unread, changed, gone, or the same under a new name.

A file whose size, times and inode are those it had when it was read is taken to be unchanged, unless it had been
changed within two seconds before; of any other the bytes that were read are read again and their digest compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any

from coordinator.sources.files.prefix_digest import PrefixMark, marks_at, whole_mark
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.spouts.input_change import InputChange


class FileComparison:
    """Compares files with what was read of files; made once, at the start of a run (driver).

    Args:
        sizes: path -> size of every file of the input.
        marks: path -> mark of every file that was read.
        position: path of the file in which the last transaction ended.
        pending: paths of files that are read again, for transactions that are not committed.
        open_file: opens a file for its content.
        is_empty: tells whether a file holds no record, though it may hold a header; nothing is noted of such a file.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        marks: Mapping[str, PrefixMark],
        position: str,
        pending: Collection[str],
        *,
        open_file: Callable[[str], InputFile],
        is_empty: Callable[[InputFile], bool],
    ) -> None:
        self._sizes = sizes
        self._pending = pending
        self._position = position
        self._open, self._is_empty = open_file, is_empty
        self._marks = marks
        self._skipped: list[str] = []
        self._again: list[str] = []
        self._changed: list[str] = []
        self._impossible: list[str] = []
        self._notes: dict[str, Any] = {}

    def change(self) -> InputChange:
        """What is different.

        Raises:
            SourceError: a file cannot be read, or what is stored is not of text files.
        """
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
        """Whether a file still begins with what was read of it."""
        if path not in self._sizes:
            self._lost(path, f"file {path!r} is no longer part of the input; {mark.end} bytes of it were read", None)
            return False
        with closing(self._open(path)) as file:
            if file.stamp == mark.stamp:
                return True
            found = marks_at(file, {mark.end}).get(mark.end)
            if found is not None and found.digest == mark.digest:
                if path == self._position and mark.is_whole and mark.end:
                    self._tell_continued(file, mark)
                if found.stamp != mark.stamp:
                    kept = PrefixMark(mark.end, mark.base, mark.digest, found.stamp, mark.is_whole)
                    self._notes[path] = kept.to_plain()  # the new stamp spares the next run a look
                return True
            now = f"has {file.byte_count} bytes" if found is None else "differs from them"
            whole = whole_mark(file).to_plain()
            self._lost(path, f"file {path!r} has changed: {mark.end} bytes of it were read, and it {now} now", whole)
        return False

    def _tell_continued(self, file: InputFile, mark: PrefixMark) -> None:
        """A last record without an end counted as one; what was appended to it since would be another."""
        last_and_next = file.read_up_to(mark.end - 1, mark.end + 1)
        if len(last_and_next) == 2 and not last_and_next.startswith(b"\n"):
            self._changed.append(
                f"file {file.path!r} ended at byte {mark.end} within a line, which was read as it was, and continues "
                "now: the rest of that line would be a record of its own"
            )

    def _lost(self, path: str, sentence: str, note: list[Any] | None) -> None:
        if path in self._pending:
            self._impossible.append(f"{sentence}; transactions that are not committed yet have to read it again")
        elif path == self._position and note is not None:
            self._impossible.append(f"{sentence}; the next transaction would have to begin in it")
        else:
            self._changed.append(sentence)
            self._notes[path] = note

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
