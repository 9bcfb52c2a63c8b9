"""What becomes of done files while somebody else writes under their names: nothing is removed that was not read."""

from __future__ import annotations

import ctypes
import errno
import gzip
import json
import os
import resource
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from coordinator import LocalCluster, TransactionalRun
from coordinator.sources import Follow
from coordinator.sources.files.done_files import DoneFiles, FinishedFile, FinishedFiles
from coordinator.sources.files.prefix_digest import whole_mark
from coordinator.sources.files.stores import input_file, local_store
from coordinator.sources.files.stores.file_store import name_in
from coordinator.sources.files.stores.local_store import LocalStore, rename_to_free_name
from state import SourceError, TopologyError, UserCodeError
from state.redis_owner.store import RedisStore
from tests.support.runs.quarantine_world import QuarantineWorld
from tests.support.sources.addresses import Address
from tests.support.sources.growing_folder import (
    Crash,
    Keep,
    at_point,
    drained,
    files_below,
    growing,
    put,
    settled,
    submit,
)
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import attempt

REMOVING = pytest.mark.parametrize("done", ["delete", "move"])


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def place_of(inbox: Path, done: str) -> dict[str, Any]:
    """What is done is deleted, or moved to, or listed in, what lies next to the inbox."""
    return {"done": done, "done_path": "" if done in ("delete", "keep") else str(inbox.parent / "done")}


def removing(cluster: LocalCluster, inbox: Path, done: str, **more: Any) -> TransactionalRun:
    """Runs until nothing is left to do."""
    return settled(cluster, inbox, **place_of(inbox, done), **more)


def crashed(cluster: LocalCluster, inbox: Path, done: str, point: str = "spout.notifying") -> None:
    """A run that dies at this point."""
    with at_point(point, Crash.happen), pytest.raises(Crash):
        removing(cluster, inbox, done)


def done_with(inbox: Path, path: Path, done: Any) -> DoneFiles:
    """What is to be done, at the commit of transaction 1, with a file that was read as it is now."""
    store, finished = LocalStore(str(inbox)).of("growing"), FinishedFiles(removes=True)
    with closing(store.open(str(path))) as file:
        finished.cut(1, [FinishedFile(str(path), whole_mark(file))])
    return DoneFiles(finished, Follow(**place_of(inbox, done)), store, str(inbox))


@REMOVING
@pytest.mark.parametrize("change", ["written in place", "replaced"])
def test_a_file_that_was_empty_when_it_was_read_is_not_removed_once_it_is_filled(inbox, monkeypatch, done, change):
    monkeypatch.setattr(input_file, "RECENT_NS", 0)  # as if it had been empty for a while
    path = inbox / "m.txt"
    path.touch()
    done_files = done_with(inbox, path, done)

    def fill() -> None:
        path.write_text("x1\n") if change == "written in place" else put(inbox, "m", "x1")

    with (
        at_point("done_file.checked", fill),
        pytest.raises(SourceError, match=r"m\.txt' (had 0 bytes|is not the file)"),
    ):
        done_files.commit(attempt(1))
    assert path.read_text() == "x1\n"


@REMOVING
def test_another_file_of_the_same_content_is_not_taken_for_the_one_that_was_read(inbox: Path, done: str) -> None:
    path = put(inbox, "m", "m1")
    with LocalCluster() as cluster:
        crashed(cluster, inbox, done)
        put(inbox, "m", "m1")
        with pytest.raises(SourceError, match=r"m\.txt' holds what was read under that name, and is another file"):
            removing(cluster, inbox, done)
        run = removing(cluster, inbox, done, adopt="changed")
        assert drained(run) == {"m1": 1}
    assert path.exists()


@pytest.mark.parametrize("done_path", ["inbox", ".", "inbox/../inbox/"])
def test_files_are_not_moved_to_where_they_are_read_from(cluster, inbox, done_path, monkeypatch):
    monkeypatch.chdir(inbox.parent)
    put(inbox, "m", "m1")
    with pytest.raises(TopologyError, match=r"is the folder of pattern '.*'; files there"):
        submit(cluster, inbox, done="move", done_path=done_path)
    settled(cluster, inbox, done="move", done_path="inbox/done")
    assert (inbox / "done" / "m.txt").exists()


def test_a_quarantined_batch_of_another_kind_of_source_holds_up_no_file(inbox: Path) -> None:
    path = put(inbox, "m", "m1")
    done_files = done_with(inbox, path, "delete")
    done_files.keep([{"0": ["orders", "1-0", "2-0", 2, 7, 2, 1]}, 5])
    done_files.commit(attempt(1))
    assert not path.exists()


@pytest.mark.parametrize("done", ["delete", "move", "list"])
@pytest.mark.parametrize("is_dropped", [False, True], ids=["republished", "dropped"])
def test_a_file_stays_while_a_batch_of_it_is_quarantined(cluster, inbox: Path, done: str, is_dropped: bool) -> None:
    """It is read again when that is republished; neither a later start nor a later commit frees it before."""
    given = place_of(inbox, done) | {"lines_per_batch": 2}
    poisoned, other = put(inbox, "m", "m1", "m2", "m3", "m4", "m5", "m6"), put(inbox, "n", "n1", "n2")

    def is_dealt_with(path: Path) -> bool:
        return str(path) in (inbox.parent / "done").read_text().split() if done == "list" else not path.exists()

    Keep.hated = "m3"
    for name in ("o", "p"):
        run = settled(cluster, inbox, on_poison="quarantine", **given)
        later = put(inbox, name, f"{name}1", f"{name}2")
        run.run_until_idle()
        drained(run)
        assert [is_dealt_with(path) for path in (poisoned, other, later)] == [False, True, True]
    Keep.hated = ""
    store, world = RedisStore("redis://memory", "growing", client=cluster.client), QuarantineWorld()
    world.server = cluster.client
    if is_dropped:
        assert admin_of(store).discard(store.quarantined()[0])
    else:
        assert world.run(growing(inbox, **given), republish="all").republished == {2: 7}
    left_out = {"m3", "m4"} if is_dropped else set()
    put(inbox, "q", "q1")
    run = settled(cluster, inbox, **given)
    lines = {"m1", "m2", "m3", "m4", "m5", "m6", "n1", "n2", "o1", "o2", "p1", "p2", "q1"} - left_out
    assert drained(run) == Counter(lines)
    assert is_dealt_with(poisoned)


@REMOVING
@pytest.mark.parametrize(
    "point", ["spout.notifying", *(f"done_file.{each}" for each in ("checked", "set_aside", "compared"))]
)
def test_a_crash_while_a_file_is_removed_is_made_up_for(cluster, inbox: Path, point: str, done: str) -> None:
    put(inbox, "m", "m1", pack=gzip.compress)
    put(inbox, "n", "n1")
    crashed(cluster, inbox, done, point)
    assert drained(removing(cluster, inbox, done)) == {"m1": 1, "n1": 1}
    left = [inbox.parent / "done" / name for name in ("m.txt", "n.txt")] if done == "move" else []
    assert files_below(inbox.parent) == left


@pytest.mark.parametrize("done", ["keep", "delete"])
def test_a_file_set_aside_by_a_run_whose_server_went_back_is_read(inbox, done):
    put(inbox, "m", "m1")
    with LocalCluster() as cluster:
        crashed(cluster, inbox, "delete", "done_file.compared")
    with LocalCluster() as cluster:  # of which the server knows nothing
        assert drained(removing(cluster, inbox, done)) == {"m1": 1}


def test_what_is_set_aside_never_replaces_a_newer_file(cluster: LocalCluster, inbox: Path) -> None:
    path = put(inbox, "m", "m1")
    crashed(cluster, inbox, "delete", "done_file.set_aside")
    put(inbox, "m", "x1")
    with pytest.raises(
        SourceError, match=r"renamed to '\.txbatch-aside-[0-9a-f]{16}-m\.txt' while it was being removed"
    ):
        removing(cluster, inbox, "delete")
    assert path.read_text() == "x1\n"
    (aside,) = inbox.glob(".txbatch-aside-*-m.txt")
    assert aside.read_text() == "m1\n"
    path.rename(inbox / "n.txt")
    assert drained(removing(cluster, inbox, "delete")) == {"m1": 1, "x1": 1}
    assert files_below(inbox) == []


def test_what_no_pattern_matches_stays_aside(cluster: LocalCluster, inbox: Path) -> None:
    (inbox / "m.csv").write_text("c1\n")
    aside = Path(LocalStore(str(inbox)).of("growing").set_aside(str(inbox / "m.csv")))
    put(inbox, "n", "n1")
    assert drained(removing(cluster, inbox, "delete")) == {"n1": 1}
    assert files_below(inbox) == [aside]


@pytest.mark.parametrize(
    ("pattern", "name"), [("**", "deep/m.txt"), ("a[[]1].txt", "a[1].txt"), ("a[1].txt", "a[1].txt")]
)
def test_what_is_set_aside_is_found_again_whatever_the_pattern(inbox: Path, pattern: str, name: str) -> None:
    store, path = LocalStore(str(inbox)).of("growing"), inbox / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("1\n")
    store.set_aside(str(path))
    assert list(store.look([pattern])) == []
    store.recover([pattern])
    assert list(store.look([pattern])) == [str(path)]


@pytest.mark.parametrize("has", ["renameat2", "links", "neither"])
def test_a_name_that_is_taken_is_never_replaced(tmp_path: Path, monkeypatch, has: str) -> None:
    def no_link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    if has != "renameat2":
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    if has == "neither":
        monkeypatch.setattr("coordinator.sources.files.stores.local_store.os.link", no_link)
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    new.write_text("new")
    with pytest.raises(FileExistsError):
        rename_to_free_name(old, new)
    assert (old.read_text(), new.read_text()) == ("old", "new")
    new.unlink()
    rename_to_free_name(old, new)
    assert files_below(tmp_path) == [new]
    if has == "links":  # a crash between the new link and the end of the old one
        os.link(new, old)
        rename_to_free_name(old, new)
        assert files_below(tmp_path) == [new]


@REMOVING
def test_a_link_is_removed_and_its_target_left(cluster: LocalCluster, inbox: Path, done: str) -> None:
    (inbox.parent / "target").write_text("m1\n")
    (inbox / "m.txt").symlink_to("../target")
    assert drained(removing(cluster, inbox, done)) == {"m1": 1}
    assert not (inbox / "m.txt").is_symlink()
    assert (inbox.parent / "target").exists()


@pytest.mark.parametrize("is_relative", [True, False])
def test_a_link_that_is_moved_leads_to_the_same_file(inbox: Path, is_relative: bool) -> None:
    target = inbox.parent / "elsewhere" / "target"
    target.parent.mkdir()
    target.write_text("m1\n")
    store = LocalStore(str(inbox)).of("growing")
    for _ in range(2):  # the second time after a crash between the new link and the end of the old one
        (inbox / "m.txt").symlink_to("../elsewhere/target" if is_relative else target)
        store.move(store.set_aside(str(inbox / "m.txt")), "../archive/deep")
        assert (inbox.parent / "archive" / "deep" / "m.txt").resolve() == target
        assert files_below(inbox) == []
    names = [path.name for path in (inbox.parent / "archive" / "deep").iterdir()]
    assert names == ["m.txt"] if is_relative else len(names) == 2


@REMOVING
def test_a_new_file_under_a_name_that_is_dealt_with_stops_the_run(cluster, inbox, done):
    put(inbox, "m", "m1")
    run = removing(cluster, inbox, done)
    path = put(inbox, "m", "m1")
    with pytest.raises(SourceError, match=r"m\.txt' has the name of one that was read, committed and removed"):
        run.run_until_idle()
    path.rename(inbox / "n.txt")
    assert drained(removing(cluster, inbox, done)) == {"m1": 2}


@pytest.mark.parametrize(
    ("name", "done", "told"),
    [
        ("m", "move", r"/inbox/m\.txt' was read and committed and cannot be moved to"),
        ("m" * 245, "delete", "since that name is too long: give files names that are at least 32 bytes"),
    ],
)
def test_a_file_that_cannot_be_moved_or_set_aside_keeps_its_name(cluster, inbox, name, done, told):
    path = put(inbox, name, "m1")
    (inbox.parent / "done").touch()
    with pytest.raises(SourceError, match=told):
        removing(cluster, inbox, done)
    assert path.read_text() == "m1\n"


def test_no_name_forges_or_splits_a_line_of_the_list_or_is_listed_twice(cluster: LocalCluster, inbox: Path) -> None:
    listed = inbox.parent / "done.list"
    names = ["plain é", "a\nb.txt", "b\u2028c", "d\re", "\u202ef", '"g"']
    for name in names:
        put(inbox, name, name.splitlines()[0])
    for _ in range(3):
        run = settled(cluster, inbox, done="list", done_path=str(listed))
        run.close()
    lines = listed.read_text().splitlines()
    found = [json.loads(line) if line.startswith('"') else line for line in lines]
    assert sorted(found) == sorted(str(inbox / f"{name}.txt") for name in names)
    assert str(inbox / "plain é.txt") in lines, "a name that needs no escape has none"


@pytest.mark.parametrize("done", ["delete", "move", "list"])
@pytest.mark.parametrize("point", ["spout.notifying", "done_file.checked", "done_file.set_aside"])
def test_a_process_out_of_file_descriptors_loses_nothing(cluster, inbox: Path, done: str, point: str) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def exhaust() -> None:
        with Path(os.devnull).open() as next_one:
            resource.setrlimit(resource.RLIMIT_NOFILE, (next_one.fileno(), limits[1]))

    path = put(inbox, "m", "m1")
    try:
        with at_point(point, exhaust), suppress(SourceError):
            removing(cluster, inbox, done)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert drained(removing(cluster, inbox, done)) == {"m1": 1}
    left = {"delete": [], "move": [inbox.parent / "done" / "m.txt"], "list": [inbox.parent / "done", path]}
    assert files_below(inbox.parent) == left[done]


def test_a_full_disk_tears_no_line_for_good(cluster: LocalCluster, inbox: Path, tmp_path: Path) -> None:
    listed, paths = tmp_path / "done.list", [str(put(inbox, name, name)) for name in ("m", "n")]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    follow: dict[str, Any] = {"done": "list", "done_path": str(listed), "lines_per_batch": 1}
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(paths[0]) + 9, limits[1]))
        with pytest.raises(SourceError, match=r"the list of finished files, .*, cannot be written: File too large"):
            settled(cluster, inbox, **follow)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert listed.read_text() == f"{paths[0]}\n{paths[1]}"[: len(paths[0]) + 9]
    settled(cluster, inbox, **follow)
    assert listed.read_text() == "".join(f"{path}\n" for path in paths)


@pytest.mark.parametrize("torn", ["of ours", "of another"])
def test_done_files_are_listed_once_also_over_a_torn_line(cluster, inbox, torn):
    listed, path = inbox.parent / "done", put(inbox, "m", "m1")
    if torn == "of ours":
        listed.write_text(str(path)[:-3])
    drained(removing(cluster, inbox, "list"))
    assert listed.read_text() == f"{path}\n"
    listed.write_text(listed.read_text() + "/torn")
    other = put(inbox, "a", "a1")
    removing(cluster, inbox, "list")
    assert listed.read_text().splitlines() == [str(path), "/torn", str(other)]


def test_done_files_are_deleted_once_they_are_committed_and_not_before(cluster, inbox):
    put(inbox, "m", "m1", "m2", "m3", "m4")
    put(inbox, "n", "n1", "hated", "n3", "n4")
    Keep.hated = "hated"
    with pytest.raises(UserCodeError):
        removing(cluster, inbox, "delete", lines_per_batch=4)
    assert [path.name for path in inbox.iterdir()] == ["n.txt"]
    Keep.hated = ""
    assert drained(removing(cluster, inbox, "delete", lines_per_batch=4)).total() == 8
    assert list(inbox.iterdir()) == []


def test_done_files_are_moved_and_none_is_overwritten(cluster, inbox):
    done = inbox.parent / "done"
    done.mkdir()
    (done / "m.txt").write_text("somebody else's")
    put(inbox, "m", "m1")
    put(inbox, "n", "n1")
    removing(cluster, inbox, "move")
    assert list(inbox.iterdir()) == []
    assert sorted(path.read_text() for path in done.iterdir()) == ["m1\n", "n1\n", "somebody else's"]


def test_a_name_that_is_taken_twice_is_still_not_overwritten() -> None:
    digested = f"m-{7:016x}.txt"
    names = [name_in(["m.txt", digested][:taken], "m.txt", 7) for taken in range(3)]
    assert names == ["m.txt", digested, f"m-{7:016x}-2.txt"]


def test_markers_go_with_their_files(cluster: LocalCluster, inbox: Path) -> None:
    put(inbox, "m", "m1")
    run = settled(cluster, inbox, complete="marker", done="delete")
    assert (inbox / "m.txt").exists()
    (inbox / "m.txt.done").touch()
    run.run_until_idle()
    assert list(inbox.iterdir()) == []
    assert drained(run) == {"m1": 1}


def once(cluster: LocalCluster, inbox: Any, **follow: Any) -> list[str]:
    run = settled(cluster, inbox, pattern="**/*.txt", **follow)
    run.run_until_idle()
    drained(run)
    lines: list[str] = run.state("lines")
    return lines


@pytest.mark.parametrize(
    "later",
    [{"done": "move"}, {"done": "delete"}, {}, {"done": "list"}],
    ids=["another folder", "delete", "keep", "list"],
)
@pytest.mark.parametrize("prefix", ["", "file://"], ids=["path", "address"])
def test_a_folder_of_done_files_stays_out_of_the_input_of_later_runs(cluster, inbox, caplog, later, prefix) -> None:
    place = Address(f"{prefix}{inbox}")
    put(inbox, "a", "a")
    assert once(cluster, place, done="move", done_path=f"{prefix}{inbox}/done") == ["a"]
    put(inbox, "b", "b")
    paths = {"move": f"{prefix}{inbox}/other", "list": f"{inbox}/list.txt"}
    more = later | ({"done_path": paths[later["done"]]} if later.get("done") in paths else {})
    for _ in range(2):
        assert once(cluster, place, **more) == ["a", "b"]
        assert (inbox / "done" / "a.txt").exists(), "what is archived stays"
    said = [record.getMessage() for record in caplog.records if "earlier runs had done='move'" in record.getMessage()]
    assert len(said) == 2
    assert "done'" in said[0]


def test_a_relative_done_path_is_another_folder_from_elsewhere_and_both_stay_out(cluster, inbox, monkeypatch) -> None:
    for number, folder in enumerate((inbox, inbox.parent)):
        monkeypatch.chdir(folder)
        put(inbox, f"m{number}", f"m{number}")
        (folder / "inbox" / "done").mkdir(parents=True, exist_ok=True)
        lines = once(cluster, inbox, done="move", done_path="inbox/done")
    assert lines == ["m0", "m1"]
    assert sorted(path.name for path in inbox.rglob("m*.txt")) == ["m0.txt", "m1.txt"]
    assert not list(inbox.glob("m*.txt"))


@pytest.mark.parametrize("leads_to", ["inbox", "inbox/below"])
def test_a_done_path_that_is_a_link_into_the_folder_is_known_by_where_it_leads(cluster, inbox, leads_to) -> None:
    (inbox / "below").mkdir()
    done = inbox.parent / "done"
    done.symlink_to(inbox.parent / leads_to)
    put(inbox, "a", "a")
    if leads_to == "inbox":
        with pytest.raises(Exception, match=r"done_path=.* of Follow is the folder of pattern"):
            once(cluster, inbox, done="move", done_path=str(done))
        return
    for _ in range(2):
        assert once(cluster, inbox, done="move", done_path=str(done)) == ["a"]
    assert (inbox / "below" / "a.txt").exists()


@pytest.mark.parametrize("is_link_read", [False, True])
def test_a_list_of_done_files_that_is_reached_by_a_link_is_not_read(cluster, inbox, is_link_read) -> None:
    inside, outside = inbox / "list.txt", inbox.parent / "list"
    if is_link_read:
        inside.symlink_to(outside)
    else:
        outside.symlink_to(inside)
    put(inbox, "a", "a")
    for number in range(2):
        assert once(cluster, inbox, done="list", done_path=str(outside)) == ["a"] + ["b"] * (number > 0)
        put(inbox, "b", "b")
    assert once(cluster, inbox) == ["a", "b"], "nor by a run that lists nothing"


def test_a_folder_that_was_moved_to_by_an_earlier_version_is_recognised_by_its_files(cluster, inbox) -> None:
    put(inbox, "a", "a")
    put(inbox, "b", "b")
    assert once(cluster, inbox) == ["a", "b"]
    (inbox / "done").mkdir()
    for name in ("a.txt", "b.txt"):
        (inbox / name).rename(inbox / "done" / name)
    assert once(cluster, inbox) == ["a", "b"]


@pytest.mark.parametrize("ahead_s", [3, 3600])
def test_a_file_that_was_rewritten_after_it_was_read_is_not_deleted_though_the_clock_of_the_driver_is_ahead(
    cluster, inbox, monkeypatch, ahead_s
) -> None:
    """To such a clock every file is old, and in stamps of whole seconds a file of the same size is the same."""
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + ahead_s * 10**9)
    monkeypatch.setattr(local_store, "stamp_of", lambda told, _: (told[0], 10**18, 10**18, told[3]))
    path = put(inbox, "a", "old")
    run = submit(cluster, inbox, done="delete")
    while not run.statistics.active:
        run.tick()
    with path.open("r+") as file:
        file.write("new")
    with pytest.raises(SourceError, match="is not the file that was read and committed, so it is not deleted"):
        run.run_until_idle()
    assert path.read_text() == "new\n"
