"""Patterns become files by one rule, as paths and as addresses, or a sentence that says why not."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.fs
import pytest

from coordinator import TextFiles, plan, run, stream
from coordinator.sources.files.stores import arrow_store, arrow_tree, file_listing
from coordinator.sources.files.stores.arrow_store import ArrowStore
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.local_store import LocalStore
from state import HashState, SourceError, TopologyError
from state.troubles import Trouble
from tests.support.sources.far_folder import FarFolder

WAYS = ("path", "address", "subtree", "far", "flat")
"""A local path; an address of the same; pyarrow's view of a folder; a store that only pyarrow lists; one of objects."""
NAMES = (
    *("b.txt", "a.txt", "c.log", ".hidden.txt", "sub/a.txt", "sub/deep/d.txt", "sub/.git/e.txt", "odd[1].txt"),
    *("[x]/e.txt", "p", "p?id=2", "p#2", "p%20", "p 0", "a&b=c"),
)


@pytest.fixture(autouse=True)
def _stores_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_tree, "_FLAT", ("py::flat",))


class Place:
    """A folder, and how its files are asked for."""

    def __init__(self, folder: Path, way: str) -> None:
        self.folder, self.way = folder, way
        local = pyarrow.fs.LocalFileSystem()
        self.prefix = {"path": f"{folder}/", "address": f"file://{folder}/"}.get(way, "")
        self.store: FileStore = LocalStore(str(folder))
        if way == "address":
            self.store = ArrowStore()
        elif way != "path":
            far = FarFolder(folder, way).filesystem()
            self.store = ArrowStore(pyarrow.fs.SubTreeFileSystem(str(folder), local) if way == "subtree" else far)

    def listed(self, *patterns: str) -> list[str]:
        given = [pattern if self.way == "path" else self.prefix + pattern for pattern in patterns]
        found = self.store.list_files(given)
        assert tuple(sorted(self.store.look(given))) == found  # a folder that is followed has the same files
        assert all(self.store.byte_count(path) == 2 for path in found)
        for path in found:
            assert path.startswith(self.prefix)
            with closing(self.store.open(path)) as file:
                assert file.read_up_to(0, 2) == b"1\n"
        return [path.removeprefix(self.prefix) for path in found]


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few files, some of them in folders."""
    put(tmp_path, *NAMES)
    return tmp_path


@pytest.fixture(params=WAYS)
def place(folder: Path, request: pytest.FixtureRequest) -> Place:
    return Place(folder, request.param)


@pytest.fixture(params=WAYS[:3])
def linked(folder: Path, request: pytest.FixtureRequest) -> Place:
    """A place that tells links from what they lead to."""
    return Place(folder, request.param)


VISIBLE = sorted(name for name in NAMES if "/." not in f"/{name}")


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["a.txt"], ["a.txt"]),
        (["*.txt"], ["a.txt", "b.txt", "odd[1].txt"]),
        (["?.txt"], ["a.txt", "b.txt"]),
        (["[!b].txt"], ["a.txt"]),
        (["[b-a].txt", "a.txt"], None),
        (["s*"], None),
        (["**"], VISIBLE),
        (["**/*"], VISIBLE),
        (["sub/**"], ["sub/a.txt", "sub/deep/d.txt"]),
        (["sub/*"], ["sub/a.txt"]),
        (["**/*.txt"], [name for name in VISIBLE if name.endswith(".txt")]),
        (["**/d.txt", "c.log"], ["c.log", "sub/deep/d.txt"]),
        (["**/deep/**/d.txt"], ["sub/deep/d.txt"]),
        (["s**/a.txt"], ["sub/a.txt"]),
        (["*/a.txt"], ["sub/a.txt"]),
        ([".*"], [".hidden.txt"]),
        (["sub/.git/*"], ["sub/.git/e.txt"]),
        (["**/.git/*"], ["sub/.git/e.txt"]),
        (["b.txt", "./b.txt", "b.*", ".//b.txt"], ["b.txt"]),
        (["odd[1].txt"], ["odd[1].txt"]),
        (["odd[[]1].txt"], ["odd[1].txt"]),
        (["[x]/*"], ["[x]/e.txt"]),
        (["p*"], ["p", "p 0", "p#2", "p%20", "p?id=2"]),
        (["p[?]*"], ["p?id=2"]),
        (["p%20"], ["p%20"]),
        (["p#2"], ["p#2"]),
        (["a.txt/"], None),
    ],
)
def test_a_pattern_means_the_same_files_as_a_path_and_as_an_address(place, patterns, names):
    if names is None:
        with pytest.raises(TopologyError, match="no file matches") as caught:
            place.listed(*patterns)
        assert caught.value.trouble is Trouble.INPUT
    else:
        assert place.listed(*patterns) == names


@pytest.mark.parametrize("name", ["*.csv", "?.csv", "[ab].csv", "**"])
def test_a_file_that_is_called_like_the_pattern_hides_no_other(place: Place, name: str) -> None:
    put(place.folder / "in", "a.csv", name)
    assert place.listed(f"in/{name}") == sorted(["in/a.csv", f"in/{name}"])


def test_a_name_with_brackets_is_that_file_and_what_it_means_as_a_pattern(place: Place) -> None:
    put(place.folder, "odd1.txt")
    assert place.listed("odd[1].txt") == ["odd1.txt", "odd[1].txt"]
    assert place.listed("odd[[]1].txt") == ["odd[1].txt"]


def test_a_private_name_matches_no_pattern(place: Place) -> None:
    put(place.folder / "in", ".txbatch-aside-0123456789abcdef-a", "b")
    assert place.listed("in/*", "in/**") == ["in/b"]
    with pytest.raises(TopologyError, match="no file matches"):
        place.listed("in/.*")


@pytest.mark.parametrize("told", ["b/x b/x/a", "b/x/a b/x", "b/x b/x/ b/x/a", "b/x/ b/x b/x/a"])
@pytest.mark.parametrize("pattern", ["b/**", "b/**/*", "b/**/a"])
def test_an_object_with_the_name_of_a_folder_hides_nothing_in_it(monkeypatch, told, pattern):
    """As some programs mark folders in stores of objects, by an object without a byte."""
    monkeypatch.setattr(arrow_tree, "_FLAT", ("s3",))
    kinds = pyarrow.fs.FileType
    infos = [
        pyarrow.fs.FileInfo(key, kinds.Directory if key.endswith("/") else kinds.File, size=0) for key in told.split()
    ]
    store = SimpleNamespace(type_name="s3", get_file_info=lambda _: infos)
    tree = arrow_tree.ArrowTree(store, "s3://")
    found = file_listing.list_files([pattern], lambda given: (tree, given))
    assert found == (("s3://b/x/a",) if pattern.endswith("a") else ("s3://b/x", "s3://b/x/a"))


def test_options_of_an_address_are_told_from_wildcards_and_names() -> None:
    stripped = {
        "s3://b/logs/*.txt?region=eu&scheme=http": "s3://b/logs/*.txt",
        "s3://b/part-?.txt": "s3://b/part-?.txt",
        "s3://b/part-?.txt?region=eu": "s3://b/part-?.txt",
        "file:///d/p?id=2": "file:///d/p?id=2",
    }
    assert {each: arrow_store._without_options(each) for each in stripped} == stripped


def test_an_absolute_pattern_needs_no_folder_and_a_working_directory_with_brackets_is_no_pattern(folder):
    assert LocalStore("/nowhere").list_files([f"{folder}/a.*"]) == (f"{folder}/a.txt",)
    assert LocalStore(f"{folder}/[x]").list_files(["*.txt"]) == (f"{folder}/[x]/e.txt",)


def test_links_to_files_and_folders_are_followed_and_behind_them_two_dots_are_where_they_lead(linked):
    (linked.folder / "link.txt").symlink_to("a.txt")
    (linked.folder / "elsewhere").symlink_to("sub")
    (linked.folder / "link").symlink_to("sub/deep")
    assert linked.listed("link.txt", "elsewhere/*") == ["link.txt", "sub/a.txt"]
    assert linked.listed("link/../a.txt") == ["sub/a.txt"]


def test_a_file_has_one_path_however_its_folder_is_spelled(linked: Place) -> None:
    (linked.folder / "elsewhere").symlink_to("sub")
    spellings = ("sub/a.txt", "./sub/../sub/a*", "elsewhere/a.txt", "*/a.txt", "sub/deep/../a.txt", "sub//a.txt")
    assert {spelling: linked.listed(spelling) for spelling in spellings} == {each: ["sub/a.txt"] for each in spellings}


@pytest.mark.parametrize("path", ["link/done", "link/../sub/done", "sub/./done", "link/done/"])
def test_a_folder_is_told_as_its_files_are(linked: Place, path: str) -> None:
    """So that what was moved below it is left out, however it is spelled."""
    (linked.folder / "link").symlink_to("sub")
    put(linked.folder, "sub/done/x")
    assert linked.store.absolute(linked.prefix + path).rstrip("/") == f"{linked.prefix}sub/done"
    assert linked.listed("link/done/*") == ["sub/done/x"]


@pytest.mark.parametrize(
    ("links", "names"),
    [
        ({"in/x": ".", "in/y": "."}, ["in/a.log"]),
        ({"in/x": "..", "in/y": "../in"}, ["c.log", "in/a.log", "other/b.log"]),
        ({"in/x": "../other", "other/y": "../in"}, ["in/a.log", "other/b.log"]),
        ({"in/x": "x"}, ["in/a.log"]),
        ({"in/x": "gone"}, ["in/a.log"]),
    ],
)
def test_folders_below_links_are_looked_into_once(linked: Place, links: dict[str, str], names: list[str]) -> None:
    put(linked.folder, "in/a.log", "other/b.log")
    for name, target in links.items():
        (linked.folder / name).symlink_to(target)
    assert linked.listed("in/**/*.log") == names


def test_links_that_no_store_tells_are_refused_and_not_followed_for_ever(folder: Path) -> None:
    put(folder, "in/a.log")
    for name in ("x", "y"):
        (folder / "in" / name).symlink_to(".")
    with pytest.raises(
        TopologyError, match=r"cannot be listed: folder .* probably because a link points to a parent folder"
    ):
        Place(folder, "far").listed("in/**/*.log")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda folder: (folder / "latest.log").symlink_to("m.log"), ["m.log"]),
        (lambda folder: (folder / "a-link.log").symlink_to("m.log"), ["m.log"]),
        (lambda folder: os.link(folder / "m.log", folder / "n.log"), ["m.log"]),
        (lambda folder: ((folder / "l.log").symlink_to("l2.log"), (folder / "l2.log").symlink_to("m.log")), ["m.log"]),
        (lambda folder: [(folder / name).symlink_to("../c.log") for name in ("x.log", "y.log")], ["m.log", "x.log"]),
    ],
    ids=["a link", "a link that sorts first", "a hard link", "a link to a link", "two links to a file elsewhere"],
)
def test_a_file_with_several_names_counts_once(linked: Place, make: Callable[[Path], Any], names: list[str]) -> None:
    put(linked.folder, "names/m.log")
    make(linked.folder / "names")
    found = [f"names/{name}" for name in names]
    assert linked.listed("names/*.log") == found
    assert linked.listed("names/*.log", "**/names/*") == found


def refusal(place: Place, *patterns: str) -> str:
    with pytest.raises(TopologyError) as caught:
        place.listed(*patterns)
    return str(caught.value)


def test_a_pattern_without_a_match_is_named(linked: Place) -> None:
    place = f" (working directory '{linked.folder}')" if linked.way == "path" else ""
    given = "logs/*.txt" if linked.way == "path" else f"{linked.prefix}logs/*.txt"
    assert refusal(linked, "*.txt", "logs/*.txt") == (
        f"no file matches '{given}'{place}; give the path or address of a file, or a glob such as logs/*.txt or "
        "s3://bucket/logs/*.json"
    )


@pytest.mark.parametrize("pattern", ["{a,b}.txt", "~/a.txt", "a.txt,b.txt"])
def test_what_only_a_shell_expands_is_said_to_be_none_of_ours(place: Place, pattern: str) -> None:
    assert "several patterns are a list, and neither {a,b} nor ~ is expanded" in refusal(place, pattern)
    put(place.folder, pattern)
    assert place.listed(pattern) == [pattern]


def test_a_directory_is_told_from_its_files(place: Place) -> None:
    assert refusal(place, "sub").endswith("sub/*' for the files in it")
    assert "it is a directory; take" in refusal(place, "sub/")


def test_a_link_that_leads_nowhere_is_not_left_out_silently(linked: Place) -> None:
    (linked.folder / "link.txt").symlink_to("gone")
    assert refusal(linked, "*.txt") == (
        f"input '{linked.prefix}link.txt' is a symbolic link that leads nowhere: fix or remove it, or choose a pattern "
        "that leaves it out"
    )


def test_a_pipe_is_refused(place: Place) -> None:
    os.mkfifo(place.folder / "pipe")
    assert refusal(place, "pipe") == (
        f"input '{place.prefix}pipe' is not a regular file: a replay has to read it again, which a pipe, a socket or a "
        "device does not allow; copy it into a file first"
    )


def test_a_name_that_cannot_be_stored_is_refused(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.txt")).write_bytes(b"")
    assert refusal(Place(folder, "path"), "bad*") == (
        f"the name of input file '{folder}/bad\\udcff.txt' is not valid UTF-8: rename it"
    )


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that every user may reach, with one that nobody may look into."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(os.path.realpath(made))
        folder.chmod(0o755)
        put(folder, "a/x", "b/x")
        (folder / "b").chmod(0)
        yield folder
        (folder / "b").chmod(0o700)


@contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("pattern", ["*/x", "b/*", "b/x", "**/x", "**"])
def test_a_folder_that_may_not_be_searched_is_refused_by_name(locked, mode, pattern):
    (locked / "b").chmod(mode)
    path = f"{locked}/{pattern}"
    for store, given in ((LocalStore("/"), path), (ArrowStore(), f"file://{path}")):
        for ask, kind in ((store.list_files, TopologyError), (store.look, SourceError)):
            with as_nobody(), pytest.raises(kind) as caught:
                ask([given])
            assert f"files that match {given!r} cannot be listed: user id" in str(caught.value)
            assert f"may not look into folder '{locked}/b'; give it the right to list" in str(caught.value)


def test_a_file_that_cannot_be_looked_at_is_not_taken_for_gone(locked):
    path, store = f"{locked}/b/x", LocalStore("/").of("t")
    asked: list[Callable[[], Any]] = [lambda: store.exists(path), lambda: store.move(path, "/done")]
    for ask in asked:
        with as_nobody(), pytest.raises(SourceError, match=rf"'{path}' .*: Permission denied; give"):
            ask()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_folder_that_the_disk_refuses_is_refused_by_name(linked, monkeypatch, number):
    real = os.scandir

    def scandir(path: str) -> Any:
        if str(path).endswith("/sub"):
            raise OSError(number, os.strerror(number), str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    given = linked.prefix + "*/a.txt"
    assert linked.listed("*/a.txt") == ["sub/a.txt"]
    for ask, kind in ((linked.store.list_files, TopologyError), (linked.store.look, SourceError)):
        with pytest.raises(kind, match=rf"cannot be listed: '.*/sub' cannot be looked at: {os.strerror(number)}"):
            ask([linked.prefix + "**/a.txt", given])


@pytest.mark.parametrize("pattern", ["none-*.txt", "s3://nowhere/none-*.txt"])
def test_a_topology_is_defined_where_its_files_are_not_and_a_run_starts_nothing(tmp_path: Path, pattern: str) -> None:
    lines = stream(TextFiles(pattern if "://" in pattern else str(tmp_path / pattern)))
    topology = lines.count_by("line", into=HashState("lines")).topology("absent")
    assert "TextFiles" in str(plan(topology))
    if "://" not in pattern:
        with pytest.raises(TopologyError, match="no file matches"):
            run(topology, data_dir=tmp_path / "data", engine="local")
        assert list(tmp_path.iterdir()) == []
