"""Text files, driven by hand: cut on the driver, read by several tasks, stopped, changed and read again."""

from __future__ import annotations

import os
import pickle
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coordinated_bolt import TopologyContext
from coordinated_bolt.watching.metrics import REASON_COUNTER
from coordinator import FormerInput
from coordinator.sources import TextFiles
from coordinator.sources.files.file_coordinator import FileCoordinator
from coordinator.sources.files.file_spout import FileEmitter
from coordinator.sources.files.stores import local_store
from coordinator.sources.files.stores.local_store import LocalFile
from coordinator.sources.files.stores.packed_files import HEAD_BYTES, not_text
from state import FailedException, SourceError, TopologyError, TransactionAttempt
from state.codec import pack_exact, unpack
from tests.support.approved import approved, refusals, wrongly
from tests.support.sources.reading import context, cut, read, rows_of, standing
from tests.support.sources.recorder import Recorder

STARTED: list[FileCoordinator | FileEmitter] = []


@pytest.fixture(autouse=True)
def closed_again() -> Iterator[None]:
    """Closes, as the run would, whatever a test has started."""
    yield
    while STARTED:
        STARTED.pop().close()


def coordinator_of(source: TextFiles, task_count: int = 1) -> FileCoordinator:
    coordinator = source.get_coordinator({}, context(task_count=task_count))
    STARTED.append(coordinator)
    return coordinator


def emitter_of(source: TextFiles, task: TopologyContext | None = None) -> FileEmitter:
    emitter = source.get_emitter({}, task or context())
    STARTED.append(emitter)
    return emitter


def cut_all(coordinator: FileCoordinator, previous: Any = None, limit: int | None = None) -> list[Any]:
    """Cuts as the run does; metadata goes through storage."""
    cut: list[Any] = []
    while coordinator.is_ready() and len(cut) != limit:
        previous = unpack(pack_exact(coordinator.initialize_transaction(len(cut) + 1, previous)))
        cut.append(previous)
    return cut


def emitted(source: TextFiles, batches: Iterable[Any], task_index: int = 0, task_count: int = 1) -> list[list[str]]:
    """What one task emits for each batch."""
    emitter = emitter_of(source, context(task_index=task_index, task_count=task_count))
    return [emit(emitter, metadata) for metadata in batches]


def emit(emitter: FileEmitter, metadata: Any) -> list[str]:
    recorder = Recorder()
    emitter.emit_batch(TransactionAttempt(1, 2), metadata, recorder)
    return [line for _, (line,) in recorder.sent]


def all_lines(source: TextFiles) -> list[str]:
    return [line for (line,) in rows_of(source)]


def write(folder: Path, *contents: bytes) -> None:
    for number, content in enumerate(contents):
        (folder / f"{number}.txt").write_bytes(content)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


TEXTS = st.text(st.sampled_from("ab é€😀\t\r\x0b\x0c\x1c\x85\u2028\u2029\0"), max_size=6)


@st.composite
def file_contents(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """A file and its lines."""
    content = ""
    lines: list[str] = []
    for text, end in draw(st.lists(st.tuples(TEXTS, st.sampled_from(["\n", "\r\n"])), max_size=12)):
        line = text.rstrip("\r") if end == "\n" else text
        content += line + end
        lines.append(line)
    if last := draw(TEXTS):
        content += last
        lines.append(last)
    has_mark: bool = draw(st.booleans())
    assume(has_mark or not not_text("a.txt", content.encode()[:HEAD_BYTES]))  # every other byte a zero
    return (b"\xef\xbb\xbf" if has_mark and lines else b"") + content.encode(), lines


@settings(max_examples=300)
@given(
    drawn=st.lists(file_contents(), min_size=1, max_size=5),
    lines_per_batch=st.integers(1, 15),
    task_count=st.integers(1, 5),
    block_bytes=st.integers(1, 20),
    stop_after=st.integers(0, 10),
)
def test_every_line_is_emitted_exactly_once_and_in_order(drawn, lines_per_batch, task_count, block_bytes, stop_after):
    expected = [line for _, lines in drawn for line in lines]
    with TemporaryDirectory() as name:
        write(Path(name), *(content for content, _ in drawn))
        source = TextFiles(f"{name}/*.txt", lines_per_batch)

        def start() -> FileCoordinator:
            return source.coordinator(context(task_count=task_count), block_bytes=block_bytes)

        first = start()
        batches = cut_all(first, limit=stop_after)
        first.close()
        second = start()
        last = batches[-1] if batches else None
        standing(second, len(batches), last).resume()
        assert standing(second, 1, last).is_exhausted() is not second.is_ready()
        batches += cut_all(second, last)
        assert standing(second, 1, batches[-1] if batches else None).is_exhausted()
        second.close()
        by_task = [emitted(source, batches, task, task_count) for task in range(task_count)]
        by_one = emitted(source, batches)
    slices = [expected[i : i + lines_per_batch] for i in range(0, len(expected), lines_per_batch)]
    assert by_one == slices
    for batch, shares in zip(slices, zip(*by_task, strict=True), strict=True):
        assert sum(map(Counter, shares), Counter()) == Counter(batch)
        for share in shares:
            remaining = iter(batch)
            assert all(line in remaining for line in share)  # in the order of the input


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\r\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\nc\r\n", ["a", "b", "c"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\r\r\n", ["a\r"]),
        (b"a\r", ["a\r"]),
        ("a\x0b\x0c\x1c\x85\u2028b\n".encode(), ["a\x0b\x0c\x1c\x85\u2028b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbf", []),
    ],
)
def test_what_a_line_is(folder: Path, content: bytes, lines: list[str]) -> None:
    write(folder, content)
    assert all_lines(TextFiles("*.txt")) == all_lines(TextFiles("*.txt", 1)) == lines


@pytest.mark.parametrize("line_count", [1023, 1024, 1025, 5000])
def test_a_range_of_many_lines_is_emitted_whole(folder: Path, line_count: int) -> None:
    lines = [str(number) for number in range(line_count)]
    write(folder, "\n".join(lines).encode())
    assert all_lines(TextFiles("*.txt", 10_000)) == lines


def test_a_large_file_is_split_into_ranges_and_a_batch_runs_over_the_border(folder):
    write(folder, b"1\n" * 3072, b"2\n" * 1024)
    batches = cut_all(coordinator_of(TextFiles("*.txt", 2048), task_count=2))
    assert [[(Path(path).name, start, end, count) for path, start, end, _, count, *_ in each] for each in batches] == [
        [("0.txt", 0, 2048, 1024), ("0.txt", 2048, 4096, 1024)],
        [("0.txt", 4096, 6144, 1024), ("1.txt", 0, 2048, 1024)],
    ]


@pytest.mark.parametrize(("lines_per_batch", "range_counts"), [(320, [1] * 13), (1600, [1, 1, 1]), (3200, [3, 1])])
def test_a_small_batch_is_not_split_among_more_tasks_than_it_is_worth(folder, lines_per_batch, range_counts):
    write(folder, b"x\n" * 4160)
    batches = cut_all(coordinator_of(TextFiles("*.txt", lines_per_batch), task_count=24))
    assert [len(batch) for batch in batches] == range_counts


def test_progress_is_the_part_of_the_bytes_that_is_cut(folder: Path) -> None:
    write(folder, b"12345\n12\n", b"", b"1\n")
    coordinator = coordinator_of(TextFiles("*.txt", lines_per_batch=1))
    seen, last = [standing(coordinator).progress()], None
    while coordinator.is_ready():
        last = coordinator.initialize_transaction(len(seen), last)
        seen.append(standing(coordinator, 1, last).progress())
    assert seen == [0.0, 6 / 11, 9 / 11, 1.0]


def test_estimated_bytes_is_the_size_of_the_ranges(folder: Path) -> None:
    write(folder, b"1\n22\n333\n", b"4")
    coordinator = coordinator_of(TextFiles("*.txt", 3), task_count=2)
    assert [coordinator.estimated_bytes(metadata) for metadata in cut_all(coordinator)] == [9, 1]


def test_a_transaction_holds_the_driver_to_one_block_however_long_its_lines(folder: Path) -> None:
    write(folder, b"x" * 30_000_000 + b"\nend")
    source = TextFiles("*.txt")
    coordinator = coordinator_of(source)
    tracemalloc.start()
    try:
        (metadata,) = cut_all(coordinator)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    assert list(map(len, emitted(source, [metadata])[0])) == [30_000_000, 3]


def test_a_replay_equals_the_first_emission_after_more_was_appended(folder: Path) -> None:
    write(folder, b"1\n2\n3")
    source = TextFiles("*.txt", 2)
    batches = cut(source)
    before = emitted(source, batches)
    with (folder / "0.txt").open("ab") as file:
        file.write(b"3\n4\n")
    assert emitted(source, batches) == before == [["1", "2"], ["3"]]


def test_what_is_appended_while_a_run_cuts_is_left_to_the_next(folder):
    write(folder, b"1\n2\n")
    source = TextFiles("*.txt", 1)
    coordinator = coordinator_of(source)
    first = coordinator.initialize_transaction(1, None)
    with (folder / "0.txt").open("ab") as file:
        file.write(b"3\n")
    second = coordinator.initialize_transaction(2, first)
    assert standing(coordinator, 1, second).is_exhausted()
    assert emitted(source, cut(source, second)) == [["3"]]


def test_without_resume_a_cut_at_the_very_end_is_given_up_quietly(folder: Path) -> None:
    write(folder, b"1\n")
    (last,) = cut(TextFiles("*.txt", 1))
    unaware = coordinator_of(TextFiles("*.txt", 1))
    assert unaware.is_ready()
    with pytest.raises(FailedException, match=r"^txid 2 cannot be cut: the input ends with the one before$"):
        unaware.initialize_transaction(2, last)
    assert not unaware.is_ready()


def test_a_failed_cut_does_not_move_the_position(folder: Path) -> None:
    write(folder, b"1\n2\n", b"3\n4\n")
    source = TextFiles("*.txt", 3)
    coordinator = coordinator_of(source)
    (folder / "1.txt").rename(folder / "away")
    with pytest.raises(SourceError, match="is missing"):
        coordinator.initialize_transaction(1, None)
    (folder / "away").rename(folder / "1.txt")
    assert emitted(source, cut_all(coordinator)) == [["1", "2", "3"], ["4"]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[LocalFile]:
    """Every file opened from here on."""
    files: list[LocalFile] = []

    class Noted(LocalFile):
        def __init__(self, path: str, topology_id: str) -> None:
            super().__init__(path, topology_id)
            files.append(self)

    monkeypatch.setattr(local_store, "LocalFile", Noted)
    return files


def what_became_of(opened: list[LocalFile]) -> list[tuple[str, str]]:
    return [(Path(file.path).name, "closed" if file._file.closed else "open") for file in opened]


def test_emitter_and_coordinator_have_one_file_open_which_they_open_once_and_none_after_close(folder, opened):
    write(folder, b"1\n2\n3\n4\n", b"5\n6\n")
    source = TextFiles("*.txt", 1)
    coordinator, emitter = coordinator_of(source), emitter_of(source)
    opened.clear()
    batches = cut_all(coordinator)
    assert standing(coordinator, 1, batches[-1]).is_exhausted()
    assert what_became_of(opened) == [("0.txt", "closed"), ("1.txt", "open")]
    coordinator.close()
    assert what_became_of(opened) == [("0.txt", "closed"), ("1.txt", "closed")]
    opened.clear()
    for metadata in batches:
        emit(emitter, metadata)
    assert what_became_of(opened) == [("0.txt", "closed"), ("1.txt", "open")]
    emitter.close()
    assert what_became_of(opened) == [("0.txt", "closed"), ("1.txt", "closed")]


BAD = b"\xef\xbb\xbfgood\r\nb\xffd\r\n\xc3\ngood \xe2\x82\xac\n\xe2\x82"


def test_a_bad_line_stops_the_run_and_is_named(folder: Path) -> None:
    write(folder, BAD)
    source = TextFiles("*.txt", 2)
    first, second, _ = batches = cut(source)
    with pytest.raises(SourceError) as caught:
        emitted(source, [first])
    assert str(caught.value) == (
        f"the record at line 2 of input file '{folder}/0.txt' (byte 9) is bad: byte 0xff at position 1 is not "
        "valid UTF-8: invalid start byte; if it is text in another encoding, name that, such as encoding='cp1252', or "
        "give encoding_errors='replace'; fix it, or give on_bad_record='skip' to leave out such records, or "
        "'dead_letter' to keep them"
    )
    with pytest.raises(SourceError, match=r"at line 3 of .* \(byte 14\) is bad: byte 0xc3 at position 0"):
        emitted(source, [second])
    with pytest.raises(SourceError, match=r"at line 5 of .* \(byte 25\) is bad: byte 0xe2 .* unexpected end of data"):
        emitted(source, batches[2:])


@pytest.mark.parametrize("lines_per_batch", [1, 2, 10])
def test_bad_lines_are_skipped_and_counted_or_their_wrong_bytes_replaced(folder, lines_per_batch):
    write(folder, BAD)
    source, task = TextFiles("*.txt", lines_per_batch, on_bad_record="skip"), context()
    assert [row for _, row in read(source, cut(source), task)] == [["good"], ["good €"]]
    reason = f"{REASON_COUNTER}byte … at position … is not valid UTF-8: …"
    assert (task.counters["bad_records"], [each for each in task.counters if "position" in each]) == (3, [reason])
    replaced = TextFiles("*.txt", lines_per_batch, encoding_errors="replace")
    assert all_lines(replaced) == ["good", "b\ufffdd", "\ufffd", "good €", "\ufffd"]


FAULTS: dict[str, Any] = {
    "missing": Path.unlink,
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: os.mkfifo(path.rename(path.with_suffix(".was")).with_suffix(".txt")),
    "shorter": lambda path: path.write_bytes(b"1\n2"),
    "other content": lambda path: path.write_bytes(b"1\nX\n3\n and more"),
}


def test_emitter_and_next_coordinator_say_what_has_become_of_a_file(folder: Path) -> None:
    cases: dict[str, Callable[[], Any]] = {}
    for name, fault in FAULTS.items():
        (folder / name).mkdir()
        write(folder / name, b"1\n2\n3\n", b"4\n")
        source = TextFiles(f"{name}/*.txt", 3)
        batches = cut(source)
        cases[f"{name}, for the emitter"] = partial(emitted, source, batches)
        cases[f"{name}, for the next coordinator"] = partial(continued, source, batches[0])
        fault(folder / name / "0.txt")
    approved(refusals(cases, SourceError), "files-that-are-no-longer-what-was-read", FOLDER=folder)


def continued(source: TextFiles, last: Any) -> None:
    standing(coordinator_of(source), 1, last).resume()


def test_a_file_that_vanishes_or_shrinks_between_listing_and_cutting_is_named(folder: Path) -> None:
    write(folder, b"1\n")
    source = TextFiles("*.txt")
    coordinator = coordinator_of(source)
    (folder / "0.txt").unlink()
    asked = (lambda: coordinator.initialize_transaction(1, None), lambda: coordinator_of(source), source.fingerprint)
    for ask in asked:
        with pytest.raises(
            SourceError, match=r"0\.txt' is missing; it was there when the input was listed\. .*`txbatch"
        ):
            ask()
    write(folder, b"1\n2\n3\n")
    coordinator = coordinator_of(TextFiles("*.txt"))
    write(folder, b"1\n2")
    with pytest.raises(SourceError, match=r"0.txt. was changed after the run began and before it was read"):
        coordinator.initialize_transaction(1, None)


def test_a_file_no_longer_matched_is_told_and_followed_by_those_that_sort_after_it(folder: Path) -> None:
    write(folder, b"1\n", b"2\n", b"3\n")
    first = coordinator_of(TextFiles("[01].txt", 1))
    last = cut_all(first)[-1]
    source = TextFiles(["0.txt", "2.txt"])
    coordinator = coordinator_of(source)
    notes = {f"{folder}/1.txt": first.notes(last)[f"{folder}/1.txt"]}
    change = coordinator.compare(FormerInput(fingerprint="", is_same=False, last_txid=2, last=last, notes=notes))
    assert change.changed == (f"file '{folder}/1.txt' is no longer part of the input; 2 bytes of it were read",)
    standing(coordinator, 2, last).resume()
    assert emitted(source, cut_all(coordinator, last)) == [["3"]]


@pytest.mark.parametrize("metadata", [3, [], [["path", 0, 1]], {"a": 1}])
def test_metadata_of_another_source_is_refused(folder: Path, metadata: Any) -> None:
    write(folder, b"1\n")
    with pytest.raises(
        SourceError,
        match=r"^metadata field 'coordinator:1' of topology 'letters': stored metadata .* is not a range of records",
    ):
        standing(coordinator_of(TextFiles("*.txt")), 1, metadata).resume()


def test_a_topology_whose_position_is_not_stored_is_not_started_over(folder: Path) -> None:
    write(folder, b"1\n")
    with pytest.raises(SourceError) as caught:
        standing(coordinator_of(TextFiles("*.txt")), 7, None).resume()
    assert str(caught.value) == (
        "topology 'letters' has reached txid 7, but its position in the input is not stored: it was run with "
        "another kind of source before; drop it or take another topology id"
    )


def test_a_file_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, b"1\n")
    source = TextFiles("*.txt")
    (metadata,) = cut(source)
    emitter = emitter_of(source)
    said = []
    for error in (PermissionError(13, "Permission denied"), OSError(5, "Input/output error")):
        asked: dict[str, Callable[[], Any]] = {
            f"{error}, for the coordinator": partial(coordinator_of, source),
            f"{error}, for the emitter": partial(emit, emitter, metadata),
        }
        with monkeypatch.context() as patched:  # a test that runs as root is never refused
            patched.setattr(Path, "open", Mock(side_effect=error))
            said.append(refusals(asked, SourceError))
    approved("\n".join(said), "files-that-cannot-be-read", FOLDER=folder, USER=f"user id {os.geteuid()}")


def test_the_fingerprint_is_one_readable_line(folder):
    write(folder, b"1\n", b"22\n")
    for patterns, shown in {
        ("*.txt",): f"'{folder}/*.txt': 2 files, 5 bytes",
        (
            "0.txt",
            "1.txt",
            "*.txt",
            "?.txt",
        ): f"'{folder}/0.txt', '{folder}/1.txt', '{folder}/*.txt', …: 2 files, 5 bytes",
        ("0.txt",): f"'{folder}/0.txt': 1 file, 2 bytes",
    }.items():
        assert TextFiles(list(patterns)).fingerprint()[:-16] == f"text files {shown}, digest "


@pytest.mark.parametrize("follow", [False, True], ids=["finite", "followed"])
def test_the_same_files_under_another_spelling_are_the_same_input(folder, monkeypatch, follow):
    for name in ("in", "elsewhere"):
        (folder / name).mkdir()
    (folder / "in" / "0.txt").write_bytes(b"1\n")
    (folder / "link").symlink_to("in")
    expected = TextFiles("in/*.txt", follow=follow).fingerprint()
    spellings = ("./in/*.txt", "elsewhere/../in/*.txt", "link/*.txt", f"{folder}/in/*.txt", f"{folder}/link/*.txt")
    assert [TextFiles(each, follow=follow).fingerprint() for each in spellings] == [expected] * len(spellings)
    monkeypatch.chdir(folder / "elsewhere")
    assert TextFiles("../in/*.txt", follow=follow).fingerprint() == expected
    assert TextFiles("../link/../in/*.txt", follow=follow).fingerprint() == expected


def test_the_fingerprint_stays_while_the_input_does(folder: Path) -> None:
    write(folder, b"1\n", b"2\n")
    (folder / "other.log").write_bytes(b"3\n")
    before = TextFiles("*.txt").fingerprint()
    (folder / "other.log").write_bytes(b"4\n")
    assert TextFiles("*.txt", "7", encoding_errors="replace").fingerprint() == before


@pytest.mark.parametrize(
    "alter",
    [
        lambda folder: (folder / "0.txt").write_bytes(b"X\n"),
        lambda folder: (folder / "0.txt").write_bytes(b"1\n1"),
        lambda folder: (folder / "0.txt").write_bytes(b"1" * 4096 + b"\n"),
        lambda folder: (folder / "2.txt").write_bytes(b""),
        lambda folder: (folder / "1.txt").unlink(),
        lambda folder: (folder / "1.txt").rename(folder / "3.txt"),
        lambda folder: ((folder / "0.txt").write_bytes(b"2\n"), (folder / "1.txt").write_bytes(b"1\n")),
    ],
    ids=["content", "size", "more than the head", "one more", "one less", "a name", "order"],
)
def test_the_fingerprint_changes_with_the_input(folder: Path, alter: Callable[[Path], Any]) -> None:
    write(folder, b"1\n", b"2\n")
    before = TextFiles("*.txt").fingerprint()
    alter(folder)
    assert TextFiles("*.txt").fingerprint() != before


def test_the_fingerprint_changes_with_sizes_beyond_the_head_and_with_patterns_that_are_not_shown(folder):
    write(folder, b"1" * 5000, b"1" * 6000)
    before = TextFiles("*.txt").fingerprint()
    write(folder, b"1" * 6000, b"1" * 5000)
    assert TextFiles("*.txt").fingerprint() != before
    assert TextFiles("0.txt").fingerprint() != TextFiles("[0].txt").fingerprint()
    assert TextFiles(["?.txt"] * 4).fingerprint() != TextFiles(["?.txt"] * 3 + ["0.txt"]).fingerprint()


def test_the_constructor_reads_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, b"1\n")

    def refuse(*_: Any) -> Any:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(local_store, "LocalFile", refuse)
    TextFiles("*.txt")


def test_a_spec_is_shipped_small_and_works_where_it_arrives(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, *[b"1\n"] * 200)
    packed = pickle.dumps(TextFiles("*.txt", "500", encoding_errors="replace"))
    monkeypatch.chdir("/")
    arrived = pickle.loads(packed)
    assert len(packed) < 1500
    assert {arrived.records_per_batch, *(TextFiles(__file__, given).records_per_batch for given in (500, " 500 "))} == {
        500
    }
    assert arrived.patterns == ("*.txt",)
    assert all_lines(arrived) == ["1"] * 200


NO_PATTERNS: tuple[Any, ...] = (None, 3, [], {"*.txt"})
REFUSED = {
    **{
        f"lines_per_batch {given!r}": wrongly(TextFiles, "*", given)
        for given in (0, -1, "0", "-5", "many", "", "1.5", 1.5, True, None)
    },
    "encoding_errors": wrongly(TextFiles, "*", encoding_errors="ignore"),
    **{f"pattern {given!r}": wrongly(TextFiles, given) for given in NO_PATTERNS},
    **{f"a pattern {given!r} of several": wrongly(TextFiles, [given]) for given in ("", "a\0b", 3, b"a")},
}


def test_what_is_no_batch_size_policy_or_pattern_is_refused():
    approved(refusals(REFUSED, TopologyError), "text-files-arguments")
