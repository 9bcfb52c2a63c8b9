"""Tells files that hold no plain text from their first bytes: compressed ones, archives, tables, UTF-16.

Decoded as UTF-8 such a file is "invalid in line 1", and the advice for that, to replace what is wrong, would count
garbage.
"""

from __future__ import annotations

from pathlib import Path

from state.errors import TopologyError

HEAD_BYTES = 16

_PACKED: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b\x08", "compressed with gzip", "gunzip --keep"),
    (b"BZh", "compressed with bzip2", "bunzip2 --keep"),
    (b"\xfd7zXZ\x00", "compressed with xz", "unxz --keep"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unzstd"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "unlz4"),
    (b"PK\x03\x04", "a zip archive", "unzip"),
)
_BZIP2_BLOCK = b"1AY&SY"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def refuse_packed(path: str) -> None:
    """Refuses a file whose first bytes say that it holds no UTF-8 text; called when files are listed (driver).

    A file that cannot be read is left to its reader.

    Raises:
        TopologyError: what the file is and how to make text of it.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return
    for magic, what, command in _PACKED:
        if head.startswith(magic) and (magic != b"BZh" or head[4:10] == _BZIP2_BLOCK):
            raise TopologyError(
                f"input file {path!r} is {what}, and TextFiles reads plain text: unpack it first ({command} FILE), and "
                "give the file that comes out"
            )
    if head.startswith(_UTF_16_MARKS):
        raise TopologyError(
            f"input file {path!r} is UTF-16 by its byte order mark, and TextFiles reads UTF-8: convert it first "
            "(iconv -f UTF-16 -t UTF-8 FILE), and give the file that comes out"
        )
    if head.startswith(b"PAR1"):
        raise TopologyError(f"input file {path!r} is a Parquet table, and TextFiles reads text: export it as such")
