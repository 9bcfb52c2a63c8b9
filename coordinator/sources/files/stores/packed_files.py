"""Detects by its first bytes what a file holds: text, compressed data, an archive, a table, UTF-16 or UTF-32.

Decoded as UTF-8, such a file is "invalid in line 1", and the usual advice, to replace invalid bytes, would count
garbage.
"""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from pathlib import Path

HEAD_BYTES = 512
PARQUET = b"PAR1"

_PACKED: tuple[tuple[bytes, str, str], ...] = (
    (b"BZh", "compressed with bzip2", "bunzip2 --keep"),
    (b"\xfd7zXZ\x00", "compressed with xz", "unxz --keep"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "unlz4"),
    (b"PK\x03\x04", "a zip archive", "unzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x"),
    (b"\x1f\x9d", "compressed with compress", "uncompress"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with snappy", "snzip -d -k"),
)
_TABLES = (
    (PARQUET, "Parquet table, and text is expected: read it with ParquetFiles"),
    (b"Obj\x01", "table of Avro, and text is expected: write it as lines of JSON"),
    (b"ARROW1\x00\x00", "table of Arrow, and text is expected: write it as Parquet"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "file of Excel, and text is expected: save it as CSV"),
    (b"SQLite format 3\x00", "database of SQLite, and text is expected: write the table as CSV"),
)
_TAR_AT, _TAR = 257, b"ustar"
_BZIP2_BLOCK = b"1AY&SY"
_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}
_UNMARKED = (("UTF-32BE", 4, 3), ("UTF-32LE", 4, 0), ("UTF-16BE", 2, 1), ("UTF-16LE", 2, 0))
"""Encoding, bytes per character, and the index of the byte that is not zero in ASCII letters."""
_LETTERS_BYTES = 16


def head_of(path: str) -> bytes:
    """Returns the first bytes of a local file; none if it cannot be read, which its reader will report."""
    try:
        with Path(path).open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def not_text(path: str, head: bytes) -> str:
    """Returns why a file is not text, by its first bytes, and how to convert it; "" if it may be text, gzip or zstd."""
    for magic, what, command in _PACKED:
        if head.startswith(magic) and (magic != b"BZh" or head[4:10] == _BZIP2_BLOCK):
            return (
                f"input file {path!r} is {what}, and lines are read from plain text, gzip and zstd: unpack it first "
                f"({command} FILE), and give the file that comes out"
            )
    if head.startswith(_TAR, _TAR_AT):
        return (
            f"input file {path!r} is a tar archive, and lines are read from plain files: unpack it first (tar xf FILE)"
        )
    if wide := _wide_encoding(head):
        name, by = wide
        return (
            f"input file {path!r} is {name[:6]} by {by}, and text is read as UTF-8: convert it first "
            f"(iconv -f {name} -t UTF-8 FILE), and give the file that comes out"
        )
    return next((f"input file {path!r} is a {what}" for magic, what in _TABLES if head.startswith(magic)), "")


def _wide_encoding(head: bytes) -> tuple[str, str] | None:
    """Returns a UTF-16 or UTF-32 encoding and its evidence: a byte order mark, or zeros around the first letters."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name, "its byte order mark"
    start = head[:_LETTERS_BYTES]
    for name, width, letter in _UNMARKED:
        if len(start) >= 4 and all((at % width == letter) == bool(byte) for at, byte in enumerate(start)):
            return name, "its zeros"
    return None
