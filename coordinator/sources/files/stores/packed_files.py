"""Tells by the first bytes what a file holds: text, something compressed, an archive, a table, UTF-16.

Decoded as UTF-8 such a file is "invalid in line 1", and the advice for that, to replace what is wrong, would count
garbage.
"""

from __future__ import annotations

from pathlib import Path

HEAD_BYTES = 16
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
)
_BZIP2_BLOCK = b"1AY&SY"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def head_of(path: str) -> bytes:
    """Returns the first bytes of a local file; none of one that cannot be read, which is left to its reader."""
    try:
        with Path(path).open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def not_text(path: str, head: bytes) -> str:
    """Returns what a file is by its first bytes, and how to make text of it; empty if it may be text, gzip or zstd."""
    for magic, what, command in _PACKED:
        if head.startswith(magic) and (magic != b"BZh" or head[4:10] == _BZIP2_BLOCK):
            return (
                f"input file {path!r} is {what}, and lines are read from plain text, gzip and zstd: unpack it first "
                f"({command} FILE), and give the file that comes out"
            )
    if head.startswith(_UTF_16_MARKS) or (encoding := _utf_16_of(head)):
        by, name = ("its byte order mark", "UTF-16") if head.startswith(_UTF_16_MARKS) else ("its zeros", encoding)
        return (
            f"input file {path!r} is UTF-16 by {by}, and text is read as UTF-8: convert it first "
            f"(iconv -f {name} -t UTF-8 FILE), and give the file that comes out"
        )
    return next((f"input file {path!r} is a {what}" for magic, what in _TABLES if head.startswith(magic)), "")


def _utf_16_of(head: bytes) -> str:
    """Returns the encoding of ASCII letters in UTF-16 without a mark: every other byte is zero, and no other one."""
    halves = head[::2], head[1::2]
    for name, zeros, letters in (("UTF-16BE", *halves), ("UTF-16LE", *halves[::-1])):
        if len(head) >= 4 and not any(zeros) and all(letters):
            return name
    return ""
