"""Folders that others change between any two calls: no line counts twice, and what is wrong is never silent.

One body for a folder that is followed and one that is read to its end, for both stores, plain and compressed. A run may
end by name, and then later ones may, too. If none did, what is committed is every file, whole and of one content.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.fs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator import LocalCluster, RunOptions
from coordinator.sources import Follow, TextFiles
from coordinator.sources.files.stores.compressed_file import close_kept
from state import TransactionError, UserCodeError
from tests.support.sources.growing_folder import Crash, Keep
from tests.support.sources.lying_folder import BENIGN, Lie, LyingFolder, Struck
from tests.support.topologies.components import collecting

RUNS_MAX = 3
LOOKS = 4
"""How often a run that follows looks at the folder with nothing to do, before it is drained."""

FAR = "keep, by pyarrow"
WAYS = ("to its end", "keep", "delete", "move", FAR)
"""How the folder is read, and what becomes of files that are done."""


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def spout(folder: LyingFolder, way: str) -> TextFiles:
    if way == "to its end":
        return TextFiles(str(folder.folder / "*.txt"), 2)
    done: Any = "keep" if way == FAR else way
    done_path = str(folder.folder.parent / "done") if way == "move" else ""
    follow = Follow(complete="rename", poll_s=0, done=done, done_path=done_path)
    if way != FAR:
        return TextFiles(str(folder.folder / "*.txt"), 2, follow=follow)
    far = pyarrow.fs.SubTreeFileSystem(str(folder.folder), pyarrow.fs.LocalFileSystem())
    return TextFiles("*.txt", 2, follow=follow, filesystem=far)


def run(folder: LyingFolder, cluster: LocalCluster, way: str) -> TransactionError | None:
    """One run, to its end or its death; returns the error it ended with."""
    try:
        topology = collecting("growing", spout(folder, way), Keep(), source="lines", tasks=2)
        made = cluster.submit(topology, options=RunOptions(max_spout_pending=2, adopt=way == "to its end"))
        for _ in range(LOOKS):
            made.run_until_idle()
        made.drain()
        made.run_until_idle()
        assert made.is_done
    except Crash:
        return None
    except UserCodeError:
        raise  # no name for what has happened to the input
    except TransactionError as error:
        return error
    finally:
        close_kept()
        folder.close_files()
    return None


def play(plan: list[Struck], way: str, pack) -> None:
    """Runs until the plan is played, then twice in peace."""
    Keep.hated = ""
    with TemporaryDirectory() as place, LocalCluster() as cluster:
        inbox = Path(place, "inbox")
        inbox.mkdir()
        folder = LyingFolder(inbox, plan, pack)
        errors = []
        with folder.installed():
            for left in (*range(RUNS_MAX, 0, -1), 0, 0):
                if not left or not folder.has_more():
                    folder.settle()
                errors.append(run(folder, cluster, way))
        lines = [line.decode() for line in cluster.client.lrange("{growing}:lines", 0, -1)]
        committed = Counter(lines)
        assert not committed or max(committed.values()) == 1, f"twice: {committed}"
        check_kept(folder, committed)
        if way != "to its end" and set(folder.struck) <= set(BENIGN):
            assert not any(errors), errors
        if not any(errors):
            check_whole(folder, committed)


def check_kept(folder: LyingFolder, committed: Counter[str]) -> None:
    """Whatever is not on the disk any more, and was not removed by others, is committed."""
    kept = folder.kept()
    for contents in folder.written.values():
        for lines in contents:
            is_there = lines in folder.destroyed or folder.packed(lines) in kept
            assert is_there or all(map(committed.__contains__, lines)), f"removed unread: {lines}"


def check_whole(folder: LyingFolder, committed: Counter[str]) -> None:
    """Every file that is there is committed as it is; of one that others took away, all it had once or nothing."""
    for name, lines in folder.current().items():
        assert all(map(committed.__contains__, lines)), f"{name} lacks lines: {committed}"
    for name, contents in folder.written.items():
        mine = {line for line in committed if line.startswith(name)}
        whole = [set(lines) for lines in contents]
        before_it_grew = [
            {line for line in lines if "+" not in line} for lines in contents if lines in folder.destroyed
        ]
        assert mine in [set(), *whole, *before_it_grew], f"{name} is mixed: {mine}"


plans = st.lists(
    st.builds(Struck, after=st.integers(0, 25), lie=st.sampled_from(Lie), place=st.integers(0, 9)), max_size=6
)


@pytest.mark.parametrize("pack", [bytes, zipped])
@given(plan=plans, way=st.sampled_from(WAYS))
@example(plan=[Struck(0, Lie.APPEARS), Struck(1, Lie.GROWS)], way="to its end")  # before the fingerprint is taken
@example(plan=[Struck(23, Lie.CRASHES), Struck(2, Lie.GROWS)], way="to its end")  # before it is compared
@example(plan=[Struck(22, Lie.IS_LATE), Struck(25, Lie.GROWS)], way="to its end")  # between the two, if it is packed
@example(plan=[Struck(2, Lie.IS_LATE), Struck(15, Lie.CRASHES), Struck(12, Lie.IS_LATE)], way="keep")  # read in part
@example(plan=[Struck(2, Lie.IS_LATE), Struck(15, Lie.CRASHES), Struck(11, Lie.IS_LATE)], way="keep")  # and packed
def test_no_line_counts_twice_and_nothing_wrong_is_silent(pack, plan, way):
    play(plan, way, pack)


@pytest.mark.parametrize("way", ["keep", "delete", "move"])
@pytest.mark.parametrize("call", range(9, 14))
def test_a_file_that_grows_when_a_crashed_run_is_continued_is_named(call, way):
    """A run that dies in the middle of a file continues there, and takes the file for what it was."""
    play([Struck(10, Lie.CRASHES), Struck(call, Lie.GROWS, place=1)], way, bytes)
