"""One input file, open for reading; whatever is wrong with it is said in a sentence.

Files change under a running job: they are moved, cut short, rotated, replaced by folders. Each of
these is a `SourceError` that names the file, what was found and what to do; none is a traceback.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeAlias

from state.errors import SourceError

FileStamp: TypeAlias = tuple[int, ...]
"""Size, time of the last change of content and of anything, both in ns, and inode: equal if nobody touched the file."""

NO_STAMP: FileStamp = (0, 0, 0, 0)
"""Of a file that was changed a moment ago: it may change once more without getting another time."""

RECENT_NS = 2_000_000_000

FAULT = "txbatch only reads its input, so something else did this"


class InputFile:
    """A regular file whose bytes are read by position.

    Args:
        path: absolute path.
        topology_id: for the remedy in messages.
        clock_ns: time of day, as the file system tells it.

    Attributes:
        path: as given.
        byte_count: size when it was opened.
        stamp: what the file system told of it then.

    Raises:
        SourceError: there is no such file, it is no regular file, or it may not be read.
    """

    def __init__(self, path: str, topology_id: str, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.path = path
        self._topology_id = topology_id
        with self._explained():
            # asked before it is opened: opening a pipe would wait for somebody to write into it
            mode = Path(path).stat().st_mode
            if not stat.S_ISREG(mode):
                kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
                raise SourceError(
                    f"input file {path!r} is {kind} now; it was a file when the input was listed, and "
                    f"{FAULT}: {self._remedy()}"
                )
            self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by `close`
            found = os.fstat(self._file.fileno())
            self.byte_count = found.st_size
            self.stamp = _stamp_of(found, clock_ns())

    def read(self, start: int, end: int) -> bytes:
        """Returns exactly the bytes from `start` up to `end`.

        Raises:
            SourceError: the file has become shorter than that, or cannot be read.
        """
        pieces = []
        position = start
        with self._explained():
            while position < end:
                piece = os.pread(self._file.fileno(), end - position, position)
                if not piece:
                    self._fail_shrunk(start, end)
                pieces.append(piece)
                position += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def fail_changed(self, start: int, end: int, *, expected_digest: int, found_digest: int) -> NoReturn:
        """Raises what is to be said when bytes that were cut are no longer the same."""
        raise SourceError(
            f"input file {self.path!r} has changed: bytes {start} to {end} were cut into a transaction with "
            f"digest {expected_digest:016x} and have digest {found_digest:016x} now (the file has "
            f"{self._current_byte_count()} bytes); {FAULT}: {self._remedy()}"
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _fail_shrunk(self, start: int, end: int) -> NoReturn:
        raise SourceError(
            f"input file {self.path!r} has shrunk: bytes {start} to {end} of it are needed, it has "
            f"{self._current_byte_count()} bytes now; {FAULT}: {self._remedy()}"
        )

    def _current_byte_count(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _remedy(self) -> str:
        return (
            "put the file back as it was and run again, or start over with the files as they are by "
            f"`txbatch drop {self._topology_id}`"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SourceError(
                f"input file {self.path!r} is missing; it was there when the input was listed. Either it was "
                f"moved or deleted ({FAULT}), or this machine does not see the folder of the one that listed "
                f"it: {self._remedy()}"
            ) from error
        except PermissionError as error:
            raise SourceError(
                f"input file {self.path!r} may not be read by user id {os.geteuid()}: {error.strerror}; "
                "give that user read permission on the file and its folders and run again"
            ) from error
        except OSError as error:
            raise SourceError(
                f"input file {self.path!r} cannot be read: {error.strerror or error}; the file system or the "
                "disk below it refuses: mend that and run again"
            ) from error


def _stamp_of(found: os.stat_result, now_ns: int) -> FileStamp:
    if max(found.st_mtime_ns, found.st_ctime_ns) > now_ns - RECENT_NS:
        return NO_STAMP
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
