"""Files that only pyarrow opens: found by globs, named when they are gone, and no secrets kept of their store."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from coordinator.sources import Follow, TextFiles
from coordinator.sources.files import file_spout
from coordinator.sources.files.done_files import DoneFiles, FinishedFile, FinishedFiles
from coordinator.sources.files.prefix_digest import whole_mark
from coordinator.sources.files.record_scanner import BLOCK_BYTES
from coordinator.sources.files.stores.arrow_store import ArrowStore
from state import SourceError, TopologyError, TransactionAttempt
from tests.support.sources.reading import context, cut, read, rows_of


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    for name in ("logs/a.txt", "logs/b.txt", "logs/deep/c.txt", "logs/deep/er/d.txt", "logs/e.log", "other/f.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.stem}\n")
    return tmp_path


def filesystem(bucket: Path) -> Any:
    return pyarrow.fs.SubTreeFileSystem(str(bucket), pyarrow.fs.LocalFileSystem())


def test_a_file_system_is_opened_once_however_often_a_store_is_bound_which_is_shipped_with_its_topology(bucket):
    store, address = ArrowStore(), f"file://{bucket}/logs/a.txt"
    opened = [store.of(f"wave {number}")._place(address)[0] for number in range(2)]
    assert opened[0] is opened[1]
    shipped = pickle.loads(pickle.dumps(ArrowStore().of("counts")))
    assert (shipped.topology_id, shipped.exists(address)) == ("counts", True)


@pytest.mark.parametrize(
    ("alter", "story"),
    [
        (lambda path: path.unlink(), "input file 'logs/a.txt' is missing"),
        (lambda path: (path.unlink(), path.mkdir()), "input file 'logs/a.txt' is a directory now"),
        (lambda path: path.write_text("b\n"), "input file 'logs/a.txt' has changed"),
        (lambda path: path.write_text(""), "input file 'logs/a.txt' has shrunk"),
    ],
    ids=["missing", "folder", "changed", "shrunk"],
)
def test_a_file_that_is_not_what_it_was_is_named(bucket: Path, alter: Callable[[Path], Any], story: str) -> None:
    source = TextFiles("logs/a.txt", filesystem=filesystem(bucket))
    batches = cut(source)
    alter(bucket / "logs" / "a.txt")
    with pytest.raises(SourceError, match=story):
        read(source, batches)


class Refusing(pyarrow.fs.FileSystemHandler):
    """A store that is away."""

    def get_type_name(self) -> str:
        return "refusing"

    def __getattribute__(self, name: str) -> Any:
        if name in ("get_file_info", "get_file_info_selector", "open_input_file"):
            raise OSError("the store is away")
        return super().__getattribute__(name)


for _name in pyarrow.fs.FileSystemHandler.__abstractmethods__ - {"get_type_name"}:
    setattr(Refusing, _name, lambda self, *given, **named: None)
Refusing.__abstractmethods__ = frozenset()


@pytest.mark.parametrize("is_same", [False, True])
def test_an_object_that_is_written_again_while_it_is_read_is_named(tmp_path: Path, is_same: bool) -> None:
    """What is only touched, or has grown, is read on."""
    path = tmp_path / "a.txt"
    lines = [f"{number}: {'x' * 1000}\n" for number in range(3 * BLOCK_BYTES // 1000)]
    path.write_text("".join(lines))
    source = TextFiles(f"file://{path}", 100)
    with closing(source.get_coordinator({}, context())) as coordinator:
        batch = coordinator.initialize_transaction(1, None)
        path.write_text("".join(lines if is_same else reversed(lines)) + "more\n")
        refused = nullcontext() if is_same else pytest.raises(SourceError, match="was cut off and written again after")
        with refused:
            for txid in range(2, len(lines) // 100):
                batch = coordinator.initialize_transaction(txid, batch)


def test_a_store_that_is_away_is_said_to_be():
    away = pyarrow.fs.PyFileSystem(Refusing())
    store, unlisted = ArrowStore(away), r"files that match 'a\*' cannot be listed"
    for error, told, ask in (
        (TopologyError, unlisted, lambda: TextFiles("a*", filesystem=away).find_input()),
        (SourceError, unlisted, lambda: store.look(["a*"])),
        (SourceError, "input file 'a' cannot be looked at", lambda: store.exists("a")),
        (SourceError, "input file 'a' cannot be read", lambda: store.open("a")),
    ):
        with pytest.raises(error, match=f"{told}: the store is away"):
            ask()


def test_options_of_an_address_are_used_and_not_stored_with_its_files(bucket: Path, monkeypatch) -> None:
    opened = []

    def from_uri(address: str) -> Any:
        opened.append(address)
        return pyarrow.fs.SubTreeFileSystem(str(bucket), pyarrow.fs.LocalFileSystem()), ""

    class Fake:
        FileSystem = type("FileSystem", (), {"from_uri": staticmethod(from_uri)})
        FileSelector, FileType = pyarrow.fs.FileSelector, pyarrow.fs.FileType

    monkeypatch.setattr("coordinator.sources.files.stores.arrow_store._module", lambda: Fake)
    source = pickle.loads(pickle.dumps(TextFiles("s3://logs/*.txt?region=eu-central-1")))
    assert source.paths() == ("s3://logs/a.txt", "s3://logs/b.txt")
    assert rows_of(source) == [["a"], ["b"]]
    assert set(opened) == {"s3://logs/?region=eu-central-1"}
    assert "region" not in repr(cut(source))
    assert source.store.absolute("s3://logs/done/?region=eu-central-1") == "s3://logs/done"
    assert "region" not in source.fingerprint()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pattern": ["s3://a/b", "c"]}, "mixes addresses with paths"),
        ({"pattern": "s3://a/b", "filesystem": pyarrow.fs.LocalFileSystem()}, "is an address, and filesystem is given"),
        ({"pattern": "a", "filesystem": "s3"}, "is not a pyarrow.fs.FileSystem"),
        ({"pattern": "nosuch://a/b"}, "pyarrow cannot open the file system of 'nosuch://a/b'"),
        ({"pattern": "s3://key:topsecret@bucket/*.txt"}, "holds credentials"),
    ],
)
def test_what_names_no_store_is_refused_and_no_secret_shown(given, message):
    with pytest.raises(TopologyError, match=message) as caught:
        TextFiles(**given).find_input()
    assert "topsecret" not in str(caught.value)


def done_with(bucket: Path, done: Any, *paths: str) -> DoneFiles:
    """What is to be done with files of which each transaction has read one."""
    follow = Follow(complete="rename", done=done, done_path="done" if done == "move" else "")
    finished, store = FinishedFiles(removes=True), ArrowStore(filesystem(bucket))
    for txid, path in enumerate(paths, start=1):
        with closing(store.open(path)) as file:
            finished.cut(txid, [FinishedFile(path, whole_mark(file))])
    return DoneFiles(finished, follow, store, follow.done_path)


@pytest.mark.parametrize("done", ["move", "delete"])
def test_done_files_are_dealt_with_in_their_store(bucket, done):
    committer = done_with(bucket, done, "logs/a.txt", "logs/b.txt")
    committer.commit(TransactionAttempt(1, 7))
    committer.commit(TransactionAttempt(1, 7))
    assert not (bucket / "logs" / "a.txt").exists()
    assert (bucket / "logs" / "b.txt").exists()
    assert (bucket / "done" / "a.txt").exists() is (done == "move")


def test_a_replaced_file_is_not_deleted_from_a_store_that_cannot_rename(bucket):
    committer = done_with(bucket, "delete", "logs/a.txt")
    (bucket / "new").write_text("x\n")
    (bucket / "new").rename(bucket / "logs" / "a.txt")
    with pytest.raises(SourceError, match=r"a\.txt' is not the file that was read and committed, so it is not deleted"):
        committer.commit(TransactionAttempt(1, 1))
    assert (bucket / "logs" / "a.txt").read_text() == "x\n"


def test_local_patterns_need_no_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.txt").write_text("a\n")
    assert rows_of(TextFiles(str(tmp_path / "a.txt"))) == [["a"]]
    with pytest.raises(TopologyError, match="needs pyarrow"):
        file_spout.choose_store("TextFiles", ["s3://a/b"], "/", None)


class Bucket:
    """As fsspec sees a store of objects: an object whose name ends in a slash is a file, and listings are kept."""

    def __init__(self, objects: dict[str, bytes], *, protocol: Any = ("s3", "s3a"), fault: Any = None) -> None:
        self.protocol, self.fault = protocol, fault
        self.objects, self.kept = dict(objects), dict(objects)

    def filesystem(self) -> Any:
        return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(self))

    def invalidate_cache(self) -> None:
        self.kept = dict(self.objects)

    def isdir(self, folder: str) -> bool:
        return any(name.startswith(f"{folder}/") for name in self.kept)

    def exists(self, path: str) -> bool:
        return self.isdir(path) or path in self.kept

    def isfile(self, path: str) -> bool:
        return path in self.objects

    def info(self, path: str) -> dict[str, Any]:
        if path in self.kept:
            return {"name": path, "size": len(self.kept[path]), "type": "file"}
        if self.isdir(path):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def find(self, folder: str, *, maxdepth: int | None, withdirs: bool, detail: bool) -> dict[str, Any]:
        assert (withdirs, detail) == (True, True)
        if self.fault is not None:
            raise self.fault
        names = [name for name in self.kept if name.startswith(f"{folder}/")]
        files = [name for name in names if maxdepth is None or "/" not in name[len(folder) + 1 :].rstrip("/")]
        folders = {"/".join(name.split("/")[: folder.count("/") + 2]) for name in names} - {*names}
        return {name: self.info(name) for name in (*files, *folders)}

    def open(self, path: str, mode: str) -> io.BytesIO:
        assert mode == "rb"
        if self.objects[path] == b"SlowDown":
            raise RuntimeError("reduce your request rate")
        return io.BytesIO(self.objects[path])


@pytest.mark.parametrize("protocol", ["bucket", ("s3", "s3a"), ["gs"]])
def test_an_object_that_stands_for_a_folder_is_no_input_file(protocol: Any) -> None:
    objects = {"logs/": b"", "logs/a.txt": b"a\n", "logs/sub/": b"", "logs/sub/b.txt": b"b\n", "logs/empty/": b""}
    filesystem = Bucket(objects, protocol=protocol).filesystem()
    assert rows_of(TextFiles("logs/**", filesystem=filesystem)) == [["a"], ["b"]]
    assert rows_of(TextFiles("logs/*", filesystem=filesystem)) == [["a"]]


def test_an_object_of_fsspec_hides_nothing_below_its_name():
    objects = {"logs/a": b"a\n", "logs/a/b": b"b\n"}
    assert rows_of(TextFiles("logs/**", filesystem=Bucket(objects).filesystem())) == [["a"], ["b"]]


def test_whatever_a_store_raises_is_named_with_what_it_was_asked_for():
    broken = Bucket({"logs/a": b"a\n"}, fault=KeyError("logs/a")).filesystem()
    with pytest.raises(TopologyError, match=r"match 'logs/\*' cannot be listed: .*'logs/a'.*; fix the"):
        TextFiles("logs/*", filesystem=broken).find_input()
    slow = Bucket({"logs/a": b"SlowDown"}).filesystem()
    with pytest.raises(SourceError, match=r"input file 'logs/a' cannot be read: .*reduce your request rate; fix the"):
        rows_of(TextFiles("logs/*", filesystem=slow))


def test_a_listing_that_fsspec_has_kept_hides_neither_files_nor_lines() -> None:
    bucket = Bucket({"logs/a.txt": b"a\n"})
    filesystem = bucket.filesystem()
    assert rows_of(TextFiles("logs/*.txt", filesystem=filesystem)) == [["a"]]
    bucket.objects |= {"logs/a.txt": b"a\nmore\n", "logs/b.txt": b"b\n"}
    assert rows_of(TextFiles("logs/*.txt", filesystem=filesystem)) == [["a"], ["more"], ["b"]]
