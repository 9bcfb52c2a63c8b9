"""What a folder that is followed tells of the files that were read: which are changed, or gone too early.

New files are what a folder is followed for, and a file that was read to its end and committed may go. A file that has
grown since it was complete is told, because nobody would ever read the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from coordinator.sources.files.prefix_digest import PrefixMark, marks_at
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import NO_STAMP, identity_of, is_settled
from coordinator.spouts.input_change import InputChange


class GrowingComparison:
    """Compares a folder with what was read of it; made once, at the start of a run (driver).

    Args:
        marks: path -> mark of every file that was read.
        pending: paths of files that are read again, for transactions that are not committed.
        store: where the files are.
        topology_id: whose files they are.
        removes: whether files that are done are removed, so that a file of the same content is not as good.

    Attributes:
        replaced: paths under which there is something now that was not read; told by `change`.
    """

    def __init__(
        self,
        marks: Mapping[str, PrefixMark],
        pending: Collection[str],
        store: FileStore,
        topology_id: str,
        *,
        removes: bool,
    ) -> None:
        self._marks, self._pending, self._removes = marks, pending, removes
        self._store, self._topology_id = store, topology_id
        self._changed: list[str] = []
        self._impossible: list[str] = []
        self._notes: dict[str, Any] = {}
        self.replaced: set[str] = set()

    def change(self) -> InputChange:
        """What is different.

        Raises:
            SourceError: a file cannot be read.
        """
        for path, mark in sorted(self._marks.items()):
            place = self._store.place_of(path, self._topology_id)
            if place is not None:
                self._look_at(path, mark, place)
            elif path in self._pending or not mark.is_whole:
                self._tell(path, mark, "is gone")
        return InputChange(changed=tuple(self._changed), impossible=tuple(self._impossible), notes=self._notes)

    def _look_at(self, path: str, mark: PrefixMark, place: str) -> None:
        with closing(open_content(self._store, place, self._topology_id)) as file:
            if file.stamp == mark.stamp:
                return
            found = marks_at(file, {mark.end}).get(mark.end)
            if found is None or found.digest != mark.digest:
                self.replaced.add(path)
                self._tell(path, mark, "differs from them now" if found else "is shorter now")
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
            elif self._removes and mark.is_whole and mark.stamp != NO_STAMP and not _is_the_same(found, mark):
                self.replaced.add(path)
                self._changed.append(
                    f"file {path!r} holds what was read of a file of that name, and is another by inode or time: it "
                    "would neither be read nor removed"
                )
            elif found.stamp != mark.stamp:
                kept = PrefixMark(mark.end, mark.base, mark.digest, found.stamp, mark.is_whole)
                self._notes[path] = kept.to_plain()  # the new stamp spares the next run a look

    def _tell(self, path: str, mark: PrefixMark, what: str) -> None:
        sentence = f"file {path!r} has changed: {mark.end} bytes of it were read, and it {what}"
        if path in self._pending:
            self._impossible.append(f"{sentence}; transactions that are not committed yet have to read it again")
        elif not mark.is_whole:
            self._impossible.append(f"{sentence}; the next transaction would have to begin in it")
        else:
            self._changed.append(sentence)


def _is_the_same(found: PrefixMark, read: PrefixMark) -> bool:
    return identity_of(found.stamp) == identity_of(read.stamp)
