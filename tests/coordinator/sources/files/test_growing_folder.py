"""A folder that grows while it is read, in whole runs that are stopped and continued: every line once."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.fs
import pytest

from coordinator import LocalCluster, RunOptions
from coordinator.sources import Follow, TextFiles
from coordinator.sources.files import reading_order
from state import SourceError, UserCodeError
from tests.support.sources.growing_folder import Keep, committed, drained, idle_lines, put, settled, submit
from tests.support.sources.reading import context, standing
from tests.support.topologies.components import collecting


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def test_files_join_while_the_run_goes_on_whatever_they_are_called(cluster: LocalCluster, inbox: Path) -> None:
    run = settled(cluster, inbox)
    assert not run.is_done
    for name in ("m", "a", "z", "b"):
        put(inbox, name, f"{name}1", f"{name}2")
        run.run_until_idle()
    assert run.state("lines") == ["m1", "m2", "a1", "a2", "z1", "z2", "b1", "b2"]
    assert drained(run).total() == 8


def test_an_uncommitted_transaction_is_replayed_before_new_files_are_read_and_needs_its_file(cluster, inbox):
    put(inbox, "m", "m1", "hated")
    Keep.hated = "hated"
    with pytest.raises(UserCodeError):
        settled(cluster, inbox)
    (inbox / "m.txt").rename(inbox / "m.away")
    with pytest.raises(SourceError, match=r"is gone; transactions that are not committed yet have to read it again"):
        submit(cluster, inbox)
    (inbox / "m.away").rename(inbox / "m.txt")
    Keep.hated = ""
    put(inbox, "a", "a1")
    assert settled(cluster, inbox).state("lines") == ["m1", "hated", "a1"]


def test_compressed_files_join_too_and_what_is_added_to_one_is_read_once(cluster, inbox):
    """An unpacker that was at the end found it, and so did the next look."""
    m = put(inbox, "m", "m1", "m2", "m3", "m4", pack=gzip.compress)
    put(inbox, "empty", pack=gzip.compress)
    run = settled(cluster, inbox, complete="quiet", quiet_s=0.0)
    put(inbox, "a", "a1", pack=gzip.compress)
    assert idle_lines(run) == ["m1", "m2", "m3", "m4", "a1"]
    with m.open("ab") as file:
        file.write(gzip.compress(b"m5\n"))
    assert idle_lines(run) == ["m1", "m2", "m3", "m4", "a1", "m5"]


@pytest.mark.parametrize("done", ["keep", "delete"])
def test_a_folder_of_this_machine_may_be_given_as_a_file_system(cluster, inbox, done):
    put(inbox, "m", "m1")
    run = settled(cluster, inbox, done=done, filesystem=pyarrow.fs.LocalFileSystem())
    put(inbox, "a", "a1")
    assert idle_lines(run) == ["m1", "a1"]
    assert len([*inbox.iterdir()]) == (2 if done == "keep" else 0)


@pytest.mark.parametrize("done", ["delete", "move"])
def test_a_file_that_a_quarantined_batch_needs_stays_under_its_new_name_too(inbox: Path, done: str) -> None:
    follow: dict[str, Any] = {"done": done, "pattern": "*.txt*", "lines_per_batch": 1, "on_poison": "quarantine"}
    follow |= {"done_path": str(inbox.parent / "done")} if done == "move" else {}
    m = put(inbox, "m", "m1", "hated", "m3")
    Keep.hated = "hated"
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, inbox, **follow)
        for _ in range(10_000):  # bounded: far more steps than it takes
            if run.statistics.quarantined:
                break
            run.tick()
        m.rename(inbox / "m.txt.1")
        run.run_until_idle()
        put(inbox, "a", "a1")
        assert idle_lines(run) == ["m1", "m3", "a1"]
    Keep.hated = ""
    assert [path.name for path in inbox.iterdir()] == ["m.txt.1"]


def given_again(inbox: Path, spare: Path, content: str) -> None:
    """A new file, under another name, gets the inode of one that is gone."""
    spare.write_text(content)
    os.utime(spare, ns=(10**18 + 1, 10**18 + 1))
    spare.rename(inbox / "new.txt")


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("complete", ["rename", "quiet"])
@pytest.mark.parametrize("done", ["delete", "move"])
@pytest.mark.parametrize("content", ["tick\n", "tick\ntock\n"])
def test_a_file_with_the_inode_and_the_content_of_one_that_was_removed_is_read(
    cluster: LocalCluster, inbox: Path, *, content: str, done: str, complete: str, is_restarted: bool
) -> None:
    """File systems give an inode again at once, and small files are often alike: it was not read, but removed."""
    follow: dict[str, Any] = {"done": done, "complete": complete} | ({"quiet_s": 0.0} if complete == "quiet" else {})
    follow |= {"done_path": str(inbox.parent / "done")} if done == "move" else {}
    put(inbox, "old", "tick")
    os.link(inbox / "old.txt", inbox.parent / "spare")
    run = settled(cluster, inbox, **follow)
    assert not (inbox / "old.txt").exists()
    if is_restarted:
        drained(run)
        run.close()
        run = submit(cluster, inbox, **follow)
    given_again(inbox, inbox.parent / "spare", content)
    assert idle_lines(run) == ["tick", *content.split()]
    assert not (inbox / "new.txt").exists()


@pytest.mark.parametrize("content", ["tick\n", "tick\ntock\n"])
def test_a_file_with_the_inode_and_the_content_of_one_that_others_removed_is_asked_about(cluster, inbox, content):
    put(inbox, "old", "tick")
    os.link(inbox / "old.txt", inbox.parent / "spare")
    run = settled(cluster, inbox)
    (inbox / "old.txt").unlink()
    given_again(inbox, inbox.parent / "spare", content)
    with pytest.raises(SourceError, match="it is the same file under a new name, or another of the same content"):
        run.run_until_idle()
    assert settled(cluster, inbox, adopt="again").state("lines") == ["tick", *content.split()]


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_files_with_restarts_and_drains_are_all_read_once(inbox: Path, seed: int) -> None:
    draw = Random(seed)
    names = [f"{number:03}" for number in range(200)]
    draw.shuffle(names)
    expected: Counter[str] = Counter()
    with LocalCluster(seed=seed) as cluster:
        run = submit(cluster, inbox, parallelism=2)
        for name in names:
            lines = [f"{name}-{number}" for number in range(draw.randint(1, 9))]
            expected.update(lines)
            put(inbox, name, *lines)
            for _ in range(draw.randint(0, 40)):
                run.tick()
            if draw.random() < 0.1:
                if draw.random() < 0.5:
                    drained(run)
                run.close()  # else it is given up in the middle, as by a crash
                run = submit(cluster, inbox, parallelism=2)
        run.run_until_idle()
        assert drained(run) == expected


def test_a_file_that_was_not_complete_is_named_when_it_is_read(cluster: LocalCluster, inbox: Path) -> None:
    run = submit(cluster, inbox, lines_per_batch=1)
    put(inbox, "a", *map(str, range(20)))
    put(inbox, "b", "b1")
    while not run.statistics.committed:
        run.tick()
    with (inbox / "b.txt").open("a", encoding="utf-8") as file:
        file.write("b2\n")
    with pytest.raises(SourceError, match=r"b\.txt' had 3 bytes when it was taken to be complete, and has 6 bytes now"):
        run.run_until_idle()
    assert cluster.client.llen("{growing}:lines") == 20


@pytest.mark.parametrize(
    ("alter", "story"),
    [
        (lambda path: path.write_text("m1\nm2\nm3\nm4\nm5\n"), "was complete with 12 bytes of content, and has more"),
        (lambda path: path.write_text("m1\nXX\nm3\nm4\n"), "has changed: 12 bytes of it were read, and it differs"),
        (lambda path: path.write_text("m1\n"), "has changed: 12 bytes of it were read, and it is shorter"),
    ],
    ids=["more", "other", "less"],
)
def test_a_file_that_changed_after_it_was_read_stops_the_start(cluster, inbox, alter, story) -> None:
    path = put(inbox, "m", "m1", "m2", "m3", "m4")
    drained(settled(cluster, inbox))
    alter(path)
    with pytest.raises(SourceError, match=story):
        submit(cluster, inbox)
    put(inbox, "n", "n1")
    assert settled(cluster, inbox, adopt="changed").state("lines") == ["m1", "m2", "m3", "m4", "n1"]


def test_a_folder_is_known_by_its_place_not_by_where_the_run_was_started(inbox, tmp_path, monkeypatch):
    def fingerprints() -> list[str]:
        return [TextFiles(pattern, follow=True).fingerprint() for pattern in (f"{inbox}/*.txt", "*.txt")]

    monkeypatch.chdir(tmp_path)
    absolute, relative = fingerprints()
    monkeypatch.chdir(inbox)
    assert fingerprints()[0] == absolute
    assert fingerprints()[1] != relative


def test_a_name_that_cannot_be_stored_stops_the_run_and_is_named(cluster: LocalCluster, inbox: Path) -> None:
    Path(os.fsdecode(os.fsencode(inbox) + b"/bad\xff.txt")).write_bytes(b"1\n")
    with pytest.raises(SourceError, match=r"bad\\udcff\.txt' is not valid UTF-8: rename it"):
        settled(cluster, inbox)


def test_lag_is_what_waits(inbox: Path) -> None:
    put(inbox, "a", "a1")
    put(inbox, "b", "b1", "b2")
    (inbox / "empty.txt").touch()
    now_s = [0.0]
    spout = TextFiles(str(inbox / "*.txt"), 1, follow=Follow(quiet_s=5, poll_s=2))
    coordinator = spout.coordinator(context(), clock=lambda: now_s[0])
    standing(coordinator).resume()
    assert not coordinator.is_ready()
    assert coordinator.lag().incomplete_count == 2
    now_s[0] = 1.9
    put(inbox, "c", "c1")
    assert not coordinator.is_ready()
    assert coordinator.lag().incomplete_count == 2, "the folder is not looked at again before poll_s has passed"
    now_s[0] = 5.0
    assert coordinator.is_ready()
    assert (coordinator.lag().file_count, coordinator.lag().byte_count, coordinator.lag().incomplete_count) == (1, 6, 1)
    assert standing(coordinator).progress() is None
    coordinator.close()


def test_a_look_that_took_long_is_followed_by_a_pause_and_then_nothing_is_missing(inbox, monkeypatch):
    monkeypatch.setattr(reading_order, "LONG_LOOK_S", 0.1)
    times = iter([0.0, 1.1, 9.9, 10.1, 10.1])
    spout = TextFiles(str(inbox / "*.txt"), 1, follow=Follow(complete="rename", poll_s=0))
    coordinator = standing(spout.coordinator(context(), clock=lambda: next(times)))
    coordinator.resume()
    assert not coordinator.is_ready()
    put(inbox, "a", "a1")
    assert [coordinator.is_ready(), coordinator.is_ready()] == [False, True]
    coordinator.close()


def test_a_folder_that_was_followed_is_not_read_again_by_a_run_that_reads_to_the_end(cluster, inbox):
    def finite(adopt):
        topology = collecting("growing", TextFiles(str(inbox / "*.txt"), 3), Keep(), source="lines")
        run = cluster.submit(topology, options=RunOptions(adopt=adopt))
        run.run_until_idle()
        run.close()
        return committed(run)

    put(inbox, "m", "m1", "m2")
    run = settled(cluster, inbox)
    put(inbox, "a", "a1")
    run.run_until_idle()
    drained(run)
    put(inbox, "z", "z1")
    assert finite(adopt=True) == finite(adopt=False) == {"m1": 1, "m2": 1, "a1": 1, "z1": 1}


def test_a_list_of_done_files_that_cannot_be_written_is_a_sentence(cluster: LocalCluster, inbox: Path) -> None:
    for number, path in enumerate((inbox / "nowhere" / "list", inbox)):
        put(inbox, f"m{number}", "m1")
        with pytest.raises(SourceError, match=r"list '.*' of files that are done cannot be written: .*; give"):
            submit(cluster, inbox, done="list", done_path=str(path)).run_until_idle()


def test_a_file_that_grew_while_it_was_partly_read_is_named_by_the_next_start(cluster, inbox, monkeypatch):
    path = put(inbox, "m", "m1", "m2", "m3", "m4")
    monkeypatch.setattr("coordinator.sources.files.stores.input_file.RECENT_NS", 0)
    run = submit(cluster, inbox, lines_per_batch=1)
    while not run.statistics.active:
        run.tick()
    run.close()
    with path.open("a", encoding="utf-8") as file:
        file.write("m5\nm")
    with pytest.raises(SourceError, match=r"m\.txt' had 12 bytes when it was taken to be complete, and has 16 n"):
        submit(cluster, inbox, lines_per_batch=1)


def test_a_file_without_a_record_is_done_with_the_next_transaction(cluster: LocalCluster, inbox: Path) -> None:
    (inbox / "a.txt").write_bytes(gzip.compress(b""))
    (inbox / "k.txt").write_bytes(gzip.compress(b""))
    put(inbox, "m", "m1")
    settled(cluster, inbox, done="delete")
    assert list(inbox.iterdir()) == []


def test_a_new_file_under_an_old_name_is_not_deleted_unread_though_the_change_is_accepted(cluster, inbox):
    put(inbox, "m", "m1")
    drained(settled(cluster, inbox, done="delete"))
    path = put(inbox, "m", "m2")
    settled(cluster, inbox, done="delete", adopt="changed")
    assert path.read_text() == "m2\n"


def test_a_folder_in_which_nothing_matches_is_logged_once(cluster, inbox, caplog):
    caplog.set_level("INFO", logger="txbatch")
    settled(cluster, inbox).run_until_idle()
    (said,) = [message for message in caplog.messages if "matches" in message]
    assert said == f"topology 'growing': nothing matches {str(inbox / '*.txt')!r} yet; looking again every 0 s"


def write(path: Path, line: str, *, append: bool = False) -> None:
    """Writes a line, a while ago."""
    content = f"{line}\n".encode()
    with path.open("ab" if append else "wb") as file:
        file.write(gzip.compress(content) if path.suffix == ".gz" else content)
    os.utime(path, (path.stat().st_mtime - 10,) * 2)


@pytest.mark.parametrize("done", ["keep", "delete", "move", "list"])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("has_grown", [True, False])
def test_what_was_left_unread_stays_so_in_later_runs_is_never_removed_and_is_named_once_it_changes(
    cluster, inbox, name, done, has_grown
):
    def lines(done, adopt=False):
        place = str(inbox.parent / "done") if done in {"move", "list"} else ""
        run = settled(cluster, inbox, adopt=adopt, done=done, done_path=place, pattern="*.txt*")
        drained(run)
        return run.state("lines")

    write(inbox / name, "first")
    assert lines("keep") == ["first"]
    write(inbox / name, "of another length", append=has_grown)
    with pytest.raises(SourceError, match=r"has more now" if has_grown else "has changed"):
        lines(done)
    left = (inbox / name).read_bytes()
    assert lines(done, adopt="changed") == ["first"]
    for new in "yz":
        write(inbox / f"{new}.txt", new)
        lines(done)
    assert lines(done) == ["first", "y", "z"]
    assert (inbox / name).read_bytes() == left
    write(inbox / name, "more", append=True)
    with pytest.raises(SourceError, match="has more now"):
        lines(done)
