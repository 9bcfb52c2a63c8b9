"""Tells which files of a folder may be read by now, each once, in the order in which that was found out.

Pure: it is given what a look at the folder has found, and the time. Clocks of writers and file servers do not
count: a file is quiet if two looks of ours, far enough apart, saw the same size and time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass

from coordinator.sources.files.growing.follow import Follow
from coordinator.sources.files.stores.file_store import FileFacts


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file that is not complete: how it looked, and since when."""

    facts: FileFacts
    since_s: float


class FolderWatch:
    """Follows one folder; lives in the driver.

    Args:
        follow: when a file is complete.
        has_marker: path of a file -> whether its marker is there.
    """

    def __init__(self, follow: Follow, has_marker: Callable[[str], bool]) -> None:
        self._follow = follow
        self._has_marker = has_marker
        self._known: set[str] = set()
        self._seen: dict[str, _Seen] = {}

    @property
    def known(self) -> Container[str]:
        """Files that were told, or read by earlier runs."""
        return self._known

    @property
    def incomplete_count(self) -> int:
        """Files that were seen and may not be read yet."""
        return len(self._seen)

    def forget(self, paths: Collection[str]) -> None:
        """Has files never told, because they were read already."""
        self._known.update(paths)
        for path in paths:
            self._seen.pop(path, None)

    def complete(self, found: Mapping[str, FileFacts], now_s: float) -> list[FileFacts]:
        """Takes in one look and tells the files that have become complete since the last one, by path.

        A file without a byte is never complete: there is nothing in it to read, and there may be yet.

        Args:
            found: path -> facts, of everything that matches.
            now_s: monotonic.
        """
        candidates = {
            path: facts
            for path, facts in found.items()
            if path not in self._known and facts.byte_count and not self._is_marker(path)
        }
        before, self._seen = self._seen, {}
        ready = []
        for path, facts in sorted(candidates.items()):
            seen = before.get(path)
            if seen is None or seen.facts != facts:
                seen = _Seen(facts, now_s)
            if self._is_complete(path, seen, now_s):
                ready.append(facts)
                self._known.add(path)
            else:
                self._seen[path] = seen
        return ready

    def _is_marker(self, path: str) -> bool:
        return self._follow.complete == "marker" and path.endswith(self._follow.marker)

    def _is_complete(self, path: str, seen: _Seen, now_s: float) -> bool:
        match self._follow.complete:
            case "rename":
                return True
            case "marker":
                return self._has_marker(path)
        return now_s - seen.since_s >= self._follow.quiet_s
