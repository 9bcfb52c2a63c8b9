"""How a folder is followed: when a file of it is complete, how often to look, what becomes of files that are done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from state.errors import TopologyError

Completion: TypeAlias = Literal["quiet", "rename", "marker"]
Disposal: TypeAlias = Literal["keep", "list", "move", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Has a source of files wait for new ones instead of coming to an end.

    Attributes:
        complete: when a file may be read. ``quiet``: its size and time have not changed for `quiet_s`, as seen by two
            looks. ``rename``: at once, because writers give it its name when they are done. ``marker``: once there is
            a file of the same name with `marker` appended.
        quiet_s: how long a file has to be quiet, in seconds.
        marker: what a marker's name has after the file's.
        poll_s: seconds between two looks at the folder.
        done: what becomes of a file once everything in it is committed: it is left alone, its path is appended to the
            list `done_path`, it is moved to the folder `done_path`, or deleted.
        done_path: a file or folder; on this machine for a list, in the store of the files for a folder.

    Raises:
        TopologyError: a value is unknown or of no use with the others.
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
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 86_400:
                raise TopologyError(f"{name}={seconds!r} of Follow has to be a number of seconds below a day")
        if not self.marker or "/" in self.marker:
            raise TopologyError(f"marker={self.marker!r} of Follow has to be the end of a file's name, such as '.done'")
        if (self.done in ("list", "move")) != bool(self.done_path):
            raise TopologyError(
                f"done={self.done!r} of Follow goes with done_path={self.done_path!r}: give the path of a list or a "
                "folder with 'list' or 'move', and none otherwise"
            )


def checked_follow(given: bool | Follow) -> Follow | None:
    """What a source's ``follow`` means: None reads to the end.

    Raises:
        TopologyError: it is neither a truth value nor a `Follow`.
    """
    if isinstance(given, Follow):
        return given
    if isinstance(given, bool):
        return Follow() if given else None
    raise TopologyError(f"follow={given!r} is neither True, False nor a Follow(...)")
