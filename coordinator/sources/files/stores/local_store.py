"""Files of the local file system, mounted ones included."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator.sources.files.stores.file_listing import (
    ASIDE,
    Entry,
    FileFacts,
    FolderTree,
    Seen,
    explained,
    join,
    walk,
)
from coordinator.sources.files.stores.file_store import FileStore, name_in
from coordinator.sources.files.stores.input_file import FAULT, InputFile, stamp_of
from state.codec import digest64
from state.errors import SourceError

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class LocalStore(FileStore):
    """The local file system.

    Args:
        folder: what relative patterns start from.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def tree(self, pattern: str) -> tuple[LocalTree, str]:
        inner = pattern if pattern.startswith("/") else join(self.folder, pattern)
        return LocalTree(place=f" (working directory {self.folder!r})"), inner

    def byte_count(self, path: str) -> int | None:
        try:
            return Path(path).stat().st_size
        except OSError as error:
            if error.errno in _NOWHERE:
                return None
            raise SourceError(
                f"input file {path!r} cannot be looked at by user id {os.geteuid()}: {error.strerror}; give that "
                "user the right to enter its folder, or check the disk, and run again"
            ) from error

    def open(self, path: str) -> LocalFile:
        return LocalFile(path, self.topology_id)

    def set_aside(self, path: str) -> str:
        aside, added = self._aside(path), len(aside_prefix(self.topology_id))
        try:
            if os.path.lexists(aside):
                raise SourceError(_taken(path, aside))
            Path(path).rename(aside)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise SourceError(
                    f"input file {path!r} cannot be renamed to {aside.name!r} before it is removed, since that name is "
                    f"too long: give files names that are at least {added} bytes shorter than "
                    "the file system allows, and remove this one by hand"
                ) from error
            raise SourceError(_refused(f"renamed to {aside.name!r}", path, error)) from error
        return str(aside)

    def keeps_our_time(self, aside: str) -> bool:
        return time.time_ns() - Path(aside).lstat().st_ctime_ns < CLOCK_TOLERANCE_NS

    def place_of(self, path: str) -> str | None:
        aside = self._aside(path)
        if not os.path.lexists(aside):
            return super().place_of(path)
        if os.path.lexists(path) and not are_one(aside, Path(path)):
            raise SourceError(_taken(path, aside))
        return str(aside)

    def put_back(self, path: str) -> None:
        aside = self._aside(path)
        try:
            rename_to_free_name(aside, Path(path))
        except FileNotFoundError:
            return
        except FileExistsError:
            raise SourceError(_taken(path, aside)) from None
        except OSError as error:
            raise SourceError(_refused(f"renamed back from {aside.name!r}", path, error)) from error

    def recover(self, patterns: Iterable[str]) -> None:
        for pattern in patterns:
            with explained(pattern, SourceError):
                aside = list(walk(*self.tree(pattern), aside_prefix(self.topology_id)))
            for path in aside:
                self.put_back(own_path(path))

    def delete(self, path: str) -> None:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise SourceError(_refused("deleted", own_path(path), error)) from error

    def move(self, path: str, folder: str) -> None:
        target, own = Path(self.absolute(folder)), own_path(path)
        try:
            Path(path).lstat()
            target.mkdir(parents=True, exist_ok=True)
            name = name_in((each.name for each in target.iterdir()), Path(own).name, digest64(path.encode()))
            if not Path(path).is_symlink() or Path(path).readlink().is_absolute():
                rename_to_free_name(Path(path), target / name)
                return
            leads_to, same = os.path.realpath(path), target / Path(own).name
            if not same.is_symlink() or str(same.readlink()) != leads_to:  # else a process died before the unlink
                (target / name).symlink_to(leads_to)  # a relative link would lead elsewhere from there
            Path(path).unlink()
        except FileNotFoundError:
            return  # it was moved before
        except OSError as error:
            raise SourceError(_refused(f"moved to {str(target)!r}", own, error)) from error

    def absolute(self, path: str) -> str:
        tree, inner = self.tree(path)
        return tree.absolute(inner)

    def resolved(self, path: str) -> str:
        tree, inner = self.tree(path)
        return tree.resolved(inner)

    def describe(self) -> str:
        return ""

    def _aside(self, path: str) -> Path:
        own = Path(path)
        return own.with_name(aside_prefix(self.topology_id) + own.name)


class LocalTree(FolderTree):
    """The local file system, or the part of it below a folder.

    Args:
        base: the folder that paths are relative to; without it, paths are absolute.
        prefix: see `FolderTree`.
        place: see `FolderTree`.
        has_inodes: whether files report their inode when they are read; pyarrow's files do not.
    """

    def __init__(self, base: str = "", *, prefix: str = "", place: str = "", has_inodes: bool = True) -> None:
        self._base = os.path.realpath(base).rstrip("/") + "/" if base else ""
        self.prefix, self.place = prefix, place
        self._has_inodes = has_inodes
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
            status = os.lstat(full)
            is_link = stat.S_ISLNK(status.st_mode)
            status = Path(full).stat() if is_link else status
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise
            facts = FileFacts(self.prefix + path, 0, 0)
            return Seen(facts, "link that leads nowhere", frozenset()) if Path(full).is_symlink() else None
        names = {os.path.realpath(full) if is_link else full}
        if status.st_nlink > 1:
            names.add(f"inode {status.st_dev}:{status.st_ino}")
        kind = stat.S_IFMT(status.st_mode)
        inode = status.st_ino if self._has_inodes else 0
        return Seen(
            FileFacts(self.prefix + path, status.st_size, status.st_mtime_ns, inode, status.st_ctime_ns),
            "file" if kind == stat.S_IFREG else "folder" if kind == stat.S_IFDIR else "other",
            frozenset(names),
            is_link,
        )

    def absolute(self, path: str) -> str:
        """Returns the canonical spelling of a path: its folder without symbolic links and ``..``, and its own name.

        A link to a file keeps its name: files are read in the order of their names.
        """
        parent, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return self.prefix + self._resolved(path)
        folder = self._resolved(parent + "/")
        return self.prefix + (f"{folder.rstrip('/')}/{name}" if folder else name)

    def resolved(self, path: str) -> str:
        """Returns where a path leads after all links."""
        return self.prefix + self._resolved(path)

    def _resolved(self, path: str) -> str:
        real = os.path.realpath(self._base + path)
        if not self._base:
            return real
        return f"{real}/"[len(self._base) :].rstrip("/") if f"{real}/".startswith(self._base) else path


def aside_prefix(topology_id: str) -> str:
    """Returns the prefix of files that a topology sets aside; it has the same length for every topology."""
    return f"{ASIDE}{digest64(topology_id.encode()):016x}-"


def own_path(path: str) -> str:
    """Returns a path with the file's own name, without the prefix of any topology that has set the file aside."""
    folder, name = os.path.split(path)
    return str(Path(folder, name[len(aside_prefix("")) :])) if name.startswith(ASIDE) else path


def _taken(path: str, aside: Path) -> str:
    return (
        f"input file {path!r} was renamed to {aside.name!r} while it was being removed, and cannot get its name back, "
        "because there is another file of that name now: give the newer one a new name, and run again"
    )


def _refused(what: str, path: str, error: OSError) -> str:
    return (
        f"input file {path!r} was read and committed and cannot be {what}: {error.strerror or error}; give user id "
        f"{os.geteuid()} the right to, on the same file system, and run again"
    )


class LocalFile(InputFile):
    """A regular file whose bytes are read by position.

    Args:
        path: absolute path.
        topology_id: for the remedy in messages.
        clock_ns: time of day by the file system's clock.

    Raises:
        SourceError: there is no such file, it is not a regular file, or it may not be read.
    """

    def __init__(self, path: str, topology_id: str, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        super().__init__(path, topology_id)
        with self._explained():
            # checked before opening: opening a pipe would wait for a writer
            mode = Path(path).stat().st_mode
            if not stat.S_ISREG(mode):
                kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
                raise SourceError(
                    f"input file {path!r} is {kind} now; it was a file when the input was listed, and "
                    f"{FAULT}: {self.remedy()}"
                )
            self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by `close`
            found = os.fstat(self._file.fileno())
            self.stored_bytes = found.st_size
            status = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
            self.stamp = stamp_of(status, clock_ns())

    @property
    def byte_count(self) -> int:
        return self.stored_bytes

    def read_up_to(self, start: int, end: int) -> bytes:
        pieces = []
        position = start
        with self._explained():
            while position < end:
                piece = os.pread(self._file.fileno(), end - position, position)
                if not piece:
                    break
                pieces.append(piece)
                position += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def current_byte_count(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SourceError(self.missing()) from error
        except PermissionError as error:
            raise SourceError(
                f"input file {self.path!r} may not be read by user id {os.geteuid()}: {error.strerror}; "
                "give that user read permission on the file and its folders and run again"
            ) from error
        except OSError as error:
            raise SourceError(
                f"input file {self.path!r} cannot be read: {error.strerror or error}; the file system or the "
                "disk below it refuses: fix that and run again"
            ) from error


CLOCK_TOLERANCE_NS = 50_000_000
"""More than a tick of a kernel's clock, and less than the average error of file times in whole seconds."""

_HERE = -100
_NO_REPLACE = 1
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


def rename_to_free_name(path: Path, new: Path) -> None:
    """Renames a file, or a symbolic link, to a free name within one file system.

    Without renameat2 and hard links, it only checks beforehand that the name is free.

    Raises:
        FileExistsError: something else has the new name.
        OSError: the file cannot be renamed.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        if call(_HERE, os.fsencode(path), _HERE, os.fsencode(new), _NO_REPLACE) == 0:
            return
        found = ctypes.get_errno()
        if found not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(found, os.strerror(found), str(path), None, str(new))
    try:
        os.link(path, new, follow_symlinks=False)
    except FileExistsError:
        if not are_one(path, new):
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new)) from None
        path.rename(new)
        return
    path.unlink()


def are_one(path: Path, new: Path) -> bool:
    """Returns whether both paths are one file: a process died between adding the new name and removing the old."""
    return path.lstat().st_ino == new.lstat().st_ino and path.lstat().st_dev == new.lstat().st_dev
