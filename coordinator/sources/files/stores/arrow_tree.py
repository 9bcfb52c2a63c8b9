"""The folders of a file system of pyarrow, as listings see them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from coordinator.sources.files.stores.file_listing import Entry, FileFacts, FolderTree, Seen
from coordinator.sources.files.stores.local_store import LocalTree
from state.printable import message_of

_FLAT = ("s3", "gcs", "gs", "abfs", "az")
"""Object stores, fsspec's too: to list everything below a prefix takes fewer requests than to list each folder, and
finds the files below a name that is also an object's."""
_TYPE = re.compile(r"[^+'(), ]+")
"""A word in the type of a file system, such as ``py::fsspec+('s3', 's3a')`` for one of fsspec."""
_DEEPEST = 32
"""Depth at which nested folders are refused as a loop of links; every system follows more links in a path."""


def tree_of(filesystem: Any, prefix: str) -> FolderTree:
    """Returns the folders of a file system for one listing; local ones are listed as by `LocalStore`."""
    if filesystem.type_name == "local":
        return LocalTree(prefix=prefix, has_inodes=False)
    if filesystem.type_name == "subtree" and filesystem.base_fs.type_name == "local":
        return LocalTree(filesystem.base_path, prefix=prefix, has_inodes=False)
    return ArrowTree(filesystem, prefix)


def touched_ns(filesystem: Any, path: str) -> int:
    """Returns when a file or its metadata last changed; 0 unless it is on this machine: pyarrow does not report it."""
    tree = tree_of(filesystem, "")
    seen = tree.look(path) if isinstance(tree, LocalTree) else None
    return 0 if seen is None else seen.facts.touched_ns


@dataclass(frozen=True, slots=True)
class ArrowEntry:
    """A name in a folder."""

    name: str
    is_folder: bool

    def is_dir(self) -> bool:
        return self.is_folder

    def is_symlink(self) -> bool:
        return False


class ArrowTree(FolderTree):
    """Folders that only pyarrow can list; it follows links, and does not distinguish them from their targets.

    Args:
        filesystem: a file system of pyarrow.
        prefix: see `FolderTree`.
    """

    def __init__(self, filesystem: Any, prefix: str) -> None:
        self._filesystem, self.prefix = filesystem, prefix
        self._listed: dict[str, set[Entry]] = {}
        self._infos: dict[str, Any] = {}
        self._top = sys.maxsize

    def folder(self, path: str) -> str | None:
        return path  # permission to list a prefix does not imply permission to list the folders above

    def entries(self, folder: str, *, is_deep: bool) -> Iterable[Entry]:
        if folder not in self._listed:
            is_flat = not {*_TYPE.findall(self._filesystem.type_name)}.isdisjoint(_FLAT)
            if is_deep and not is_flat:
                self._refuse_loop(folder)
            self._listed[folder] = set()
            for info in self._infos_below(folder, is_recursive=is_deep and is_flat):
                path = info.path.rstrip("/")
                if path != info.path:  # an empty object with such a name stands for a folder, in some stores
                    info = type(info)(path, type(info.type).Directory)  # noqa: PLW2901
                is_folder = info.type.name == "Directory"
                if not is_folder or path not in self._infos:  # an object may have the name of a folder
                    self._infos[path] = info
                self._enter(folder, path, is_folder=is_folder)
        return self._listed[folder]

    def _enter(self, top: str, path: str, *, is_folder: bool) -> None:
        """Adds a path below a folder, and the folders in between, which not every store lists."""
        while path != top:  # bounded by the depth of the path
            parent, _, name = path.rpartition("/")
            known = self._listed.setdefault(parent or path[: path.startswith("/")], set())
            entry = ArrowEntry(name, is_folder)
            if entry in known:
                return
            known.add(entry)
            path, is_folder = parent, True

    def _refuse_loop(self, folder: str) -> None:
        depth = folder.count("/")
        self._top = min(depth, self._top)
        if depth > self._top + _DEEPEST:
            raise OSError(
                f"folder {folder!r} is nested more than {_DEEPEST} levels deep, probably because a link points to a "
                "parent folder: remove the link, or give a pattern without **"
            )

    def look(self, path: str) -> Seen | None:
        info = self._infos.get(path)
        if info is None:
            if path.rpartition("/")[0] in self._listed:
                return None
            with _as_os_error():
                info = self._filesystem.get_file_info(path)
        if info.type.name == "NotFound":
            return None
        kind = {"File": "file", "Directory": "folder"}.get(info.type.name, "other")
        facts = FileFacts(self.prefix + path, info.size or 0, info.mtime_ns or 0)
        return Seen(facts, kind, frozenset([path]))  # type: ignore[arg-type] # three of the literals

    def _infos_below(self, folder: str, *, is_recursive: bool) -> Any:
        import pyarrow.fs

        selector = pyarrow.fs.FileSelector(folder, recursive=is_recursive, allow_not_found=True)
        with _as_os_error():
            return self._filesystem.get_file_info(selector)


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # a store of the user's may raise anything
        raise OSError(message_of(error)) from error
