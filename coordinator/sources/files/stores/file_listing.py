"""Which files match a pattern: one walk over folders, by the same rules in every store.

A pattern is matched component by component. Each component matches names as a glob does, and also literally:
``data[1].csv`` also finds the file of that name. Wildcards leave out names that begin with a dot. ``**`` matches any
depth of folders; each folder is listed once, so links that lead upward come to an end. A file with several names is
taken once. A folder that cannot be listed is refused by name, since its files would be left out in silence.
"""

from __future__ import annotations

import fnmatch
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from coordinator.sources.files.stores.input_file import FileStamp
from state.errors import SourceError, TopologyError
from state.troubles import Trouble

ASIDE = ".txbatch-aside-"
"""Prefix of a file's private name while it is being removed; no pattern matches it."""

_DEEP = "**"
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as a listing shows it.

    Attributes:
        path: absolute path, or address.
        byte_count: its size in the store.
        changed_ns: when its content last changed, by the store.
        inode: identifies the file under another name; 0 in a store without inodes.
        touched_ns: when the file or its metadata, even its name, last changed; 0 if the store does not report it.
    """

    path: str
    byte_count: int
    changed_ns: int
    inode: int = 0
    touched_ns: int = 0

    @classmethod
    def of(cls, path: str, stamp: FileStamp) -> FileFacts:
        """Returns the facts of a file with this stamp."""
        size, changed_ns, touched_ns, inode, *_ = stamp
        return cls(path, size, changed_ns, inode, touched_ns)

    @property
    def identity(self) -> FileStamp:
        """See `identity_of`."""
        return self.byte_count, self.changed_ns, self.inode


class Entry(Protocol):
    """A name in a folder, such as an `os.DirEntry`."""

    @property
    def name(self) -> str: ...
    def is_dir(self) -> bool: ...
    def is_symlink(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """The file, folder or other object at a path.

    Attributes:
        facts: its path, size, times and inode.
        kind: its kind.
        names: keys that all names of one file share: the target of a link, device and inode.
        is_link: whether the path is a symbolic link.
    """

    facts: FileFacts
    kind: Literal["file", "folder", "link that leads nowhere", "other"]
    names: frozenset[str]
    is_link: bool = False


class FolderTree(ABC):
    """The folders of a store during one listing. Its methods raise OSError if a path cannot be inspected.

    Attributes:
        prefix: what precedes its paths in addresses.
        place: where relative patterns start, for messages.
    """

    prefix = place = ""

    @abstractmethod
    def folder(self, path: str) -> str | None:
        """Returns the canonical path of a folder; None if it certainly does not exist."""

    @abstractmethod
    def entries(self, folder: str, *, is_deep: bool) -> Iterable[Entry]:
        """Returns the entries of a folder; none if it is gone. If `is_deep`, the folders below will be listed, too."""

    @abstractmethod
    def look(self, path: str) -> Seen | None:
        """Returns the object at a path; None if there is none."""


Place = Callable[[str], tuple[FolderTree, str]]
"""Pattern -> its tree, and the pattern within that tree."""


def list_files(patterns: Iterable[str], place: Place) -> tuple[str, ...]:
    """See `FileStore.list_files`."""
    found: dict[str, Seen] = {}
    for pattern in patterns:
        tree, inner = place(pattern)
        with explained(pattern, TopologyError):
            seen = [tree.look(path) for path in walk(tree, inner)]
            files = {each.facts.path: each for each in seen if each is not None and _is_taken(each)}
            if not files:
                raise TopologyError(_nothing_matches(pattern, tree, inner)).about(Trouble.INPUT)
        found |= files
    return tuple(sorted(_each_once(found)))


def look(patterns: Iterable[str], place: Place) -> dict[str, FileFacts]:
    """See `FileStore.look`."""
    found: dict[str, Seen] = {}
    for pattern in patterns:
        tree, inner = place(pattern)
        with explained(pattern, SourceError):
            for path in walk(tree, inner):
                if (seen := tree.look(path)) is not None and seen.kind == "file":
                    _refuse_unstorable(seen.facts.path, SourceError)
                    found[seen.facts.path] = seen
    return {path: each.facts for path, each in _each_once(found).items()}


def _each_once(found: Mapping[str, Seen]) -> dict[str, Seen]:
    """Keeps one name of each file: its own name rather than a link's, and the first in order of several names."""
    kept: dict[str, Seen] = {}
    taken: set[str] = set()
    for path, seen in sorted(found.items(), key=lambda item: (item[1].is_link, item[0])):
        if not seen.names & taken:
            kept[path] = seen
        taken |= seen.names
    return kept


def walk(tree: FolderTree, pattern: str, prefix: str = "") -> Iterator[str]:
    """Yields the paths in a tree that match, some more than once.

    Args:
        tree: the tree.
        pattern: the pattern within the tree.
        prefix: the beginning of the yielded paths, which the pattern lacks.

    Raises:
        OSError: a folder cannot be listed.
    """
    components = [_Component(each) for each in pattern.split("/") if each not in ("", ".")]
    if components and components[-1].is_deep:
        components.append(_Component("*"))
    if not components or pattern.endswith("/"):
        return
    components[-1] = _Component(components[-1].text, prefix)
    start = tree.folder("/" if pattern.startswith("/") else "")
    todo: list[tuple[str | None, int]] = [(start, 0)]
    done: set[tuple[str, int]] = set()
    while todo:  # bounded: each folder of the tree once for each component
        folder, number = todo.pop()
        if folder is None or (folder, number) in done:
            continue
        done.add((folder, number))
        component, is_last = components[number], number + 1 == len(components)
        if component.is_plain:
            path = join(folder, component.prefix + component.text)
            if is_last:
                yield path
            else:
                todo.append((tree.folder(path), number + 1))
            continue
        for entry in tree.entries(folder, is_deep=component.is_deep):
            if not component.matches(entry.name):
                continue
            path = join(folder, entry.name)
            if is_last:
                yield path
            elif entry.is_symlink() or entry.is_dir():
                todo.append((tree.folder(path), number if component.is_deep else number + 1))
        if component.is_deep:
            todo.append((folder, number + 1))


class _Component:
    def __init__(self, text: str, prefix: str = "") -> None:
        self.text, self.prefix = text, prefix
        self.is_deep = text == _DEEP
        self.is_plain = _WILD.search(text) is None
        self._fits = re.compile(fnmatch.translate(text)).match

    def matches(self, name: str) -> bool:
        if not name.startswith(self.prefix) or (not self.prefix and name.startswith(ASIDE)):
            return False
        own = name[len(self.prefix) :]
        is_hidden = own.startswith(".") and not self.text.startswith(".")
        return own == self.text or (self._fits(own) is not None and not is_hidden)


def join(folder: str, name: str) -> str:
    """Returns the path of a name in a folder of a tree."""
    return f"{folder}{name}" if folder in ("", "/") else f"{folder}/{name}"


def _is_taken(seen: Seen) -> bool:
    """Returns True for a file and False for a folder; raises TopologyError for anything else."""
    path = seen.facts.path
    _refuse_unstorable(path, TopologyError)
    if seen.kind == "link that leads nowhere":
        raise TopologyError(
            f"input {path!r} is a symbolic link that leads nowhere: fix or remove it, or choose a pattern that leaves "
            "it out"
        )
    if seen.kind == "other":
        raise TopologyError(
            f"input {path!r} is not a regular file: a replay has to read it again, which a pipe, a socket or a "
            "device does not allow; copy it into a file first"
        )
    return seen.kind == "file"


def _refuse_unstorable(path: str, kind: type[SourceError | TopologyError]) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise kind(f"the name of input file {path!r} is not valid UTF-8: rename it") from None


def _nothing_matches(pattern: str, tree: FolderTree, inner: str) -> str:
    message = f"no file matches {pattern!r}{tree.place}"
    seen = tree.look(inner.rstrip("/"))
    if seen is not None and seen.kind == "folder":
        return f"{message}: it is a directory; take {pattern.rstrip('/') + '/*'!r} for the files in it"
    if re.search(r"[{,~]", inner):
        message += "; several patterns are a list, and neither {a,b} nor ~ is expanded"
    return f"{message}; give the path or address of a file, or a glob such as logs/*.txt or s3://bucket/logs/*.json"


@contextmanager
def explained(pattern: str, kind: type[SourceError | TopologyError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"{error}; fix the access to their store and run again"
        if isinstance(error, PermissionError) and error.filename:
            at = error.filename
            folder = at if os.path.isdir(at) else os.path.dirname(at)  # noqa: PTH112, PTH120 - never raises
            why = (
                f"user id {os.geteuid()} may not look into folder {folder!r}; give it the right to list and search it, "
                "or choose a pattern that leaves it out"
            )
        elif error.filename:
            why = (
                f"{error.filename!r} cannot be looked at: {error.strerror}; the file system or the disk below it "
                "refuses: fix that and run again"
            )
        raise kind(f"files that match {pattern!r} cannot be listed: {why}").about(Trouble.INPUT) from error
