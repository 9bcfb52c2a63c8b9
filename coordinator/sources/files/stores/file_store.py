"""The interface of a store of input files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

from coordinator.sources.files.stores.file_listing import FileFacts, FolderTree, list_files, look
from coordinator.sources.files.stores.input_file import InputFile


class FileStore(ABC):
    """A place where files are. A spec: made on the driver, shipped with the spout; it keeps nothing open.

    Attributes:
        topology_id: the topology that reads the files, once it is known: see `of`.
    """

    topology_id = ""

    def of(self, topology_id: str) -> Self:
        """Returns the store for one topology, whose id is in messages and in private names of files."""
        bound = object.__new__(type(self))  # not a copy: both share the file systems that are open
        vars(bound).update(vars(self), topology_id=topology_id)
        return bound

    @abstractmethod
    def tree(self, pattern: str) -> tuple[FolderTree, str]:
        """Returns the folders of a pattern's store, for one listing, and the pattern within them (driver)."""

    def list_files(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Lists the files that match, sorted by path, each once (driver, before anything starts).

        Raises:
            TopologyError: a pattern matches no file, or something that cannot be inspected or read twice.
        """
        return list_files(patterns, self.tree)

    def look(self, patterns: Iterable[str]) -> dict[str, FileFacts]:
        """Returns path -> facts of the files that match now, except those that vanish meanwhile (driver, every poll).

        Raises:
            SourceError: the store cannot be listed, or a name cannot be stored.
        """
        return look(patterns, self.tree)

    def exists(self, path: str) -> bool:
        """Returns whether a file exists (driver)."""
        return self.byte_count(path) is not None

    @abstractmethod
    def byte_count(self, path: str) -> int | None:
        """Returns the current size of a file in the store; None if it does not exist (driver)."""

    @abstractmethod
    def open(self, path: str) -> InputFile:
        """Opens a file as it is stored (driver and executor).

        Raises:
            SourceError: it is missing, not a file, or may not be read.
        """

    def place_of(self, path: str) -> str | None:
        """Returns where to read a file: its path, or its private one if it is set aside; None without a file (driver).

        Raises:
            SourceError: the file is set aside, and another file has its name now.
        """
        return path if self.exists(path) else None

    def set_aside(self, path: str) -> str:
        """Renames a file to a private name in its folder, which no pattern matches; returns the new path (driver).

        A store that cannot rename in one step leaves the file where it is.

        Raises:
            SourceError: the file cannot be renamed.
        """
        return path

    def put_back(self, path: str) -> None:  # noqa: B027 - nothing to do if nothing is set aside
        """Restores the name of a file that this topology has set aside (driver).

        Raises:
            SourceError: another file has the name now, which is never replaced, or the file cannot be renamed.
        """

    def keeps_our_time(self, aside: str) -> bool:
        """Returns whether the clock of the store is certainly not behind that of this machine (driver).

        Only then does every later change give a new time to a file that was old when it was read.

        Args:
            aside: a file that was set aside a moment ago, which has updated its time of change.
        """
        return False

    def recover(self, patterns: Iterable[str]) -> None:  # noqa: B027 - as put_back
        """Puts back the files that match patterns and that an earlier run of this topology has set aside.

        Called in the driver, by a run that owns the topology, before it looks for files.

        Raises:
            SourceError: see `put_back`.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Deletes a file; does nothing if it is gone (driver).

        Raises:
            SourceError: the file cannot be deleted.
        """

    @abstractmethod
    def move(self, path: str, folder: str) -> None:
        """Moves a file into a folder of the same store, which is created if necessary (driver).

        A file that is set aside gets its own name again. If the name is taken in the folder, the moved file gets a
        digest of its path in its name. A file that is gone was moved before.

        Raises:
            SourceError: the file cannot be moved.
        """

    @abstractmethod
    def absolute(self, path: str) -> str:
        """Returns the canonical spelling of a path or pattern in this store (driver)."""

    def resolved(self, path: str) -> str:
        """Returns where a path leads after all links (driver)."""
        return self.absolute(path)

    @abstractmethod
    def describe(self) -> str:
        """Returns what distinguishes this store in a fingerprint; empty for the local file system."""


def name_in(folder_names: Iterable[str], name: str, path_digest: int) -> str:
    """Returns a free name for a file in a folder: its own, or one with a digest of its path and perhaps a number."""
    taken = set(folder_names)
    stem, dot, suffix = name.partition(".")
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{stem}-{path_digest:016x}{f'-{number}' if number > 1 else ''}{dot}{suffix}"
    return found
