"""The folders of this machine, as listings see them: each under one spelling, links followed, errors not swallowed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from coordinator.sources.files.stores.file_listing import Entry, FileFacts, FolderTree, Seen

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class LocalTree(FolderTree):
    """The local file system, or what of it lies below a folder.

    Args:
        base: the folder, which paths are relative to; left out, they are absolute.
        prefix: see `FolderTree`.
        place: see `FolderTree`.
        hint: see `FolderTree`.
    """

    def __init__(self, base: str = "", *, prefix: str = "", place: str = "", hint: str = FolderTree.hint) -> None:
        self._base = os.path.realpath(base).rstrip("/") + "/" if base else ""
        self.prefix, self.place, self.hint = prefix, place, hint
        self._listed: tuple[str, list[Entry]] | None = None

    def folder(self, path: str) -> str | None:
        try:
            is_plain = stat.S_ISDIR(os.lstat(self._base + path).st_mode) and not path.endswith("..")
            is_there = is_plain or stat.S_ISDIR(Path(self._base + path).stat().st_mode)
        except OSError as error:
            if error.errno in _NOWHERE:
                return None
            raise
        return (path if is_plain else self._resolved(path)) if is_there else None

    def entries(self, folder: str, *, is_deep: bool) -> Iterable[Entry]:
        if self._listed is None or self._listed[0] != folder:  # asked for twice in a row below `**`
            try:
                with os.scandir(self._base + folder) as found:
                    self._listed = folder, list(found)
            except OSError as error:
                if error.errno not in _NOWHERE:
                    raise
                return []
        return self._listed[1]

    def look(self, path: str) -> Seen | None:
        full = self._base + path
        try:
            told = os.lstat(full)
            is_link = stat.S_ISLNK(told.st_mode)
            told = Path(full).stat() if is_link else told
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise
            facts = FileFacts(self.prefix + path, 0, 0)
            return Seen(facts, "link that leads nowhere", frozenset()) if Path(full).is_symlink() else None
        names = {os.path.realpath(full) if is_link else full}
        if told.st_nlink > 1:
            names.add(f"inode {told.st_dev}:{told.st_ino}")
        kind = stat.S_IFMT(told.st_mode)
        return Seen(
            FileFacts(self.prefix + path, told.st_size, told.st_mtime_ns),
            "file" if kind == stat.S_IFREG else "folder" if kind == stat.S_IFDIR else "other",
            frozenset(names),
            is_link,
        )

    def key(self, path: str) -> str:
        return self._base + path

    def absolute(self, path: str) -> str:
        """Returns the one spelling of a path: its folder without symbolic links and steps upward, and its own name.

        A link to a file keeps its name: files are read in the order of their names.
        """
        parent, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return self.prefix + self._resolved(path)
        folder = self._resolved(parent + "/")
        return self.prefix + (f"{folder.rstrip('/')}/{name}" if folder else name)

    def _resolved(self, path: str) -> str:
        real = os.path.realpath(self._base + path)
        if not self._base:
            return real
        return f"{real}/"[len(self._base) :].rstrip("/") if f"{real}/".startswith(self._base) else path
