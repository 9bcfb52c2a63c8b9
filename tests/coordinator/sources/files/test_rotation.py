"""Files of a followed folder that get other names, are packed, copied and cut off, grow, or are replaced."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator import LocalCluster, TransactionalRun
from coordinator.sources.files.prefix_digest import PrefixMark
from coordinator.sources.files.rotation import is_related
from coordinator.sources.files.stores import input_file
from state import SourceError
from tests.support.sources.addresses import Address
from tests.support.sources.growing_folder import drained, idle_lines, settled, submit

Change = Callable[[Path], Any]
LONG = [f"line {number} of a log that is long enough to be known again by its content" for number in range(20)]


@pytest.fixture(params=["path", "address"])
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A folder of logs, as a path or as an address."""
    return Address(f"file://{tmp_path}") if request.param == "address" else tmp_path


def started(cluster: LocalCluster, inbox: Any, pattern: str = "*.log*", **more: Any) -> TransactionalRun:
    """A run that has read what is there."""
    return settled(cluster, inbox, pattern=pattern, **more)


def quiet(cluster: LocalCluster, inbox: Any, **more: Any) -> TransactionalRun:
    return started(cluster, inbox, complete="quiet", quiet_s=0.0, **more)


def in_the_middle(cluster: LocalCluster, inbox: Path) -> TransactionalRun:
    """A run that has committed two transactions."""
    run = submit(cluster, inbox, pattern="*.log*")
    for _ in range(10_000):  # bounded: far more steps than two transactions take
        if run.statistics.committed >= 2:
            return run
        run.tick()
    raise AssertionError("two transactions were not committed")


def local(inbox: Any) -> Path:
    return Path(str(inbox).removeprefix("file://"))


def write(path: Path, *lines: str, append: bool = False) -> Path:
    """Writes lines, a while ago."""
    with path.open("a" if append else "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    told = path.stat().st_mtime_ns
    os.utime(path, ns=(told - 10**10, told - 10**10))
    return path


def rename(folder: Path) -> None:
    (folder / "app.log").rename(folder / "app.log.1")


def pack(folder: Path) -> None:
    path = folder / "app.log"
    packed = folder / "app.log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    shutil.copystat(path, packed)  # as gzip does
    path.unlink()


def copy_and_cut_off(folder: Path) -> None:
    shutil.copy(folder / "app.log", folder / "app.log.1")
    os.truncate(folder / "app.log", 0)


def move_from_another_disk(folder: Path) -> None:
    shutil.copy2(folder / "app.log", folder / "moved.log")
    (folder / "app.log").unlink()


def second_name(folder: Path) -> None:
    os.link(folder / "app.log", folder / "a.log")


def link(folder: Path) -> None:
    (folder / "a.log").symlink_to("app.log")


def link_in_place_of_it(folder: Path) -> None:
    (folder / "app.log").rename(folder / "app.log.1")
    (folder / "app.log").symlink_to("app.log.1")


ROTATIONS = [rename, pack, copy_and_cut_off, move_from_another_disk, second_name, link, link_in_place_of_it]
EACH_ROTATION = pytest.mark.parametrize("rotate", ROTATIONS, ids=lambda each: each.__name__)


@EACH_ROTATION
@pytest.mark.parametrize("between_runs", [False, True])
def test_a_file_that_gets_another_name_is_not_read_again(cluster, inbox, rotate, between_runs) -> None:
    folder = local(inbox)
    write(folder / "app.log", *LONG)
    run = started(cluster, inbox)
    for change in (rotate, lambda folder: write(folder / "z.log", "new")):
        if between_runs:
            drained(run)
        change(folder)
        if between_runs:
            run = started(cluster, inbox)
        run.run_until_idle()
    assert run.state("lines") == [*LONG, "new"]
    drained(run)
    assert started(cluster, inbox).state("lines") == [*LONG, "new"], "the names that files have now are stored"


def test_a_file_that_is_packed_is_read_to_its_end(cluster, tmp_path) -> None:
    write(tmp_path / "app.log", *LONG)
    in_the_middle(cluster, tmp_path).close()
    pack(tmp_path)
    assert started(cluster, tmp_path).state("lines") == LONG


@pytest.mark.parametrize("count", [5, 25], ids=["shorter", "longer"])
def test_a_log_that_is_cut_off_and_written_again_while_it_is_read_stops_the_run(cluster, tmp_path, count) -> None:
    write(tmp_path / "app.log", *LONG)
    run = in_the_middle(cluster, tmp_path)
    copy_and_cut_off(tmp_path)
    newer = [f"newer {number}: {line}" for number, line in enumerate((LONG * 2)[:count])]
    write(tmp_path / "app.log", *newer)
    with pytest.raises(SourceError, match=r"app\.log' was cut off and written again after \d+ bytes of it were read"):
        run.run_until_idle()
    run.close()
    run = started(cluster, tmp_path)
    assert sorted(run.state("lines")) == sorted(LONG + newer)


@pytest.mark.parametrize("between_runs", [False, True])
def test_what_is_appended_to_a_quiet_file_is_read_once_it_is_quiet_again(cluster, inbox, between_runs) -> None:
    path = write(local(inbox) / "app.log", "a", "b")
    run = quiet(cluster, inbox, with_numbers=True)
    for line in ("c", "d"):
        if between_runs:
            run.close()
        write(path, line, append=True)
        if between_runs:
            run = quiet(cluster, inbox, with_numbers=True)
        run.run_until_idle()
    assert run.state("lines") == ["a", "b", "c", "d"]
    assert run.state("numbers") == [1, 2, 3, 4]


def renamed_copied_and_cut_off(path: Path, renamed: str, copy: str, *appended: str) -> None:
    path = path.rename(path.with_name(renamed))
    write(path, *appended, append=True)
    shutil.copy(path, path.with_name(copy))
    os.truncate(path, 0)


@pytest.mark.parametrize("appended", [[], ["last"]])
@pytest.mark.parametrize("names", [("app.log.1", "app.log.2"), ("old.log", "older.log")], ids=["related", "others"])
@pytest.mark.parametrize("between_runs", [False, True])
def test_a_file_renamed_copied_and_cut_off_between_two_looks_is_followed_or_asked_about_if_names_do_not_tell_it(
    cluster, tmp_path, between_runs, names, appended
):
    path = write(tmp_path / "app.log", *LONG)
    run = quiet(cluster, tmp_path)
    if between_runs:
        run.close()
    renamed_copied_and_cut_off(path, *names, *appended)
    asked = pytest.raises(SourceError, match="it is the same file under a new name, or another")
    with nullcontext() if names[0] == "app.log.1" else asked:
        run = quiet(cluster, tmp_path) if between_runs else run
        assert idle_lines(run) == [*LONG, *appended]


def test_a_line_that_was_read_without_its_end_and_continues_is_named(cluster, inbox) -> None:
    path = local(inbox) / "app.log"
    path.write_bytes(b"a\nb")
    run = quiet(cluster, inbox)
    with path.open("a", encoding="utf-8") as file:
        file.write("c\n")
    with pytest.raises(SourceError, match=r"app\.log' was complete with 3 bytes of content, and has more now"):
        run.run_until_idle()


@pytest.mark.parametrize("adopt", ["renamed", "again"])
def test_the_same_content_under_a_new_name_is_refused_by_name_until_the_user_says_what_it_is(cluster, inbox, adopt):
    folder = local(inbox)
    write(folder / "a.log", "a")
    run = started(cluster, inbox)
    (folder / "a.log").unlink()
    write(folder / "b.log", "a")
    os.utime(folder / "b.log", (1, 1))
    story = r"b\.log' begins with the 2 bytes that were read of '.*a\.log', which is gone: it is the same file under"
    with pytest.raises(SourceError, match=story):
        run.run_until_idle()
    run.close()
    with pytest.raises(SourceError, match=story):
        started(cluster, inbox)
    run = started(cluster, inbox, adopt=adopt)
    assert run.state("lines") == (["a"] if adopt == "renamed" else ["a", "a"])
    write(folder / "c.log", "c")
    run.run_until_idle()
    run.close()
    assert started(cluster, inbox).state("lines") == (["a", "c"] if adopt == "renamed" else ["a", "a", "c"])


@pytest.mark.parametrize("content", ["b\n", "longer than before\n"])
def test_a_file_that_is_replaced_under_a_run_stops_it_and_is_named(cluster, inbox, content):
    path = write(local(inbox) / "a.log", "a")
    run = started(cluster, inbox)
    path.write_text(content)
    with pytest.raises(SourceError, match=r"a\.log' has changed: 2 bytes of it were read, and it differs from them"):
        run.run_until_idle()
    run.close()
    run = started(cluster, inbox, adopt="changed")
    write(local(inbox) / "b.log", "b")
    assert idle_lines(run) == ["a", "b"]


def test_notes_of_earlier_versions_are_read() -> None:
    mark = PrefixMark(12, 0, 99, (12, 1, 1, 7), is_whole=True)
    assert mark.to_plain() == [12, 0, 99, 12, 1, 1, 7, True]
    for each in (mark, replace(mark, record_count=3), replace(mark, stamp=(*mark.stamp, 9), record_count=0)):
        assert PrefixMark.from_plain(each.to_plain()) == each
    assert PrefixMark.from_plain([1, 2, True, "x"]) is None


@pytest.mark.parametrize(
    ("former", "path", "expected"),
    [
        ("/a/app.log", "/a/app.log.1", True),
        ("/a/app.log.1", "/b/app.log.2.gz", True),
        ("/a/app.log", "/a/app-20261126.log", True),
        ("/a/app.log", "/a/web.log", False),
        ("/a/.log", "/a/.log.1", False),
    ],
)
def test_names_of_one_log_are_related(former: str, path: str, expected: bool) -> None:
    assert is_related(former, path) is expected


@pytest.mark.parametrize("between_runs", [False, True])
def test_a_log_that_is_packed_while_another_gets_its_name_is_known_once_the_packed_one_is_complete(
    cluster, inbox, between_runs
) -> None:
    """As rotation does that packs at once: the packed file is seen, and not complete, when its former name is taken."""
    folder, follow = local(inbox), {"complete": "marker", "marker": ".ready"}
    older, newer = [f"older {line}" for line in LONG], [f"newer {line}" for line in LONG]
    for name, lines in (("app.log", newer), ("app.log.1", older)):
        write(folder / name, *lines)
        (folder / f"{name}.ready").touch()
    run = started(cluster, inbox, **follow)
    (folder / "app.log.2.gz").write_bytes(gzip.compress((folder / "app.log.1").read_bytes()))
    (folder / "app.log").rename(folder / "app.log.1")
    write(folder / "app.log", "newest")
    run.run_until_idle()
    if between_runs:
        drained(run)
        run = started(cluster, inbox, **follow)
    (folder / "app.log.2.gz.ready").touch()
    assert idle_lines(run) == [*newer, *older, "newest"]
    for age in range(3, 9):  # older files are packed and removed: nothing is remembered of them for ever
        (folder / f"app.log.{age - 1}.gz").rename(folder / f"app.log.{age}.gz")
        (folder / f"app.log.{age - 1}.gz.ready").rename(folder / f"app.log.{age}.gz.ready")
        run.run_until_idle()
    assert run.state("lines") == [*newer, *older, "newest"]


def again_in_place(path: Path, content: str) -> None:
    """Rewrites a file as `rsync -t --inplace` does: its inode and its time of change stay."""
    told = path.stat()
    path.write_text(content, encoding="utf-8")
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))


def with_the_inode(path: Path, name: str, content: str) -> Path:
    """A new file that got the inode of one that was removed, and a name."""
    other = path.rename(path.with_name(name))
    other.write_text(content, encoding="utf-8")
    os.utime(other, (1, 1))
    return other


@pytest.mark.parametrize("done", ["keep", "list"])
@pytest.mark.parametrize("between_runs", [False, True])
def test_a_file_that_is_rewritten_in_place_with_its_size_and_time_is_named(
    cluster, inbox, between_runs, done, monkeypatch
) -> None:
    monkeypatch.setattr(input_file, "RECENT_NS", 0)  # as if it had been read a while after it was written
    path = write(local(inbox) / "app.log", "1", "2")
    follow = {"done": done, "done_path": str(local(inbox) / "list")} if done == "list" else {}
    run = started(cluster, inbox, **follow)
    if between_runs:
        run.close()
    again_in_place(path, "3\n4\n")
    with pytest.raises(SourceError, match=r"app\.log' has changed: 4 bytes of it were read, and it differs from them"):
        run.run_until_idle() if not between_runs else started(cluster, inbox, **follow)


@pytest.mark.parametrize(
    ("former", "read", "path", "now"),
    [
        ("a.log", ["h"], "access.log", "h\n2\n"),  # begins alike, and is another
        ("app.log.5", ["h"], "app.log", "h\n2\n"),  # the inode of the oldest log, given to the newest
        ("app.log.5", ["h"], "z.log", "h\n"),
    ],
)
@pytest.mark.parametrize("taken", [False, True], ids=["gone", "name given again"])
@pytest.mark.parametrize("adopt", ["again", "renamed"])
def test_an_inode_given_again_proves_nothing_with_little_content(  # noqa: PLR0917 - all of them are drawn
    cluster, tmp_path, former, read, path, now, taken, adopt
) -> None:
    run = quiet(cluster, tmp_path)
    before = write(tmp_path / former, *read)
    run.run_until_idle()
    run.close()
    with_the_inode(before, path, now)
    if taken:
        write(tmp_path / former, "other")
    with pytest.raises(SourceError, match=rf"{path}' begins with the 2 bytes that were read of '.*{former}', which is"):
        quiet(cluster, tmp_path)
    run = quiet(cluster, tmp_path, adopt=adopt)
    once = [*(["other"] if taken else []), *now.split()]
    assert sorted(run.state("lines")) == sorted(once if adopt == "renamed" else [*once, *read])
