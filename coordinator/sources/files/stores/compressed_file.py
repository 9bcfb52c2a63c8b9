"""A compressed file, read as its unpacked content.

Positions are those of the unpacked content, so a large file is cut into transactions like any other, and a replay
reads the same content at the same offset. Neither gzip nor zstd can be entered in the middle, so getting to an
offset means unpacking everything before it. That is why an unpacker is kept when it is closed, in the worker's
process: the next wave continues where the last one ended. A replay of an earlier range unpacks the file from its start.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NoReturn

from coordinator.sources.files.stores.arrow_streams import unzstd
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import FileStamp, InputFile, is_settled
from coordinator.sources.files.stores.packed_files import HEAD_BYTES
from state.errors import SourceError

GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
"""After a byte from 0x50 to 0x5f: a frame without content, with which parallel zstd begins a file."""
PIECE_BYTES = 1024 * 1024
STORED_PIECE_BYTES = 256 * 1024
_WITH_HEADER = 16 + zlib.MAX_WBITS
KEPT_FILES = 4
"""How many unpackers a process keeps, the last ones used; each holds a file open and at most a few megabytes."""

_KEPT: dict[tuple[str, FileStamp, str], CompressedFile] = {}
"""Private to this process: a worker has one thread that reads, and a forked worker has its own copy."""


def open_content(store: FileStore, path: str) -> InputFile:
    """Opens the content of a file, unpacked if its first bytes are those of gzip or zstd (driver and executor).

    Raises:
        SourceError: the file cannot be opened or read.
    """
    file = store.open(path)
    try:
        head = file.read_up_to(0, HEAD_BYTES)
        if not head.startswith(GZIP) and not _is_zstd(head):
            return file
        kept = _KEPT.pop((path, file.stamp, store.topology_id), None)
        if kept is not None:
            file.close()
            return kept
        return CompressedFile(file, is_gzip=head.startswith(GZIP))
    except BaseException:
        file.close()
        raise


def _is_zstd(head: bytes) -> bool:
    return head.startswith(_ZSTD) or (head[1:4] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F)


def close_kept() -> None:
    """Closes the unpackers that this process keeps; for tests, and before files are deleted."""
    while _KEPT:
        _KEPT.popitem()[1].let_go()


class CompressedFile(InputFile):
    """The content of a file compressed by gzip or zstd.

    Args:
        stored: the compressed file; closed with this one.
        is_gzip: whether it is gzip; otherwise it is zstd, which needs pyarrow.
    """

    is_compressed = True

    def __init__(self, stored: InputFile, *, is_gzip: bool) -> None:
        super().__init__(stored.path, stored.topology_id)
        self._stored = stored
        self._is_gzip = is_gzip
        self.stamp, self.stored_bytes = stored.stamp, stored.stored_bytes
        self._byte_count: int | None = None
        self._rewind()

    @property
    def stored(self) -> InputFile:
        return self._stored

    @property
    def byte_count(self) -> int:
        if self._byte_count is None:
            while self._unpack(PIECE_BYTES):
                pass  # bounded by the content
            self._byte_count = self._position
        return self._byte_count

    def read_up_to(self, start: int, end: int) -> bytes:
        if start < self._position:
            self._rewind()
        while self._position < start:
            if not self._unpack(min(PIECE_BYTES, start - self._position)):
                return b""
        pieces = []
        missing = end - start
        while missing and (piece := self._unpack(missing)):
            pieces.append(piece)
            missing -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Keeps the unpacker for the next reader of the unchanged file in this process, or closes it."""
        if not is_settled(self.stamp):
            self.let_go()
            return
        key = self.path, self.stamp, self.topology_id
        other = _KEPT.pop(key, None)
        _KEPT[key] = self
        oldest = next(iter(_KEPT)) if len(_KEPT) > KEPT_FILES else None
        for each in (other, _KEPT.pop(oldest) if oldest else None):
            if each is not None:
                each.let_go()

    def let_go(self) -> None:
        """Closes the file for good."""
        self._stored.close()

    def _rewind(self) -> None:
        self._position = 0
        stream: Any = _StoredBytes(self._stored)
        with self._explained():
            self._unpacker: Any = Gunzip(stream) if self._is_gzip else _zstd(stream, self.path)

    def _unpack(self, most: int) -> bytes:
        with self._explained():
            piece: bytes = self._unpacker.read(most)
        self._position += len(piece)
        return piece

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, OSError) as error:
            self._fail_damaged(error)

    def _fail_damaged(self, error: Exception) -> NoReturn:
        kind = "gzip" if self._is_gzip else "zstd"
        raise SourceError(
            f"input file {self.path!r} is compressed with {kind} and cannot be unpacked beyond byte {self._position} "
            f"of its content: {error}; it is damaged, or was cut short while it was copied: {self.remedy()}"
        ) from error


class _StoredBytes(io.RawIOBase):
    """A stored file as a stream from its beginning, for unpackers."""

    def __init__(self, stored: InputFile) -> None:
        super().__init__()
        self._stored, self._offset = stored, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stored.read_up_to(self._offset, self._offset + len(buffer))
        buffer[: len(piece)] = piece
        self._offset += len(piece)
        return len(piece)


class Gunzip:
    """A stream of the unpacked content of a gzip stream, across several members and their padding.

    It reads large pieces; the standard library's file object reads 8 KB at a time, which is a third slower.

    Args:
        stream: the stored bytes, from the beginning.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._inflate = zlib.decompressobj(_WITH_HEADER)
        self._stored = b""

    def read(self, most: int) -> bytes:
        """Returns up to `most` bytes; none at the end.

        Raises:
            EOFError: the stream ends within a member.
            zlib.error: the stream is damaged, or something else follows the last member.
        """
        while True:  # bounded: every turn takes stored bytes
            if self._inflate.eof and not self._next_member():
                return b""
            if not self._stored:
                self._stored = self._stream.read(STORED_PIECE_BYTES)
                if not self._stored:
                    raise EOFError("it ends within a compressed stream")
            piece = self._inflate.decompress(self._stored, most)
            self._stored = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if piece:
                return piece

    def _next_member(self) -> bool:
        """Returns whether another member follows; zeros in between are padding."""
        self._stored = self._stored.lstrip(b"\0")
        while not self._stored:
            self._stored = self._stream.read(STORED_PIECE_BYTES)
            if not self._stored:
                return False
            self._stored = self._stored.lstrip(b"\0")
        self._inflate = zlib.decompressobj(_WITH_HEADER)
        return True


def _zstd(stream: Any, path: str) -> Any:
    return unzstd(io.BufferedReader(stream, PIECE_BYTES), path)
