"""Files that hold no plain text are told by what they are, and with how to make text of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from coordinator.sources import TextFiles
from state import SourceError, TopologyError
from tests.support.sources.reading import rows_of

TEXT = b"to be\nor not to be\n" * 50


def zipped() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.txt", TEXT)
    return made.getvalue()


def archived(mode: str = "w") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("a.txt")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return made.getvalue()


CONVERT = ", and text is read as UTF-8: convert it first (iconv -f UTF-"
PACKED = {
    "bzip2": (
        bz2.compress(TEXT),
        "compressed with bzip2, and lines are read from plain text, gzip and zstd: unpack it",
    ),
    "xz": (lzma.compress(TEXT), "compressed with xz"),
    "zip": (zipped(), "a zip archive"),
    "utf-16": ("to be\n".encode("utf-16"), "UTF-16 by its byte order mark"),
    "utf-16-le": ("to be\n".encode("utf-16-le"), f"UTF-16 by its zeros{CONVERT}16"),
    "utf-16-be": ("1\n".encode("utf-16-be"), f"UTF-16 by its zeros{CONVERT}16"),
    "parquet": (b"PAR1" + b"\x15\x04", "a Parquet table"),
    "compress": (b"\x1f\x9d\x90", "compressed with compress"),
    "7z": (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    "snappy": (b"\xff\x06\x00\x00sNaPpY", "compressed with snappy"),
    "avro": (b"Obj\x01\n", "a table of Avro, and text is expected: write it as lines of JSON"),
    "arrow": (b"ARROW1\x00\x00\n", "a table of Arrow"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a file of Excel"),
    "tar": (archived(), "a tar archive, and lines are read from plain files: unpack it first (tar xf FILE)"),
    "sqlite": (b"SQLite format 3\x00\x10", "a database of SQLite"),
    "utf-32": ("to be\n".encode("utf-32"), f"UTF-32 by its byte order mark{CONVERT}32 -t"),
    "utf-32-be": ("to be\n".encode("utf-32-be"), f"UTF-32 by its zeros{CONVERT.removesuffix(' UTF-')}"),
    "utf-32-le": ("1\n".encode("utf-32-le"), "UTF-32 by its zeros"),
}


@pytest.mark.parametrize("encoding_errors", ["strict", "replace"])
@pytest.mark.parametrize(("content", "sentence"), PACKED.values(), ids=PACKED)
def test_a_file_that_holds_no_text_is_refused(tmp_path: Path, content: bytes, sentence: str, encoding_errors) -> None:
    (tmp_path / "a.txt").write_text("sound\n")
    (tmp_path / "b.txt").write_bytes(content)
    with pytest.raises(TopologyError) as refused:
        TextFiles(str(tmp_path / "*.txt"), encoding_errors=encoding_errors).find_input()
    assert f"input file '{tmp_path / 'b.txt'}' is {sentence}" in str(refused.value)


@pytest.mark.parametrize(
    "content", [archived("w:gz"), gzip.compress("to be\n".encode("utf-16"))], ids=["tar.gz", "utf-16"]
)
def test_what_a_packed_file_holds_is_told_too(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.txt.gz").write_bytes(content)
    source = TextFiles(str(tmp_path / "a.txt.gz"), on_bad_record="skip")
    with pytest.raises(SourceError, match=r"a\.txt\.gz' is (a tar archive|UTF-16)"):
        rows_of(source)


@pytest.mark.parametrize("text", ["BZh is how it begins\n", "PK\n", "\ufeffwith a mark\n", "", "a\0b\0\0\n", "\0\0"])
def test_text_that_only_looks_alike_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert TextFiles(str(tmp_path / "a.txt")).paths() == (str(tmp_path / "a.txt"),)
