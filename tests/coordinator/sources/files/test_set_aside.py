"""A file that is set aside belongs to the run that owns the topology: nobody else gives it its name back."""

from __future__ import annotations

import ctypes
import os
from contextlib import closing
from pathlib import Path

import pytest

from coordinator import FormerInput, LocalCluster
from coordinator.sources import TextFiles
from coordinator.sources.files.file_coordinator import FileCoordinator
from coordinator.trying.dry_run import dry_run
from state import SourceError, StateRefusedError
from tests.support.sources.growing_folder import Crash, at_point, drained, files_below, growing, put, submit
from tests.support.sources.reading import context, standing


@pytest.fixture
def inbox(tmp_path: Path, cluster: LocalCluster) -> Path:
    """A folder from which a run that died has set a file aside."""
    made = tmp_path / "inbox"
    made.mkdir()
    put(made, "m", "m1")
    with at_point("done_file.set_aside", Crash.happen), pytest.raises(Crash):
        submit(cluster, made, done="delete").run_until_idle()
    return made


def made_coordinator(inbox: Path) -> FileCoordinator:
    spout = growing(inbox, done="delete").spout.spec
    assert isinstance(spout, TextFiles)
    return spout.get_coordinator({}, context("growing"))


def dry(_: LocalCluster, inbox: Path) -> None:
    assert list(dry_run(growing(inbox, done="delete"))) == []


def refused_for_another_input(cluster: LocalCluster, inbox: Path) -> None:
    with pytest.raises(StateRefusedError, match="input"):
        cluster.submit(growing(inbox, pattern="**", done="delete"))


def of_another_topology(cluster: LocalCluster, inbox: Path) -> None:
    run = cluster.submit(growing(inbox, topology_id="other", done="delete"))
    run.run_until_idle()
    assert drained(run) == {}


def asked_for_its_coordinator(_: LocalCluster, inbox: Path) -> None:
    made_coordinator(inbox).close()


@pytest.mark.parametrize(
    "start",
    [dry, refused_for_another_input, of_another_topology, asked_for_its_coordinator],
    ids=["a dry run", "a refused start", "a run of another topology", "a coordinator alone"],
)
def test_only_a_run_that_owns_the_topology_puts_a_file_back(cluster, inbox, start):
    before = files_below(inbox)
    assert [path.name.startswith(".txbatch-aside-") for path in before] == [True]
    start(cluster, inbox)
    assert files_below(inbox) == before
    assert drained(submit(cluster, inbox, done="delete")) == {"m1": 1}
    assert files_below(inbox) == []


def test_a_run_that_takes_over_puts_back_what_the_older_one_is_about_to_remove(cluster, inbox):
    older = submit(cluster, inbox, done="delete")
    newer = []
    with (
        at_point("done_file.set_aside", lambda: newer.append(submit(cluster, inbox, done="delete"))),
        pytest.raises(SourceError, match=r"m\.txt' is missing"),
    ):
        older.run_until_idle()
    assert files_below(inbox) == [inbox / "m.txt"]
    assert drained(*newer) == {"m1": 1}
    assert files_below(inbox) == []


def test_a_file_that_is_set_aside_is_compared_as_if_it_had_its_name(cluster: LocalCluster, tmp_path: Path) -> None:
    """A server that went back may have it read again, so it is not gone."""
    folder = tmp_path / "half"
    folder.mkdir()
    put(folder, "m", "m1", "m2", "m3", "m4")
    with closing(made_coordinator(folder)) as first:
        standing(first).resume()
        assert first.is_ready()
        half = first.initialize_transaction(1, None)
        notes = first.notes(half)
    with at_point("done_file.set_aside", Crash.happen), pytest.raises(Crash):
        submit(cluster, folder, done="delete").run_until_idle()
    before = files_below(folder)
    former = FormerInput(fingerprint="", is_same=True, last_txid=1, last=half, notes=notes)
    with closing(made_coordinator(folder)) as second:
        change = second.compare(former)
    assert (change.changed, change.impossible) == ((), ())
    assert files_below(folder) == before


def test_a_start_is_refused_before_it_owns_the_topology_if_the_name_of_a_file_set_aside_is_taken(cluster, inbox):
    put(inbox, "m", "x1")
    before = files_below(inbox)
    with pytest.raises(SourceError, match="while it was being removed, and cannot get its name back"):
        submit(cluster, inbox, done="delete")
    assert files_below(inbox) == before


def test_a_file_with_both_names_at_once_is_one_file(cluster: LocalCluster, inbox: Path) -> None:
    """A crash half-way through putting it back, on a file system where that takes a link and an unlink."""
    (aside,) = files_below(inbox)
    os.link(aside, inbox / "m.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda *_, **__: object())
        assert drained(submit(cluster, inbox, done="delete")) == {"m1": 1}
    assert files_below(inbox) == []
