"""One input file, open for reading; every failure is explained in one sentence.

Files change under a running job: they are moved, cut short, rotated, replaced by folders. Each such
change raises a `SourceError` with the file, the finding and the remedy; none ends in a traceback.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn, TypeAlias

from state.errors import SourceError
from state.troubles import Trouble

FileStamp: TypeAlias = tuple[int, ...]
"""Size, time of the last change of content, time of the last change of any kind, both in ns, and inode: equal if nobody
touched the file. Values that a store does not have are 0. A file that was changed a moment ago may change once more
without getting a new time: its stamp ends with the time of the look, and so equals no other stamp."""

NO_STAMP: FileStamp = (0, 0, 0, 0)
"""The stamp that earlier versions stored for a file that was changed a moment ago."""

RECENT_NS = 2_000_000_000

FAULT = "txbatch only reads its input, so something else did this"


class InputFile(ABC):
    """A file whose bytes are read by position, from the driver and from executors.

    Args:
        path: absolute path, or address.
        topology_id: for the remedy in messages.

    Attributes:
        path: as given.
        stamp: its metadata in the store when it was opened.
        stored_bytes: its size in the store at that time.
        is_compressed: whether positions are those of the unpacked content.
    """

    is_compressed = False
    stamp: FileStamp
    stored_bytes: int

    def __init__(self, path: str, topology_id: str) -> None:
        self.path = path
        self.topology_id = topology_id

    @property
    def stored(self) -> InputFile:
        """The file as it is in the store, not unpacked."""
        return self

    @property
    @abstractmethod
    def byte_count(self) -> int:
        """Size of the content when the file was opened; a compressed file has to be unpacked whole to find it.

        Raises:
            SourceError: the file cannot be read.
        """

    @abstractmethod
    def read_up_to(self, start: int, end: int) -> bytes:
        """Returns the bytes from `start` up to `end`; fewer only where the file ends.

        Raises:
            SourceError: the file cannot be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Closes the file."""

    def read(self, start: int, end: int) -> bytes:
        """Returns exactly the bytes from `start` up to `end`.

        Raises:
            SourceError: the file has become shorter than that, or cannot be read.
        """
        content = self.read_up_to(start, end)
        if len(content) < end - start:
            raise SourceError(
                f"input file {self.path!r} has shrunk: bytes {start} to {end} of it are needed, it has "
                f"{self.current_byte_count()} bytes now; {FAULT}: {self.remedy()}"
            ).about(Trouble.INPUT_CHANGED)
        return content

    def was_touched(self) -> bool:
        """Returns whether the file's metadata has changed since the last call; used for stores without inodes.

        The store is asked again only if something was read since.
        """
        return False

    def current_byte_count(self) -> int:
        """Returns the current size of the content, for messages."""
        return self.byte_count

    def fail_changed(self, start: int, end: int, *, expected_digest: int, found_digest: int) -> NoReturn:
        """Raises the SourceError for bytes that have changed since they were cut."""
        raise SourceError(
            f"input file {self.path!r} has changed: bytes {start} to {end} were cut into a transaction with "
            f"digest {expected_digest:016x} and have digest {found_digest:016x} now (the file has "
            f"{self.current_byte_count()} bytes); {FAULT}: {self.remedy()}"
        ).about(Trouble.INPUT_CHANGED)

    def remedy(self) -> str:
        """Returns what to do about a file that has changed, for messages."""
        return (
            "put the file back as it was and run again, or start over with the files as they are by "
            f"`txbatch drop {self.topology_id}`"
        )

    def missing(self) -> str:
        """Returns the message for a missing file."""
        return (
            f"input file {self.path!r} is missing; it was there when the input was listed. Either it was "
            f"moved or deleted ({FAULT}), or this machine does not see the folder of the one that listed "
            f"it: {self.remedy()}"
        )


def stamp_of(facts: FileStamp, now_ns: int) -> FileStamp:
    """Returns the stamp of a file with these facts; a file without a time may have changed a moment ago."""
    _, changed_ns, touched_ns, _ = facts
    is_recent = max(changed_ns, touched_ns) > now_ns - RECENT_NS or not (changed_ns or touched_ns)
    return (*facts, now_ns) if is_recent else facts


def is_settled(stamp: FileStamp) -> bool:
    """Returns whether a file with this stamp cannot have changed without getting a new stamp."""
    return len(stamp) == len(NO_STAMP) and stamp != NO_STAMP


def identity_of(stamp: FileStamp) -> FileStamp:
    """Returns the part of a stamp that survives a rename: size, time of the last change of content, inode."""
    return stamp[0], stamp[1], stamp[3]
