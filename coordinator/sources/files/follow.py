"""How a folder is followed, and which of its files are complete. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from coordinator.sources.files.stores.file_listing import FileFacts
from state.errors import TopologyError
from state.values.whole import is_number

Completion: TypeAlias = Literal["quiet", "rename", "marker"]
Disposal: TypeAlias = Literal["keep", "list", "move", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Makes a source of files wait for new files instead of ending.

    Attributes:
        complete: when a file may be read. ``quiet``: its size and time have not changed for `quiet_s`, as seen by two
            looks. ``rename``: at once, because writers rename a file when they are done. ``marker``: once there is
            a file of the same name with `marker` appended.
        quiet_s: how long a file has to be quiet, in seconds.
        marker: the suffix of a marker's name.
        poll_s: seconds between two looks at the folder.
        done: what to do with a file once everything in it is committed: keep it, append its path to the list
            `done_path`, move it to the folder `done_path`, or delete it.
        done_path: path of the list, on this machine, or of the folder, in the store of the files.

    Raises:
        TopologyError: a value is unknown, or contradicts another.
    """

    complete: Completion = "quiet"
    quiet_s: float = 10.0
    marker: str = ".done"
    poll_s: float = 1.0
    done: Disposal = "keep"
    done_path: str = ""

    def __post_init__(self) -> None:
        for name, given, known in (
            ("complete", self.complete, get_args(Completion)),
            ("done", self.done, get_args(Disposal)),
        ):
            if given not in known:
                raise TopologyError(f"{name}={given!r} of Follow is unknown; take one of {', '.join(map(repr, known))}")
        for name, seconds in (("quiet_s", self.quiet_s), ("poll_s", self.poll_s)):
            if not is_number(seconds) or not 0 <= seconds < 86_400:
                raise TopologyError(f"{name}={seconds!r} of Follow has to be a number of seconds below a day")
        if not isinstance(self.marker, str) or not self.marker or "/" in self.marker:
            raise TopologyError(f"marker={self.marker!r} of Follow has to be the end of a file's name, such as '.done'")
        if (self.done in ("list", "move")) != bool(self.done_path):
            raise TopologyError(
                f"done={self.done!r} of Follow does not fit done_path={self.done_path!r}: 'list' needs the path of a "
                "file, 'move' that of a folder, and nothing else takes a path"
            )


def checked_follow(given: bool | Follow) -> Follow | None:
    """Returns the `Follow` that a source's ``follow`` stands for; None to stop at the end of the input.

    Raises:
        TopologyError: ``follow`` is neither a bool nor a `Follow`.
    """
    if isinstance(given, Follow):
        return given
    if isinstance(given, bool):
        return Follow() if given else None
    raise TopologyError(f"follow={given!r} is neither True, False nor a Follow(...)")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The facts of a waiting file, and since when they have not changed."""

    facts: FileFacts
    since_s: float


class FolderWatch:
    """Decides which files of one folder are complete; lives in the driver.

    Args:
        follow: when a file is complete.
        has_marker: path of a file -> whether its marker is there.
    """

    def __init__(self, follow: Follow, has_marker: Callable[[str], bool]) -> None:
        self._follow = follow
        self._has_marker = has_marker
        self._seen: dict[str, _Seen] = {}
        self.incomplete_count = 0
        """Number of files that the last look found incomplete."""

    def complete(self, waiting: Mapping[str, FileFacts], now_s: float) -> frozenset[str]:
        """Takes the result of one look, and returns the paths of the files that are complete.

        Args:
            waiting: path -> facts of every file that waits to be read.
            now_s: time of the look, monotonic.
        """
        before, self._seen = self._seen, {}
        ready = set()
        for path, facts in waiting.items():
            seen = before.get(path)
            if seen is None or seen.facts != facts:
                seen = _Seen(facts, now_s)
            self._seen[path] = seen
            if self._is_complete(path, seen, now_s):
                ready.add(path)
        self.incomplete_count = len(waiting) - len(ready)
        return frozenset(ready)

    def _is_complete(self, path: str, seen: _Seen, now_s: float) -> bool:
        match self._follow.complete:
            case "rename":
                return True
            case "marker":
                return self._has_marker(path)
        return now_s - seen.since_s >= self._follow.quiet_s
