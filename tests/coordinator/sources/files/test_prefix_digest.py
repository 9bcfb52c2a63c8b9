"""The digest of a file's beginning: of the bytes alone, however they arrived and wherever it was carried on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.sources.files import prefix_digest
from coordinator.sources.files.prefix_digest import PrefixDigest, PrefixMark, marks_at, resumed_digest
from coordinator.sources.files.record_ranges import RecordRange, with_last_marks
from coordinator.sources.files.record_scanner import RecordScanner, after_lines
from coordinator.sources.files.stores.local_store import LocalFile
from state import SourceError

BLOCK = 16
STAMP = (1, 2, 3, 4)


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks so small that a test meets their borders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_digest, "PREFIX_BLOCK_BYTES", BLOCK)
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "file.txt"


def mark_of(content: bytes) -> PrefixMark:
    digest = PrefixDigest()
    digest.update(content)
    return digest.mark(STAMP)


@given(st.lists(st.binary(max_size=3 * BLOCK), max_size=6))
def test_it_does_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    digest = PrefixDigest()
    for piece in pieces:
        digest.update(piece)
    assert digest.mark(STAMP) == mark_of(b"".join(pieces))


@given(st.binary(max_size=4 * BLOCK), st.data())
def test_it_is_carried_on_from_any_mark(path: Path, content: bytes, data: st.DataObject) -> None:
    path.write_bytes(content)
    end = data.draw(st.integers(0, len(content)))
    with closing(LocalFile(str(path), "test")) as file:
        digest = resumed_digest(file, mark_of(content[:end]))
        digest.update(content[end:])
        marks = marks_at(file, {0, end, len(content), len(content) + 1})
    whole = mark_of(content)
    assert digest.mark(STAMP) == whole
    assert {length: mark.digest for length, mark in marks.items()} == {
        0: mark_of(b"").digest,
        end: mark_of(content[:end]).digest,
        len(content): whole.digest,
    }


@given(st.binary(min_size=1, max_size=4 * BLOCK), st.data())
def test_any_other_byte_is_another_digest(content: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    other = bytearray(content)
    other[place] ^= data.draw(st.integers(1, 255))
    assert mark_of(bytes(other)).digest != mark_of(content).digest


def test_a_file_that_changed_in_the_block_of_the_mark_is_not_carried_on(path: Path) -> None:
    path.write_bytes(b"x" * 40)
    mark = mark_of(b"x" * 40)
    path.write_bytes(b"x" * 33 + b"y" * 7)
    with (
        closing(LocalFile(str(path), "test")) as file,
        pytest.raises(SourceError, match="has changed: bytes 32 to 40 were cut into a transaction with digest"),
    ):
        resumed_digest(file, mark)


@given(st.lists(st.sampled_from(["a\n", "bb\n", "\n", "c" * 40 + "\n"]), min_size=1, max_size=30), st.integers(1, 5))
def test_a_scanner_marks_what_it_has_cut(path: Path, lines: list[str], line_limit: int) -> None:
    content = "".join(lines).encode()
    path.write_bytes(content)
    with closing(LocalFile(str(path), "test")) as file:
        scanner = RecordScanner(file, 0, len(content), find=after_lines, block_bytes=24)
        while not scanner.is_done():
            cut = scanner.take(line_limit)
            assert cut.mark is not None
            assert cut.mark.digest == mark_of(content[: cut.end]).digest
            assert RecordRange.from_plain(cut.to_plain()) == cut
            scanner = RecordScanner(
                file, cut.end, len(content), find=after_lines, block_bytes=24, prefix=resumed_digest(file, cut.mark)
            )


def test_only_the_last_range_of_each_file_keeps_its_mark() -> None:
    mark = mark_of(b"")
    ranges = [RecordRange(path, start, start + 1, start, 1, 0, (), mark) for path in "ab" for start in range(3)]
    assert [each.mark is mark for each in with_last_marks(ranges)] == [False, False, True] * 2


@pytest.mark.parametrize("plain", [None, 3, [], [1, 2, 3], ["1", 2, 3, 4, 5, 6, 7], [1] * 8, [1] * 7])
def test_what_is_no_mark_is_none(plain: object) -> None:
    assert PrefixMark.from_plain(plain) is None
