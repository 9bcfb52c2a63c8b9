"""The order in which the files of an input are read: by path, or in the order in which they join."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count

from coordinator.sources.files.follow import FolderWatch
from coordinator.sources.files.known_files import JoinedFile, KnownFiles, Settled
from coordinator.sources.files.prefix_digest import PrefixMark
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.files.rotation import is_likely_one, is_related
from coordinator.sources.files.stores.file_listing import FileFacts
from coordinator.sources.files.stores.input_file import NO_STAMP
from state.errors import SourceError
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch.files")
LONG_LOOK_S = 0.1
LOOK_SHARE = 10
"""Seconds of pause for each second that a look took beyond `LONG_LOOK_S`: a large folder costs a tenth of a core."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a source is behind its folder.

    Attributes:
        file_count: number of complete files that wait to be cut.
        byte_count: their total size in the store.
        incomplete_count: number of files that were found and are not complete.
    """

    file_count: int
    byte_count: int
    incomplete_count: int


class ReadingOrder(ABC):
    """The files of an input in reading order; lives in the driver.

    Attributes:
        may_grow: whether writers append to complete files.
    """

    is_growing: bool
    may_grow = False

    @abstractmethod
    def begin(self, notes: Mapping[str, PrefixMark], last: RecordRange | None) -> None:
        """Takes what earlier runs have read; called once, before any file is asked for.

        Args:
            notes: path -> note of every file that was read and will not be read any further.
            last: the range with which the last transaction ended.

        Raises:
            SourceError: a store cannot be listed.
        """

    def note(self, path: str, note: PrefixMark) -> None:  # noqa: B027 - nothing to do where the order goes by names
        """Records how much of a file has been read."""

    def take_path_changes(self, cut: Mapping[str, PrefixMark], current: str) -> dict[str, PrefixMark | None]:
        """Returns the paths whose stored note is out of date: path -> current note, or None for no file.

        Args:
            cut: path when the file was opened -> mark, of the files cut since the last call.
            current: path of the last of these files, which may not be read to its end.
        """
        return {}

    @abstractmethod
    def after(self, file: JoinedFile | None) -> JoinedFile | None:
        """Returns the file after another, or the first one; None if there is none yet. May look for new files.

        Raises:
            SourceError: a store cannot be listed.
        """

    @abstractmethod
    def holding(self, last: RecordRange) -> JoinedFile | None:
        """Returns the file in which the last transaction of earlier runs ended; None if it left the input."""

    @abstractmethod
    def relocated(self, file: JoinedFile, *, read_bytes: int) -> JoinedFile:
        """Returns a file under its current path, if that is certain; `read_bytes` is how much of it was cut."""

    def note_path(self, former: str, path: str, read: PrefixMark | None) -> bool:
        """Records that a file has another path now, with its note if it was `read` in part.

        Returns:
            False if another file, which was read too, had that path at the last look.
        """
        return True

    def may_have_moved(self, file: JoinedFile) -> bool:
        """Returns whether a file that cannot be read may join again later, under another path."""
        return False

    @abstractmethod
    def fraction(self, path: str | None, share: float) -> float | None:
        """Returns the fraction of the input that is cut, given the `share` of one file; None if it never ends."""


class SortedOrder(ReadingOrder):
    """Every file that existed at the start, by path.

    Args:
        sizes: path -> size, in order of the paths; empty files are not read.
    """

    is_growing = False

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._paths = [path for path, size in sizes.items() if size]
        self._total = sum(sizes.values())
        self._before: dict[str, int] = {}
        self._read: frozenset[str] = frozenset()
        position = 0
        for path in self._paths:
            self._before[path] = position
            position += sizes[path]

    def begin(self, notes: Mapping[str, PrefixMark], last: RecordRange | None) -> None:
        """Leaves out files that sort after `last` and were read: by a following run, or under another path."""
        self._read = frozenset(path for path in notes if last is None or path > last.path)

    def after(self, file: JoinedFile | None) -> JoinedFile | None:
        index = 0 if file is None else bisect_right(self._paths, file.path)
        while index < len(self._paths) and self._paths[index] in self._read:
            index += 1
        return self._file(self._paths[index]) if index < len(self._paths) else None

    def holding(self, last: RecordRange) -> JoinedFile | None:
        return self._file(last.path) if last.path in self._sizes else None

    def relocated(self, file: JoinedFile, *, read_bytes: int) -> JoinedFile:
        return file

    def fraction(self, path: str | None, share: float) -> float | None:
        if path is None or path not in self._before:
            return 0.0
        return (self._before[path] + share * self._sizes[path]) / self._total

    def _file(self, path: str) -> JoinedFile:
        return JoinedFile(path, self._sizes[path])


class GrowingOrder(ReadingOrder):
    """Files in the order in which they become complete; files that become complete together, by path.

    The ranges of the transactions record the order. The next run finds files again that were never cut.

    Args:
        watch: decides which files are complete.
        known: the files that were read.
        look: finds every file that matches.
        clock: monotonic seconds.
        poll_s: seconds between two looks; the pause after a slow look is longer.
        topology_id: for the log and messages.
        patterns: for the log.
    """

    is_growing = True

    def __init__(
        self,
        watch: FolderWatch,
        known: KnownFiles,
        look: Callable[[], Mapping[str, FileFacts]],
        *,
        clock: Callable[[], float],
        poll_s: float,
        topology_id: str,
        patterns: Collection[str],
    ) -> None:
        self._watch, self.known, self.look = watch, known, look
        self.may_grow = known.may_grow
        self._clock, self._poll_s = clock, poll_s
        self._topology_id, self._patterns = topology_id, patterns
        self._next_look_s: float | None = None
        self._numbers = count(1)
        self._following: dict[int, JoinedFile] = {}  # number of a file -> the file after it
        self._newest = 0
        self._first: JoinedFile | None = None

    def resume(self, notes: Mapping[str, PrefixMark], now: Mapping[str, PrefixMark]) -> None:
        """Restores the notes of earlier runs.

        Args:
            notes: the notes as they are stored.
            now: the notes under the current paths of the files; the next transaction stores the differences.
        """
        self.known.recall(notes)
        self.known.correct(now)

    def note(self, path: str, note: PrefixMark) -> None:
        self.known.note(path, note)

    def take_path_changes(self, cut: Mapping[str, PrefixMark], current: str) -> dict[str, PrefixMark | None]:
        return self.known.take_path_changes(cut, current)

    def begin(self, notes: Mapping[str, PrefixMark], last: RecordRange | None) -> None:
        """Finds the file in which the last transaction ended: its rest is read first."""
        if last is None or last.mark is None:
            return
        path = self.known.path_of(last.mark, last.path)
        facts = self.look().get(path) or self.known.facts_at(path)  # a listing may lack what has just been written
        if facts is not None:
            size = facts.byte_count
            when_complete = size if last.mark.stamp == NO_STAMP else last.mark.stamp[0]
            self._first = JoinedFile(path, min(size, when_complete), facts=facts)

    def after(self, file: JoinedFile | None) -> JoinedFile | None:
        number = 0 if file is None else file.number
        self._following.pop(number - 1, None)  # that file is passed for good
        if number not in self._following:
            self._poll()
        return self._following.get(number)

    def holding(self, last: RecordRange) -> JoinedFile | None:
        return self._first

    def relocated(self, file: JoinedFile, *, read_bytes: int) -> JoinedFile:
        """Finds a file by its identity when it joined; or by its inode, if it has grown and content will be compared.

        An inode alone proves nothing: it is soon given to another file.
        """
        if file.facts is None:
            return file
        for path, facts in self.look().items():
            has_grown = facts.inode and facts.inode == file.facts.inode and facts.byte_count >= file.byte_count
            is_it = has_grown and read_bytes and is_likely_one(file.path, path, read_bytes, has_its_inode=True)
            if is_it or facts.identity == file.facts.identity:
                return replace(file, path=path, facts=facts)
        return file

    def note_path(self, former: str, path: str, read: PrefixMark | None) -> bool:
        note = self.known.notes.get(path)
        if note is not None:  # a look may have found the file there
            return read is not None and (note.end, note.digest) == (read.end, read.digest)
        if read is not None and (note := self.known.notes.get(former)) and note.digest == read.digest:
            self.known.rename({former: path})
        return True

    def may_have_moved(self, file: JoinedFile) -> bool:
        """Returns whether an unread file may be this one, after it was renamed, packed, or copied and truncated."""
        inode = 0 if file.facts is None else file.facts.inode
        return any(
            facts.byte_count
            and self.known.is_strange(facts)
            and (is_related(file.path, path) or (inode and facts.inode == inode))
            for path, facts in self.look().items()
            if path != file.path or not inode or facts.inode != inode
        )

    def fraction(self, path: str | None, share: float) -> float | None:
        return None

    def lag(self, file: JoinedFile | None) -> Lag:
        """Returns how much waits after a file; for logs and tests (driver)."""
        number, files = 0 if file is None else file.number, []
        while (found := self._following.get(number)) is not None:
            files.append(found)
            number = found.number
        return Lag(len(files), sum(each.byte_count for each in files), self._watch.incomplete_count)

    def _poll(self) -> None:
        now_s = self._clock()
        if self._next_look_s is not None and now_s < self._next_look_s:
            return
        try:
            found = self.look()
        except OSError as error:
            raise SourceError(
                f"the folder that topology {self._topology_id!r} follows cannot be listed: {error}; fix that, and run "
                "again"
            ) from error
        is_first = self._next_look_s is None
        if is_first and not found and not self.known.notes:  # a mistyped pattern would wait in silence
            shown = ", ".join(map(repr, self._patterns))
            _LOG.warning(
                "topology %r: nothing matches %s yet; looking again every %g s", self._topology_id, shown, self._poll_s
            )
        settled = self.known.settle(found, lambda waiting: self._watch.complete(waiting, now_s))
        self._next_look_s = now_s + max(self._poll_s, LOOK_SHARE * (self._clock() - now_s - LONG_LOOK_S))
        self._refuse_unknown(settled)
        for joined in settled.joined:
            file = replace(joined, number=next(self._numbers))
            self._following[self._newest] = file
            self._newest = file.number
        if settled.joined:
            _LOG.info(
                "topology %r: %d files (%d bytes) joined, %d are not complete yet",
                self._topology_id,
                len(settled.joined),
                sum(each.byte_count for each in settled.joined),
                self._watch.incomplete_count,
            )

    def _refuse_unknown(self, settled: Settled) -> None:
        """Raises SourceError if a file may or may not be one we read, or has content that we would never read."""
        for alike in settled.alike:
            raise SourceError(
                f"{alike.sentence}; run topology {self._topology_id!r} again with --adopt=renamed if it is the same "
                "file, or with --adopt=again to have it read"
            ).about(Trouble.INPUT_CHANGED)
        for replaced in (*settled.replaced, *settled.outgrown):
            raise SourceError(
                f"{replaced.sentence}; put the file back, or give what is there now a new name, and run topology "
                f"{self._topology_id!r} again; or leave it unread with --adopt=changed"
            ).about(Trouble.INPUT_CHANGED)
