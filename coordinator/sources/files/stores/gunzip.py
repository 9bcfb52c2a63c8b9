"""Unpacks gzip in large pieces; the standard library's file object takes 8 KB at a time, which is a third slower."""

from __future__ import annotations

import zlib
from typing import IO

STORED_PIECE_BYTES = 256 * 1024
_WITH_HEADER = 16 + zlib.MAX_WBITS


class Gunzip:
    """A stream of what a gzip stream unpacks to, over several members and their padding.

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
            zlib.error: it is damaged, or something else follows the last member.
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
        """Whether another member follows; zeros in between are padding."""
        self._stored = self._stored.lstrip(b"\0")
        while not self._stored:
            self._stored = self._stream.read(STORED_PIECE_BYTES)
            if not self._stored:
                return False
            self._stored = self._stored.lstrip(b"\0")
        self._inflate = zlib.decompressobj(_WITH_HEADER)
        return True
