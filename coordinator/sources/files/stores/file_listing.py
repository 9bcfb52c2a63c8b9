"""Which files a pattern means: one walk over folders, by one rule, whatever store they are in.

A pattern is taken component by component. Each matches names as a glob does, and also the name that is spelt like it:
``data[1].csv`` finds the file of that name, too, and ``*.csv`` one that somebody called ``*.csv``. Wildcards leave out
names that begin with a dot. ``**`` stands for any depth of folders; each is looked into once, so links that lead upward
come to an end. A file that has several names is taken once. What cannot be looked at is refused by name, since its
files would be left out in silence.
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
"""How a file's private name begins while it is being removed; no pattern matches it."""

_DEEP = "**"
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as a listing shows it.

    Attributes:
        path: absolute path, or address.
        byte_count: its size in the store.
        changed_ns: when its content was last changed, as the store tells it.
        inode: by which it is known under another name; 0 in a store without.
        touched_ns: when anything of it was last changed, its name too; 0 in a store that does not tell.
    """

    path: str
    byte_count: int
    changed_ns: int
    inode: int = 0
    touched_ns: int = 0

    @classmethod
    def of(cls, path: str, stamp: FileStamp) -> FileFacts:
        """Returns the facts that a file was opened with."""
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
    """What has a name.

    Attributes:
        facts: of it.
        kind: what it is.
        names: whatever it has in common with other names of the same file: where a link leads, device and inode.
        is_link: whether the name is that of a symbolic link.
    """

    facts: FileFacts
    kind: Literal["file", "folder", "link that leads nowhere", "other"]
    names: frozenset[str]
    is_link: bool = False


class FolderTree(ABC):
    """The folders of a store during one listing. Its methods raise OSError for what cannot be looked at.

    Attributes:
        prefix: what its paths begin with in addresses.
        place: what to say of where patterns begin.
    """

    prefix = place = ""

    @abstractmethod
    def folder(self, path: str) -> str | None:
        """Returns the one spelling of a folder; None if there is certainly none."""

    @abstractmethod
    def entries(self, folder: str, *, is_deep: bool) -> Iterable[Entry]:
        """Returns what is in a folder; nothing if it is gone. If `is_deep`, those below will be asked for, too."""

    @abstractmethod
    def look(self, path: str) -> Seen | None:
        """Returns what has a name; None if nothing has."""


Place = Callable[[str], tuple[FolderTree, str]]
"""Pattern -> the tree it is in, and the pattern there."""


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
    """Leaves out further names of files: a link next to its target, then the names that sort later."""
    kept: dict[str, Seen] = {}
    taken: set[str] = set()
    for path, seen in sorted(found.items(), key=lambda item: (item[1].is_link, item[0])):
        if not seen.names & taken:
            kept[path] = seen
        taken |= seen.names
    return kept


def walk(tree: FolderTree, pattern: str, prefix: str = "") -> Iterator[str]:
    """Paths in a tree that match, some more than once.

    Args:
        tree: the tree.
        pattern: in it.
        prefix: look for files whose names have this before the name that matches.

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
    """Returns whether it is a file; a folder is not, and anything else is an error rather than left out."""
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
            folder = at if os.path.isdir(at) else os.path.dirname(at)  # noqa: PTH112, PTH120 - says no, raises nothing
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
