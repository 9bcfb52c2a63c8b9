"""In which order the files of an input are read: by path, or as they join."""

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

_LOG = logging.getLogger("txbatch")
LONG_LOOK_S = 0.1
LOOK_SHARE = 10
"""A look that took a second longer is followed by a pause of ten: a large folder costs a tenth of a core."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a source is behind its folder.

    Attributes:
        file_count: complete files that were never cut.
        byte_count: their sizes in the store.
        incomplete_count: files that were seen and are not complete.
    """

    file_count: int
    byte_count: int
    incomplete_count: int


class ReadingOrder(ABC):
    """The files of an input; lives in the driver.

    Attributes:
        may_grow: whether writers append to files that were complete.
    """

    is_growing: bool
    may_grow = False

    @abstractmethod
    def begin(self, notes: Mapping[str, PrefixMark], last: RecordRange | None) -> None:
        """Tells what earlier runs have read; called once, before anything is asked.

        Args:
            notes: path -> note of every file that was read and will not be read any further.
            last: the range with which the last transaction ended.

        Raises:
            SourceError: a store cannot be listed.
        """

    def note(self, path: str, note: PrefixMark) -> None:  # noqa: B027 - nothing to do where the order goes by names
        """Tells how much of a file was read by now."""

    def take_names(self, cut: Mapping[str, PrefixMark], current: str) -> dict[str, PrefixMark | None]:
        """Returns the names that mean another file than was noted: name -> note, None for no file.

        Args:
            cut: path -> mark of what was cut since the last call, by the names that files had when they were opened.
            current: the last of these, which is perhaps not read to its end.
        """
        return {}

    @abstractmethod
    def after(self, file: JoinedFile | None) -> JoinedFile | None:
        """Returns the file that follows another, or the first; None if there is none yet. May look for new ones.

        Raises:
            SourceError: a store cannot be listed.
        """

    @abstractmethod
    def holding(self, last: RecordRange) -> JoinedFile | None:
        """Returns the file in which the last transaction of earlier runs ended; None if it left the input."""

    @abstractmethod
    def relocated(self, file: JoinedFile, *, read_bytes: int) -> JoinedFile:
        """Returns a file under its present name, where that is certain; `read_bytes`: how much was cut of it."""

    def is_taken(self, path: str) -> bool:
        """Returns whether a file that was read is known by a name; since the last look another may have got it."""
        return False

    def may_have_moved(self, file: JoinedFile) -> bool:
        """Returns whether a file that cannot be read now may join later, as what it is then."""
        return False

    @abstractmethod
    def fraction(self, path: str | None, share: float) -> float | None:
        """Returns which part of the input is cut, with `share` of one file; None if it never ends."""


class SortedOrder(ReadingOrder):
    """Every file there was at the start, by path.

    Args:
        sizes: path -> size, in order of the paths; files without a byte are not read.
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
        """Leaves out what was read, by a run that followed the folder or under another name, and sorts later."""
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
    """Files as they become complete; each look's by path, after those of earlier looks.

    The order is recorded as it is used: in the ranges of the transactions. A file that was never cut is found again by
    the next run.

    Args:
        watch: tells what is complete.
        known: tells what was read.
        look: finds everything that matches.
        clock: seconds, monotonic.
        poll_s: seconds between two looks; more after a look that took long.
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
        self._following: dict[int, JoinedFile] = {}  # number of a file -> the next
        self._newest = 0
        self._first: JoinedFile | None = None

    def resume(self, notes: Mapping[str, PrefixMark], now: Mapping[str, PrefixMark]) -> None:
        """Takes in what was read.

        Args:
            notes: as they are stored.
            now: the same under the names that files have now; those that differ are stored with the next transaction.
        """
        self.known.recall(notes)
        self.known.correct(now)

    def note(self, path: str, note: PrefixMark) -> None:
        self.known.note(path, note)

    def take_names(self, cut: Mapping[str, PrefixMark], current: str) -> dict[str, PrefixMark | None]:
        return self.known.take_names(cut, current)

    def begin(self, notes: Mapping[str, PrefixMark], last: RecordRange | None) -> None:
        """Looks where the last transaction ended: the rest of that file comes first."""
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
        self._following.pop(number - 1, None)  # nothing stands there any more
        if number not in self._following:
            self._poll()
        return self._following.get(number)

    def holding(self, last: RecordRange) -> JoinedFile | None:
        return self._first

    def relocated(self, file: JoinedFile, *, read_bytes: int) -> JoinedFile:
        """Looks for a file just as it joined, or for a grown one with its inode if content will be compared.

        An inode alone says nothing: it is soon given to another file.
        """
        if file.facts is None:
            return file
        for path, facts in self.look().items():
            has_grown = facts.inode and facts.inode == file.facts.inode and facts.byte_count >= file.byte_count
            is_it = has_grown and read_bytes and is_likely_one(file.path, path, read_bytes, has_its_inode=True)
            if is_it or facts.identity == file.facts.identity:
                return replace(file, path=path, facts=facts)
        return file

    def is_taken(self, path: str) -> bool:
        return path in self.known.notes

    def may_have_moved(self, file: JoinedFile) -> bool:
        """It was renamed, packed, or copied and cut off: there is a file that may be it and was not read."""
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
        """Returns what waits after a file; for logs and tests (driver)."""
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
        if is_first and not found and not self.known.notes:  # a mistake in a pattern would wait in silence
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
        """Raises SourceError if a file may or may not have been read, and nothing can decide it."""
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
