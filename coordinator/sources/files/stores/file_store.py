"""What a source of files needs of the place where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

from coordinator.sources.files.stores.file_listing import FileFacts, FolderTree, list_files, look
from coordinator.sources.files.stores.input_file import InputFile


class FileStore(ABC):
    """A place where files are. A spec: made on the driver, shipped with the spout; it keeps nothing open.

    Attributes:
        topology_id: whose input it is, once that is known: see `of`.
    """

    topology_id = ""

    def of(self, topology_id: str) -> Self:
        """Returns the store as one topology uses it: its messages name it, and so do private names of files."""
        bound = object.__new__(type(self))  # no copy: it shares what is open
        vars(bound).update(vars(self), topology_id=topology_id)
        return bound

    @abstractmethod
    def tree(self, pattern: str) -> tuple[FolderTree, str]:
        """Returns the tree of folders that a pattern is in, for one listing, and the pattern there (driver)."""

    def list_files(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Lists the files that match, sorted by path, each once (driver, before anything starts).

        Raises:
            TopologyError: a pattern matches no file, or something that cannot be read twice or looked at.
        """
        return list_files(patterns, self.tree)

    def look(self, patterns: Iterable[str]) -> dict[str, FileFacts]:
        """Path -> facts, of whatever matches now; files that vanish meanwhile are left out (driver, at every poll).

        Raises:
            SourceError: the store cannot be listed, or a name cannot be stored.
        """
        return look(patterns, self.tree)

    def exists(self, path: str) -> bool:
        """Returns whether there is such a file (driver)."""
        return self.byte_count(path) is not None

    @abstractmethod
    def byte_count(self, path: str) -> int | None:
        """Size of a file in the store by now; None if there is none (driver)."""

    @abstractmethod
    def open(self, path: str) -> InputFile:
        """Opens a file as it is stored (driver and executor).

        Raises:
            SourceError: it is missing, is not a file, or may not be read.
        """

    def place_of(self, path: str) -> str | None:
        """Returns where a file is to be read: under its name, or where it is set aside; None if there is none (driver).

        Raises:
            SourceError: it is set aside, and there is another file of its name by now.
        """
        return path if self.exists(path) else None

    def set_aside(self, path: str) -> str:
        """Renames a file to a private name in its folder, which no pattern matches, and returns that (driver).

        A store that cannot rename in one step leaves the file where it is.

        Raises:
            SourceError: it cannot be renamed.
        """
        return path

    def put_back(self, path: str) -> None:  # noqa: B027 - nothing to do if nothing is set aside
        """Gives a file its name again, if this topology has set it aside (driver).

        Raises:
            SourceError: there is another file of that name by now, which is never replaced, or it cannot be renamed.
        """

    def keeps_our_time(self, aside: str) -> bool:
        """Returns whether the clock of the store is certainly not behind that of this machine (driver).

        Only then has a file that was old when it was read got another time if it was changed since.

        Args:
            aside: a file that was set aside a moment ago, and got a new time of change by that.
        """
        return False

    def recover(self, patterns: Iterable[str]) -> None:  # noqa: B027 - as put_back
        """Puts back whatever matches patterns and was set aside by an earlier run of a topology.

        Called in the driver, by a run that owns the topology, before it looks for files.

        Raises:
            SourceError: as `put_back`.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Deletes a file; one that is gone is as good as deleted (driver).

        Raises:
            SourceError: it cannot be deleted.
        """

    @abstractmethod
    def move(self, path: str, folder: str) -> None:
        """Moves a file into a folder of the same store, which is made if need be (driver).

        A file that is set aside gets its name again. One of the same name is not replaced: the one that is moved gets a
        digest of its path into its name. One that is gone was moved before.

        Raises:
            SourceError: it cannot be moved.
        """

    @abstractmethod
    def absolute(self, path: str) -> str:
        """Returns a path, or a pattern, as this store tells paths: one spelling for each (driver)."""

    def resolved(self, path: str) -> str:
        """Returns where a path leads, links followed to the last (driver)."""
        return self.absolute(path)

    @abstractmethod
    def describe(self) -> str:
        """Distinguishes this store in a fingerprint; empty for the local file system."""


def name_in(folder_names: Iterable[str], name: str, path_digest: int) -> str:
    """Returns the name a file gets in a folder where its own may be taken, and others too."""
    taken = set(folder_names)
    stem, dot, suffix = name.partition(".")
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{stem}-{path_digest:016x}{f'-{number}' if number > 1 else ''}{dot}{suffix}"
    return found
