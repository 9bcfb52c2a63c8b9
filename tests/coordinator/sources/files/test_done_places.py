"""What runs with other options make of files that earlier runs have listed, moved or deleted: nothing counts twice."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from coordinator.sources.files.done_files import DonePlaces
from coordinator.sources.files.stores import local_store
from coordinator.testing.cluster.cluster import LocalCluster
from state.errors import SourceError
from tests.support.sources.addresses import Address
from tests.support.sources.growing_folder import drained, put, settled, submit


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


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
        (folder / "in" / "done").mkdir(parents=True, exist_ok=True)
        lines = once(cluster, inbox, done="move", done_path="in/done")
    assert lines == ["m0", "m1"]
    assert sorted(path.name for path in inbox.rglob("m*.txt")) == ["m0.txt", "m1.txt"]
    assert not list(inbox.glob("m*.txt"))


@pytest.mark.parametrize("leads_to", ["in", "in/below"])
def test_a_done_path_that_is_a_link_into_the_folder_is_known_by_where_it_leads(cluster, inbox, leads_to) -> None:
    (inbox / "below").mkdir()
    done = inbox.parent / "done"
    done.symlink_to(inbox.parent / leads_to)
    put(inbox, "a", "a")
    if leads_to == "in":
        with pytest.raises(Exception, match=r"done_path='.*done' of Follow is where files that match .* lie"):
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


def test_places_are_noted_once_and_told_from_notes_of_files() -> None:
    places = DonePlaces("move", "/in/done")
    assert places.notes() == {"done:move:/in/done": True}
    assert places.recall({"done:move:/in/done": True, "/in/a.txt": [1]}) == {"/in/a.txt": [1]}
    assert places.notes() == {}
    assert DonePlaces().notes() == {}


# Clocks


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
