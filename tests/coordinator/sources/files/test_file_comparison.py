"""Whatever becomes of files between two runs: what is adopted without a word is counted exactly once."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt import TopologyContext
from coordinator import FormerInput, InputChange
from coordinator.sources import TextFiles
from coordinator.sources.files.file_coordinator import FileCoordinator
from coordinator.sources.files.record_ranges import parse_ranges
from coordinator.sources.files.stores.compressed_file import GZIP
from coordinator.sources.files.stores.input_file import RECENT_NS, is_settled
from coordinator.sources.files.stores.local_store import LocalFile
from tests.support.sources.reading import standing

NAMES = ["a", "b", "c", "d", "e"]
lines = st.lists(st.sampled_from(["one", "two", "three", "", "four" * 3]), max_size=5)
edits: st.SearchStrategy[tuple[str, str, Any]] = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(NAMES), lines),
    st.tuples(st.just("rewrite"), st.sampled_from(NAMES), lines),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just([])),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


def text_of(given_lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in given_lines)


Pack = Callable[[bytes], bytes]


def packed(text: bytes) -> bytes:
    """As several programs write it: a member for what there is, none for nothing."""
    return gzip.compress(text) if text else b""


def content_of(path: Path) -> bytes:
    stored = path.read_bytes()
    return gzip.decompress(stored) if stored.startswith(GZIP) else stored


def edit(folder: Path, pack: Pack, what: str, name: str, more: Any) -> None:
    path = folder / f"{name}.txt"
    if what == "append":
        with path.open("ab") as file:
            file.write(pack(text_of(more).encode()))
    elif what == "rewrite":
        path.write_bytes(pack(text_of(more).encode()))
    elif what == "rename" and path.exists():
        path.rename(folder / f"{more}.txt")
    elif what == "remove":
        path.unlink(missing_ok=True)


def coordinator_of(folder: Path, lines_per_batch: int) -> FileCoordinator:
    context = TopologyContext("test", "lines", 0, 2, 1, {"lines": (1, 2)})
    return TextFiles(str(folder / "*.txt"), lines_per_batch).get_coordinator({}, context)


def lines_in(metadata: Any) -> Counter[str]:
    """The lines of a transaction, read as they are now."""
    found: Counter[str] = Counter()
    for each in parse_ranges(metadata):
        content = content_of(Path(each.path))[each.start : each.end]
        found.update(content.decode().splitlines())
    return found


def all_lines(folder: Path) -> Counter[str]:
    return Counter(line for path in folder.iterdir() for line in content_of(path).decode().splitlines())


def cut(coordinator: FileCoordinator, last: Any, limit: int = 1000) -> tuple[Counter[str], Any, dict[str, Any]]:
    """What was cut, where that ended, and the notes."""
    found: Counter[str] = Counter()
    notes: dict[str, Any] = {}
    while coordinator.is_ready() and limit:
        last = coordinator.initialize_transaction(1, last)
        found += lines_in(last)
        notes |= coordinator.notes(last)
        limit -= 1
    return found, last, notes


@settings(max_examples=300)
@given(
    st.dictionaries(st.sampled_from(NAMES), lines, min_size=1),
    st.integers(1, 4),
    st.integers(1, 6),
    st.lists(edits, max_size=3),
    st.integers(1, 4),
    st.sampled_from([bytes, packed]),
)
def test_what_is_adopted_without_a_word_is_read_exactly_once(  # noqa: PLR0917 - all of them are drawn
    before, per_batch, transactions, changes, per_batch_after, pack
):
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file_name, content in before.items():
            (folder / f"{file_name}.txt").write_bytes(pack(text_of(content).encode()))
        first = coordinator_of(folder, per_batch)
        read, last, notes = cut(first, None, transactions)
        first.close()
        for change in changes:
            edit(folder, pack, *change)
        if last is None or not any(folder.iterdir()):
            return
        second = coordinator_of(folder, per_batch_after)
        former = FormerInput(fingerprint="", is_same=False, last_txid=transactions, last=last, notes=notes)
        change = second.compare(former)
        if change == InputChange(notes=change.notes):
            standing(second, transactions, last).resume()
            more, _, _ = cut(second, last)
            assert read + more == all_lines(folder)
        else:
            assert changes, "files that nobody has changed are never refused"
        second.close()


def at(moment_ns: int) -> Callable[[], int]:
    return lambda: moment_ns


def test_a_file_that_was_changed_a_moment_ago_is_known_by_its_content_only(tmp_path: Path) -> None:
    """It might be changed again before the clock of the file system ticks."""
    path = tmp_path / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    found = path.stat()
    changed_ns = max(found.st_mtime_ns, found.st_ctime_ns)
    for age_ns, is_known in ((-RECENT_NS, False), (0, False), (RECENT_NS - 1, False), (RECENT_NS + 1, True)):
        with closing(LocalFile(str(path), "test", clock_ns=at(changed_ns + age_ns))) as file:
            assert is_settled(file.stamp) is is_known


def test_another_content_with_the_same_size_and_times_is_noticed_if_it_was_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    times = path.stat()
    first = coordinator_of(tmp_path, 1)
    _, last, notes = cut(first, None)
    first.close()
    path.write_text("eno\n", encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = coordinator_of(tmp_path, 1)
    change = second.compare(FormerInput(fingerprint="", is_same=True, last_txid=1, last=last, notes=notes))
    assert change.impossible == (
        f"file {str(path)!r} has changed: 4 bytes of it were read, and it differs from them now; the next transaction "
        "would have to begin in it",
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("end", "is_told"), [("", True), ("\n", False)])
def test_a_last_line_that_was_read_without_its_end_is_told_when_it_continues(tmp_path, pack, end, is_told):
    """Otherwise a plain adoption would make two records of one."""
    path = tmp_path / "a.txt"
    path.write_bytes(pack(f"one\ntw{end}".encode()))
    first = coordinator_of(tmp_path, 1)
    _, last, notes = cut(first, None)
    first.close()
    with path.open("ab") as file:
        file.write(pack(b"o\nthree\n"))
    second = coordinator_of(tmp_path, 1)
    change = second.compare(FormerInput(fingerprint="", is_same=False, last_txid=2, last=last, notes=notes))
    told = (
        f"file {str(path)!r} ended at byte 6 within a line, which was read as it was, and continues now: the rest of "
    )
    assert change.changed == ((f"{told}that line would be a record of its own",) if is_told else ())
    second.close()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("content", "files", "told"),
    [
        ("h\n", {"0": "h\n", "1": "h\n"}, {"changed": ["b.txt"], "skipped": ["0.txt", "1.txt"]}),
        ("h\n", {"0": "h\n2\n"}, {"changed": ["b.txt"], "skipped": ["0.txt"]}),
        ("h\n" * 600, {"0": "h\n" * 600, "1": "h\n" * 600}, {"skipped": ["1.txt"]}),
        ("h\n", {"y": "h\n", "z": "h\n"}, {"renamed": ["y.txt"]}),
        ("h\n", {"0": "h\n", "z": "h\n"}, {"renamed": ["z.txt"], "skipped": ["0.txt"]}),
        ("h\n", {"y": "h\n", "z": "h\n2\n"}, {"renamed": ["y.txt"]}),
    ],
)
def test_one_file_at_most_is_the_one_that_is_gone(tmp_path: Path, pack: Pack, content, files, told) -> None:
    """Others that hold the same are new: told if they lie before the position, and read if they lie after it."""
    for name, text in {"b": content, "m": "last\n"}.items():
        (tmp_path / f"{name}.txt").write_bytes(pack(text.encode()))
    first = coordinator_of(tmp_path, 1000)
    _, last, notes = cut(first, None)
    first.close()
    (tmp_path / "b.txt").unlink()
    (tmp_path / "keeps the inode").write_bytes(b"")
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_bytes(pack(text.encode()))
    second = coordinator_of(tmp_path, 1000)
    change = second.compare(FormerInput(fingerprint="", is_same=False, last_txid=1, last=last, notes=notes))
    found = {word: getattr(change, word) for word in ("skipped", "again", "changed", "renamed")}
    assert {word: [Path(each.split("'")[1]).name for each in given] for word, given in found.items() if given} == told
    read = [Path(name).stem for name, note in {**notes, **change.notes}.items() if note is not None]
    assert sorted({"y", "z"} & files.keys() & {*read}) == [each[0] for each in told.get("renamed", [])]
    second.close()
