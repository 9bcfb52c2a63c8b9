"""A digest of a file's beginning that can be continued later, wherever a transaction ended.

The digest of a whole block begins with the digest before it; bytes after the last whole block are hashed on top. So a
run that continues reads one block again, not the file, and a later check need not know where transactions ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.sources.files.stores.input_file import FileStamp, InputFile
from state.errors import SourceError
from state.troubles import Trouble

PREFIX_BLOCK_BYTES = 1024 * 1024
DIGEST_BYTES = 8
_LEFT = -1


@dataclass(frozen=True, slots=True)
class PrefixMark:
    """The record of the beginning of a file, as far as it was read.

    Attributes:
        end: how many bytes were read.
        base: digest of the whole blocks among them.
        digest: digest of all of them.
        stamp: the file's metadata when it was opened.
        is_whole: whether the file ended there.
        record_count: how many records were read; stored for whole files, so that a grown one can be read further. None
            if unknown, as in notes of earlier versions.
    """

    end: int
    base: int
    digest: int
    stamp: FileStamp
    is_whole: bool = False
    record_count: int | None = None

    @classmethod
    def from_plain(cls, plain: Any) -> PrefixMark | None:
        """Restores a mark from `to_plain`; returns None for any other data."""
        count: int | None = None
        match plain:
            case [*_, bool(), int(found)] if not isinstance(found, bool):
                plain, count = plain[:-1], found
        match plain:
            case [int(end), int(base), int(digest), int(), int(), int(), int(), *looked, bool(is_whole)]:
                if len(looked) <= 1 and all(isinstance(each, int) for each in looked):
                    return cls(end, base, digest, tuple(plain[3:-1]), is_whole, count)
        return None

    def to_plain(self) -> list[Any]:
        """Returns the mark as plain data, to be stored."""
        counted = [] if self.record_count is None else [self.record_count]
        return [self.end, self.base, self.digest, *self.stamp, self.is_whole, *counted]

    def left(self) -> PrefixMark:
        """Returns the mark of a file that the user leaves as it is: it is neither read further nor removed."""
        return replace(self, record_count=_LEFT)

    @property
    def is_left(self) -> bool:
        """Whether the user leaves the file as it is, see `left`."""
        return self.record_count == _LEFT

    def made_up_name(self, path: str) -> str:
        """Returns a placeholder name for a file whose path another file has taken, until it is found again."""
        return f"{path}~{self.digest:016x}"

    def is_made_up(self, name: str) -> bool:
        """Returns whether a name was made up for this content."""
        return name.endswith(f"~{self.digest:016x}")


def noted(notes: Mapping[str, Any], topology_id: str) -> dict[str, PrefixMark]:
    """Restores a coordinator's notes about files.

    Raises:
        SourceError: a note is not about a file.
    """
    found = {}
    for path, plain in notes.items():
        note = PrefixMark.from_plain(plain)
        if note is None:
            raise SourceError(
                f"stored note {plain!r} of file {path!r} is not one of files: the topology was run with another "
                f"kind of source or an earlier version before; drop it by `txbatch drop {topology_id}`, or take "
                "another topology id"
            ).about(Trouble.OTHER_SOURCE)
        found[path] = note
    return found


class PrefixDigest:
    """Takes a file's bytes in order, and has the digest of all of them at any time.

    Args:
        base: digest of the whole blocks that came before.
        end: length of those blocks in bytes.
    """

    def __init__(self, base: int = 0, end: int = 0) -> None:
        assert end % PREFIX_BLOCK_BYTES == 0, "begins with a block"
        self._begin_block(base)
        self.end = end

    def update(self, content: bytes | memoryview) -> None:
        """Adds the bytes that follow."""
        rest = memoryview(content)
        while rest:
            room = PREFIX_BLOCK_BYTES - self.end % PREFIX_BLOCK_BYTES
            piece, rest = rest[:room], rest[room:]
            self._block.update(piece)
            self.end += len(piece)
            if len(piece) == room:
                self._begin_block(short_digest(self._block))

    def mark(self, stamp: FileStamp, *, is_whole: bool = False) -> PrefixMark:
        """Returns the mark of the bytes so far."""
        return PrefixMark(self.end, self._base, short_digest(self._block), stamp, is_whole)

    def _begin_block(self, base: int) -> None:
        self._base = base
        self._block = hashlib.sha256(b"%016x" % base)


def resumed_digest(file: InputFile, mark: PrefixMark) -> PrefixDigest:
    """Returns the digest at a mark, to be continued; reads the bytes between the last whole block and the mark.

    Raises:
        SourceError: these bytes have changed, or cannot be read.
    """
    start = mark.end - mark.end % PREFIX_BLOCK_BYTES
    digest = PrefixDigest(mark.base, start)
    digest.update(file.read(start, mark.end))
    found = digest.mark(file.stamp)
    if found.digest != mark.digest:
        file.fail_changed(start, mark.end, expected_digest=mark.digest, found_digest=found.digest)
    return digest


def holds(file: InputFile, mark: PrefixMark) -> bool:
    """Returns whether a file still has the last bytes up to a mark; raises SourceError if it cannot be read."""
    start = mark.end - mark.end % PREFIX_BLOCK_BYTES
    digest = PrefixDigest(mark.base, start)
    digest.update(file.read_up_to(start, mark.end))
    return digest.mark(file.stamp).digest == mark.digest


def marks_at(file: InputFile, ends: set[int]) -> dict[int, PrefixMark]:
    """Returns the marks of a file at several lengths, in one pass; lengths beyond its end are left out.

    Raises:
        SourceError: the file cannot be read.
    """
    digest, marks = PrefixDigest(), {}
    for end in sorted(ends):
        if _read_on(file, digest, end):
            marks[end] = digest.mark(file.stamp)
    return marks


def whole_mark(file: InputFile) -> PrefixMark:
    """Returns the mark of everything in a file.

    Raises:
        SourceError: the file cannot be read.
    """
    digest = PrefixDigest()
    _read_on(file, digest, None)
    return digest.mark(file.stamp, is_whole=True)


def _read_on(file: InputFile, digest: PrefixDigest, end: int | None) -> bool:
    """Reads up to an offset, or to the end of the file; False if the file ends before."""
    while end is None or digest.end < end:
        wanted = PREFIX_BLOCK_BYTES if end is None else min(PREFIX_BLOCK_BYTES, end - digest.end)
        piece = file.read_up_to(digest.end, digest.end + wanted)
        digest.update(piece)
        if not piece:
            return False
    return True


def short_digest(hasher: Any) -> int:
    """Returns the first 64 bits of a SHA-256, which hardware computes twice as fast as Python's BLAKE2."""
    return int.from_bytes(hasher.digest()[:DIGEST_BYTES], "big")
