"""Compressed files are read as what they unpack to; what is damaged is named; unpackers resume where they stopped."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator import FormerInput
from coordinator.sources import TextFiles
from coordinator.sources.files.stores import compressed_file, input_file
from coordinator.sources.files.stores.compressed_file import CompressedFile, Gunzip, close_kept, open_content
from coordinator.sources.files.stores.local_store import LocalStore
from state import SourceError
from tests.support.sources.file_worlds import zstd
from tests.support.sources.reading import context, cut, read, rows_of

PACKERS = pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
TEXT = b"".join(b"line %d\n" % number for number in range(2000))


@pytest.fixture(autouse=True)
def old_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files count as written long ago, so that they are known again by their stamps."""
    monkeypatch.setattr(input_file, "RECENT_NS", -(10**12))
    yield
    close_kept()


def opened(path: Path) -> Any:
    return open_content(LocalStore("/").of("letters"), str(path))


@PACKERS
@settings(max_examples=30)
@given(data=st.data())
def test_content_is_read_by_position(tmp_path_factory: pytest.TempPathFactory, pack: Any, data: st.DataObject) -> None:
    members = data.draw(st.lists(st.binary(max_size=200), min_size=1, max_size=4))
    content = b"".join(members)
    path = tmp_path_factory.mktemp("packed") / "a"
    path.write_bytes(b"".join(map(pack, members)))
    with closing(opened(path)) as file:
        assert isinstance(file, CompressedFile)
        for _ in range(4):
            start = data.draw(st.integers(0, len(content) + 2))
            end = data.draw(st.integers(start, len(content) + 5))
            assert file.read_up_to(start, end) == content[start:end]
        assert file.byte_count == len(content)


SKIPPED = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
"""As parallel zstd begins frames; taken for text, it would be counted as garbage where errors are replaced."""


@pytest.mark.parametrize(
    ("packed", "rows"),
    [
        (gzip.compress(b"a\n") + b"\0" * 9 + gzip.compress(b"b\n") + b"\0" * 600_000, [["a"], ["b"]]),
        (gzip.compress(b""), []),
        (SKIPPED + zstd(b"one\nt") + SKIPPED + zstd(b"wo\n"), [["one"], ["two"]]),
    ],
    ids=["zeros after a member", "nothing but compression", "zstd with frames to be skipped"],
)
def test_what_is_no_content_is_left_out(tmp_path, packed, rows):
    (tmp_path / "a.txt").write_bytes(packed)
    (tmp_path / "b.txt").write_bytes(gzip.compress(b"b"))
    assert rows_of(TextFiles(str(tmp_path / "*.txt"), encoding_errors="replace")) == [*rows, ["b"]]


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_gunzip_gives_what_gzip_gives(most: int) -> None:
    import io

    stream = Gunzip(io.BytesIO(gzip.compress(TEXT) + gzip.compress(b"more")))
    pieces = list(iter(lambda: stream.read(most), b""))
    assert b"".join(pieces) == TEXT + b"more"
    assert max(map(len, pieces)) <= most


@pytest.mark.parametrize(
    ("pack", "damage"),
    [
        (gzip.compress, "cut short"),
        (gzip.compress, "a byte"),
        (gzip.compress, "something after it"),
        (zstd, "cut short"),  # pyarrow writes no checksum, so that of a byte in the middle only our digest tells
        (zstd, "something after it"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, pack: Any, damage: str) -> None:
    path, packed = tmp_path / "a.txt", pack(TEXT)
    middle = len(packed) // 2
    path.write_bytes(
        {
            "cut short": packed[:-20],
            "a byte": packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :],
            "something after it": packed + b"something else",
        }[damage]
    )
    with pytest.raises(SourceError, match=r"a\.txt' is compressed with \w+ and cannot be unpacked beyond byte \d+"):
        cut(TextFiles(str(path)))


@PACKERS
def test_one_pass_unpacks_a_file_once_however_many_waves_read_it(tmp_path, pack, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(pack(TEXT))
    source = TextFiles(str(path), 100)
    batches = cut(source)
    close_kept()
    unpacked: list[int] = []
    unpack = CompressedFile._unpack

    def counting(self: CompressedFile, most: int) -> bytes:
        piece = unpack(self, most)
        unpacked.append(len(piece))
        return piece

    monkeypatch.setattr(CompressedFile, "_unpack", counting)
    rows = [row for metadata in batches for _, row in read(source, [metadata])]  # an emitter for each
    assert [line for (line,) in rows] == TEXT.decode().splitlines()
    assert sum(unpacked) == len(TEXT)
    assert read(source, batches[:1])[0][1] == ["line 0"], "a replay of an earlier one begins the file again"


def test_few_unpackers_are_kept_and_none_of_a_file_that_was_written_a_moment_ago(tmp_path, monkeypatch):
    for number in range(compressed_file.KEPT_FILES + 3):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(gzip.compress(TEXT))
        opened(path).close()
    assert len(compressed_file._KEPT) == compressed_file.KEPT_FILES
    close_kept()
    monkeypatch.setattr(input_file, "RECENT_NS", 10**18)
    opened(path).close()
    assert not compressed_file._KEPT


@PACKERS
def test_a_replay_of_another_content_under_the_same_offsets_is_refused(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(pack(b"1\n2\n"))
    source = TextFiles(str(path))
    batches = cut(source)
    path.write_bytes(pack(b"1\nX\n"))
    with pytest.raises(SourceError, match="has changed: bytes 0 to 4 were cut into a transaction"):
        read(source, batches)


@PACKERS
def test_the_same_content_packed_otherwise_is_the_same_input(tmp_path, pack):
    path = tmp_path / "a.txt"
    path.write_bytes(pack(b"1\n2\n3\n"))
    source = TextFiles(str(path), 2)
    with closing(source.get_coordinator({}, context())) as first:
        last = first.initialize_transaction(1, None)
        notes = first.notes(last)
    path.write_bytes(pack(b"1\n") + pack(b"2\n3\n"))
    again, former = TextFiles(str(path), 2), FormerInput(last_txid=1, last=last, notes=notes)
    change = again.get_coordinator({}, context()).compare(former)
    assert (change.skipped, change.changed, change.impossible) == ((), (), ())
    assert [row for _, row in read(again, cut(again, last))] == [["3"]]


def test_an_unread_file_that_grew_after_the_run_began_is_refused_if_it_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(b"1\n"))
    with closing(TextFiles(str(path)).get_coordinator({}, context())) as coordinator:
        with path.open("ab") as file:
            file.write(gzip.compress(b"2\n"))
        with pytest.raises(SourceError, match="was changed after the run began"):
            coordinator.is_ready()
