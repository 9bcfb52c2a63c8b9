"""In which order the files of an input are read: by path, or as they join."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass

from coordinator.sources.files.follow import FolderWatch
from coordinator.sources.files.stores.file_listing import FileFacts
from state.errors import SourceError

_LOG = logging.getLogger("txbatch")


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a source is behind its folder.

    Attributes:
        file_count: complete files of which nothing was cut.
        byte_count: their sizes in the store.
        incomplete_count: files that were seen and are not complete.
    """

    file_count: int
    byte_count: int
    incomplete_count: int


class ReadingOrder(ABC):
    """The files of an input, each with its size in the store; lives in the driver."""

    is_growing: bool

    @abstractmethod
    def begin(self, read: Collection[str], current: str | None) -> None:
        """Tells what earlier runs have read; called once, before anything is asked.

        Args:
            read: files of which something was read.
            current: the one in which the last transaction ended.

        Raises:
            SourceError: a store cannot be listed.
        """

    @abstractmethod
    def after(self, path: str | None) -> str | None:
        """Returns the file that follows another, or the first; None if there is none yet. May look for new ones.

        Raises:
            SourceError: a store cannot be listed.
        """

    @abstractmethod
    def size(self, path: str) -> int | None:
        """Size of a file when it joined; None of one that is not part of the input."""

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
        position = 0
        for path in self._paths:
            self._before[path] = position
            position += sizes[path]

    def begin(self, read: Collection[str], current: str | None) -> None:
        """Needs nothing: what follows a file goes by its name."""

    def after(self, path: str | None) -> str | None:
        index = 0 if path is None else bisect_right(self._paths, path)
        return self._paths[index] if index < len(self._paths) else None

    def size(self, path: str) -> int | None:
        return self._sizes.get(path)

    def fraction(self, path: str | None, share: float) -> float | None:
        if path is None or path not in self._before:
            return 0.0
        return (self._before[path] + share * self._sizes[path]) / self._total


class GrowingOrder(ReadingOrder):
    """Files as they become complete; each look's by path, after those of earlier looks.

    The order is recorded as it is used: in the ranges of the transactions. A file of which nothing was cut is found
    again by the next run.

    Args:
        watch: tells what is complete.
        look: finds everything that matches, but for what is in a collection.
        clock: seconds, monotonic.
        poll_s: seconds between two looks.
        topology_id: for the log.
        patterns: the same.
    """

    is_growing = True

    def __init__(
        self,
        watch: FolderWatch,
        look: Callable[[Container[str]], Mapping[str, FileFacts]],
        *,
        clock: Callable[[], float],
        poll_s: float,
        topology_id: str,
        patterns: Collection[str],
    ) -> None:
        self._watch, self._look = watch, look
        self._clock, self._poll_s = clock, poll_s
        self._topology_id, self._patterns = topology_id, patterns
        self._next_look_s: float | None = None
        self._sizes: dict[str, int] = {}
        self._following: dict[str | None, str] = {}
        self._newest: str | None = None

    def begin(self, read: Collection[str], current: str | None) -> None:
        facts = None if current is None else self._look(()).get(current)
        self._watch.forget({*read} if current is None else {*read, current})
        if current is None:
            return
        if facts is not None:
            self._sizes[current] = facts.byte_count
        self._following[None] = self._newest = current

    def after(self, path: str | None) -> str | None:
        if path not in self._following:
            self._poll()
        return self._following.get(path)

    def size(self, path: str) -> int | None:
        return self._sizes.get(path)

    def fraction(self, path: str | None, share: float) -> float | None:
        return None

    def lag(self, path: str | None) -> Lag:
        """Returns what waits after a file; for logs and tests (driver)."""
        count = byte_count = 0
        while (path := self._following.get(path)) is not None:
            count += 1
            byte_count += self._sizes.get(path, 0)
        return Lag(count, byte_count, self._watch.incomplete_count)

    def _poll(self) -> None:
        now_s = self._clock()
        if self._next_look_s is not None and now_s < self._next_look_s:
            return
        try:
            found = self._look(self._watch.known)
        except OSError as error:
            raise SourceError(
                f"the folder that topology {self._topology_id!r} follows cannot be listed: {error}; fix that, and run "
                "again"
            ) from error
        is_first, self._next_look_s = self._next_look_s is None, now_s + self._poll_s
        if is_first and not found and self._newest is None:  # a mistake in a pattern would wait in silence
            shown = ", ".join(map(repr, self._patterns))
            _LOG.warning(
                "topology %r: nothing matches %s yet; looking again every %g s", self._topology_id, shown, self._poll_s
            )
        ready = self._watch.complete(found, now_s)
        for facts in ready:
            self._sizes[facts.path] = facts.byte_count
            self._following[self._newest] = self._newest = facts.path
        if ready:
            waiting = self._watch.incomplete_count
            byte_count = sum(facts.byte_count for facts in ready)
            _LOG.info(
                "topology %r: %d files (%d bytes) joined, %d are not complete yet",
                self._topology_id,
                len(ready),
                byte_count,
                waiting,
            )
