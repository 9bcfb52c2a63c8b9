"""Text that is not UTF-8 is read exactly, in encodings of one byte a character, or refused with the remedy."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from coordinator.sources import CsvFiles, TextFiles
from state import SourceError, TopologyError
from tests.support.sources.reading import cut, read, rows_of

LINES = ["é €", "", "a,b", "ß"]


@pytest.mark.parametrize("encoding", ["cp1252", "L9", "iso8859-15", "windows-1252"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_are_read_in_their_encoding(tmp_path: Path, encoding: str, ending: str, pack: Any) -> None:
    (tmp_path / "a.txt").write_bytes(pack(ending.join(LINES).encode(encoding)))
    source = TextFiles(str(tmp_path / "a.txt"), 3, encoding=encoding)
    assert rows_of(source) == [[line] for line in LINES]
    source = TextFiles(str(tmp_path / "a.txt"), 3, encoding=encoding, with_origin=["offset"])
    end = len(ending)
    assert [row[1] for row in rows_of(source)] == [0, 3 + end, 3 + 2 * end, 6 + 3 * end]


def test_every_byte_of_an_encoding_is_its_character(tmp_path: Path) -> None:
    content = bytes(byte for byte in range(256) if byte not in b"\r\n")
    for encoding in ("latin-1", "cp437", "koi8-r", "iso8859-5", "mac-roman"):
        (tmp_path / "a.txt").write_bytes(content)
        assert rows_of(TextFiles(str(tmp_path / "a.txt"), encoding=encoding)) == [[content.decode(encoding)]]


def test_rows_and_headers_are_read_in_their_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes('preis;größe\r\n1 €;"é\nä"\r\n'.encode("cp1252"))
    source = CsvFiles(str(tmp_path / "a.csv"), ["größe", "preis"], encoding="cp1252", options={"delimiter": ";"})
    assert rows_of(source) == [["é\nä", "1 €"]]


@pytest.mark.parametrize("encoding", ["cp1252", "iso8859-7"])  # 0xd2 0xae would be UTF-8
def test_a_byte_that_the_encoding_does_not_have_makes_a_bad_record(tmp_path: Path, encoding: str) -> None:
    content = {"cp1252": b"\x81", "iso8859-7": b"\xd2\xae"}[encoding]
    (tmp_path / "a.txt").write_bytes(b"a\n" + content + b"\nb\n")
    skipping = TextFiles(str(tmp_path / "a.txt"), encoding=encoding, on_bad_record="skip")
    assert rows_of(skipping) == [["a"], ["b"]]
    replaced = rows_of(TextFiles(str(tmp_path / "a.txt"), encoding=encoding, encoding_errors="replace"))
    assert [set(row[0]) for row in replaced] == [{"a"}, {"\ufffd"}, {"b"}]


def test_text_in_another_encoding_is_told_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("n\né\n".encode("cp1252"))
    for source in (TextFiles(str(tmp_path / "a.csv")), CsvFiles(str(tmp_path / "a.csv"), ["n"])):
        with pytest.raises(SourceError, match=r"is not valid UTF-8: .*name that, such as encoding='cp1252'"):
            read(source, cut(source))
    (tmp_path / "a.csv").write_bytes("n,é\n1,2\n".encode("cp1252"))
    with pytest.raises(SourceError, match=r"cannot be the header for .*name that, such as encoding='cp1252'"):
        cut(CsvFiles(str(tmp_path / "a.csv"), ["n"]))


WIDE = ["utf-16", "utf-7", "gbk", "shift_jis", "euc-jp", "cp037", "rot13", "hex", "iso2022_jp", "utf-32", "hz"]


@pytest.mark.parametrize("encoding", ["nosuch", 7, *WIDE])
def test_an_encoding_whose_lines_cannot_be_told_is_refused(tmp_path: Path, encoding: Any) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    for make in (TextFiles, lambda path, **more: CsvFiles(path, ["a"], **more)):
        with pytest.raises(TopologyError, match="is not a single-byte encoding of Python's"):
            make(str(tmp_path / "a.txt"), encoding=encoding)


def test_a_mark_of_utf_8_does_not_go_with_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\n")
    assert rows_of(TextFiles(str(tmp_path / "a.txt"), encoding="utf-8-sig")) == [["a"]]
    with pytest.raises(TopologyError, match="is UTF-8 by its byte order mark: read it without encoding='cp1252'"):
        TextFiles(str(tmp_path / "a.txt"), encoding="cp1252").find_input()
