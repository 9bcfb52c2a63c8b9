"""Whatever is done to a file at whatever moment of its removal, by its name or by an open handle: nothing is lost.

One window is left, and not attacked here: bytes written by a handle that is still open, between the last comparison and
the removal. No file system call can close it.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from coordinator import LocalCluster, TransactionalRun
from state import SourceError
from tests.support.sources.growing_folder import Crash, at_point, committed, files_below, put, submit

READ = b"m1\nm2\n"
MOMENTS = ("spout.notifying", "done_file.checked", "done_file.set_aside", "done_file.compared")
CONTENTS = {"same": READ, "other": b"x1\nx2\n", "more": READ + b"m3\n", "less": READ[:3], "nothing": b""}


def replaced(path: Path, content: bytes) -> None:
    new = path.with_suffix(".part")
    new.write_bytes(content)
    new.rename(path)


def recreated(path: Path, content: bytes) -> None:
    """The way to get the same inode again, on most file systems."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def rewritten(path: Path, content: bytes) -> None:
    """In place, with the former times."""
    before = path.stat() if path.exists() else None
    path.write_bytes(content)
    if before is not None:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def touched(path: Path, content: bytes) -> None:
    if path.exists():
        path.touch()


BY_HANDLE = "by an open handle"
ATTACKS = {each.__name__: each for each in (replaced, recreated, rewritten, touched)}


class Attack:
    """One attack on one file, remembered: afterwards the writer's content has to be somewhere."""

    def __init__(self, path: Path, kind: str, content: bytes, *, crashes: bool) -> None:
        self.path, self.kind, self.content, self.crashes = path, kind, content, crashes
        self.handle = path.open("r+b", buffering=0)
        self.has_happened = False

    def __call__(self) -> None:
        self.has_happened = True
        if self.kind == BY_HANDLE:
            self.handle.write(self.content)
            self.handle.truncate()
        else:
            ATTACKS[self.kind](self.path, self.content)
        if self.crashes:
            raise Crash

    def is_survived(self, folder: Path) -> bool:
        """Whether what the writer has written is on the disk, unless it is what was read, byte for byte, in place."""
        is_what_was_read = self.content == READ and self.kind in ("rewritten", BY_HANDLE)
        is_kept = any(path.read_bytes() == self.content for path in files_below(folder))
        return is_kept or is_what_was_read or self.kind == "touched"


def run_until_it_ends(cluster: LocalCluster, inbox: Path, done: str) -> TransactionalRun | None:
    done_path = str(inbox.parent / "done") if done == "move" else ""
    with suppress(SourceError, Crash):
        run = submit(cluster, inbox, done=done, done_path=done_path, adopt="changed")
        run.run_until_idle()
        return run
    return None


@given(
    kind=st.sampled_from([*ATTACKS, BY_HANDLE]),
    content=st.sampled_from(sorted(CONTENTS)),
    moment=st.sampled_from(MOMENTS),
    crashes=st.booleans(),
    is_late=st.booleans(),
    done=st.sampled_from(("delete", "move")),
)
@example(kind="replaced", content="same", moment=MOMENTS[3], crashes=True, is_late=False, done="delete")
@example(kind="rewritten", content="other", moment=MOMENTS[0], crashes=False, is_late=False, done="delete")
@example(kind="recreated", content="same", moment=MOMENTS[0], crashes=False, is_late=True, done="delete")
def test_nothing_is_removed_that_was_not_read(
    *, kind: str, content: str, moment: str, crashes: bool, is_late: bool, done: str
) -> None:
    if kind == BY_HANDLE and moment == "done_file.compared":
        return
    with TemporaryDirectory() as folder, LocalCluster() as cluster:
        inbox = Path(folder, "inbox")
        inbox.mkdir()
        path = put(inbox, "m", "m1", "m2")
        if is_late:  # the attack meets the run that makes up for a crash
            with at_point("spout.notifying", Crash.happen):
                assert run_until_it_ends(cluster, inbox, done) is None
        attack = Attack(path, kind, CONTENTS[content], crashes=crashes)
        with attack.handle, at_point(moment, attack):
            run_until_it_ends(cluster, inbox, done)
        assert attack.has_happened
        last = run_until_it_ends(cluster, inbox, done)
        assert attack.is_survived(Path(folder)), files_below(Path(folder))
        assert last is None or committed(last) == Counter(("m1", "m2"))
