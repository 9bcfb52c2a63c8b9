"""Files in any file system that pyarrow.fs opens: S3, Hadoop, Google storage, or the user's own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from coordinator.sources.files.stores.arrow_streams import require_arrow
from coordinator.sources.files.stores.arrow_tree import touched_ns, tree_of
from coordinator.sources.files.stores.file_listing import FolderTree
from coordinator.sources.files.stores.file_store import FileStore, name_in
from coordinator.sources.files.stores.input_file import FAULT, InputFile, stamp_of
from coordinator.sources.files.stores.local_store import LocalTree
from state.codec import digest64
from state.errors import SourceError, TopologyError
from state.printable import message_of

_ADDRESS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://([^/?]*)(.*)", re.DOTALL)
_OPTIONS = re.compile(r"\?([A-Za-z_]\w*=.*)", re.DOTALL)
BUCKETS = ("s3", "gs", "gcs")
"""Schemes whose host is the first part of the path."""


class ArrowStore(FileStore):
    """A file system of pyarrow: one that is given, or the one an address names.

    Addresses carry no credentials: they would be stored with every transaction. pyarrow finds them where the
    machine keeps them; options after a ``?`` are used and not stored.

    Args:
        filesystem: a file system of pyarrow.fs, pickled with the source; None to choose it by each address.
        addresses: patterns whose options are to be used.

    Raises:
        TopologyError: pyarrow is not installed, or `filesystem` is not one of its file systems.
    """

    def __init__(self, filesystem: Any = None, addresses: Iterable[str] = ()) -> None:
        require_arrow("a source of files that are not on a local disk")
        self._fs = _module()
        if filesystem is not None and not isinstance(filesystem, self._fs.FileSystem):
            raise TopologyError(
                f"filesystem={filesystem!r} is not a pyarrow.fs.FileSystem; wrap one of fsspec by "
                "pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(...))"
            )
        self._given = filesystem
        self._opened: dict[str, Any] = {}
        self._options: dict[str, str] = {}
        for address in () if filesystem is not None else addresses:
            scheme, host, _ = _parts(address)
            _refuse_credentials(host)
            if options := _OPTIONS.search(address) if scheme != "file" else None:
                self._options[f"{scheme}://{host}"] = options[1]

    def __getstate__(self) -> dict[str, Any]:
        return {"_given": self._given, "_options": self._options, "topology_id": self.topology_id}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["_given"])  # type: ignore[misc] # the same checks where it arrives: pyarrow may lack there
        vars(self).update(state)

    def tree(self, pattern: str) -> tuple[FolderTree, str]:
        filesystem, inner = self._place(_without_options(pattern) if self._given is None else pattern)
        scheme, host, _ = _parts(pattern) if self._given is None else ("", "", "")
        prefix = f"{scheme}://{'' if scheme in BUCKETS else host}" if scheme else ""
        if filesystem.type_name == "local" and not inner.startswith("/"):
            inner = str(Path(inner).absolute())  # executors have another working directory
        return tree_of(filesystem, prefix), inner

    def byte_count(self, path: str) -> int | None:
        filesystem, inner = self._place(path)
        with self._explained("looked at", path):
            info = filesystem.get_file_info(inner)
        return info.size if info.type == self._fs.FileType.File else None

    def open(self, path: str) -> ArrowFile:
        filesystem, inner = self._place(path)
        return ArrowFile(filesystem, inner, path, self.topology_id)

    def delete(self, path: str) -> None:
        if self.exists(path):
            filesystem, inner = self._place(path)
            with self._explained("deleted", path):
                filesystem.delete_file(inner)

    def move(self, path: str, folder: str) -> None:
        if not self.exists(path):
            return
        filesystem, inner = self._place(path)
        _, target = self._place(_without_options(folder) if self._given is None else folder)
        with self._explained(f"moved to {folder!r}", path):
            filesystem.create_dir(target, recursive=True)
            there = filesystem.get_file_info(self._fs.FileSelector(target))
            name = name_in({info.base_name for info in there}, PurePosixPath(inner).name, digest64(path.encode()))
            filesystem.move(inner, f"{target.rstrip('/')}/{name}")

    def absolute(self, path: str) -> str:
        tree, inner = self.tree(path)
        return tree.absolute(inner) if isinstance(tree, LocalTree) else tree.prefix + inner

    def resolved(self, path: str) -> str:
        tree, inner = self.tree(path)
        return tree.resolved(inner) if isinstance(tree, LocalTree) else path

    def describe(self) -> str:
        return f" in {self._given.type_name}" if self._given is not None else ""

    @property
    def _arrow_error(self) -> type[Exception]:
        error: type[Exception] = require_arrow("a source of files that are not on a local disk").ArrowException
        return error

    def _place(self, path: str) -> tuple[Any, str]:
        """Returns the file system of a path or address, and the path in it, which is not decoded like a URL."""
        if self._given is not None:
            if isinstance(handler := getattr(self._given, "handler", None), self._fs.FSSpecHandler):
                handler.fs.invalidate_cache()  # cached listings would hide new and grown files
            return self._given, path
        scheme, host, inner = _parts(path)
        root = f"{scheme}://{host}"
        if root not in self._opened:
            options = self._options.get(root, "")
            try:
                opened, _ = self._fs.FileSystem.from_uri(f"{root}/{'?' + options if options else ''}")
            except (OSError, ValueError, self._arrow_error) as error:
                raise TopologyError(f"pyarrow cannot open the file system of {path!r}: {error}") from error
            self._opened[root] = opened
        return self._opened[root], f"{host}{inner}".rstrip("/") if scheme in BUCKETS else inner

    @contextmanager
    def _explained(self, what: str, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, self._arrow_error) as error:
            raise SourceError(
                f"input file {path!r} cannot be {what}: {error}; fix the access to its store and run again"
            ) from error


def _parts(address: str) -> tuple[str, str, str]:
    """Returns scheme, host and path of an address."""
    match = _ADDRESS.fullmatch(address)
    assert match is not None, "a path is not an address"
    return match[1].lower(), match[2], match[3]


def _without_options(pattern: str) -> str:
    """Returns a pattern without ``?name=value…`` at its end; the local file system has no options, only names."""
    return pattern if _parts(pattern)[0] == "file" else _OPTIONS.sub("", pattern)


def _refuse_credentials(host: str) -> None:
    if "@" in host:
        raise TopologyError(
            f"the address of files in {host.rpartition('@')[2]!r} holds credentials, which would be stored with every "
            "transaction: leave them out, and give them by the environment, or by filesystem=pyarrow.fs.S3FileSystem(…)"
        )


def _module() -> Any:
    import pyarrow.fs

    return pyarrow.fs


class ArrowFile(InputFile):
    """A file that pyarrow opened, read by position.

    Args:
        filesystem: a file system of pyarrow.
        inner: the file's path in it.
        path: the path or address by which we know the file.
        topology_id: for the remedy in messages.
        clock_ns: time of day by the store's clock.

    Raises:
        SourceError: there is no such file, or it cannot be opened.
    """

    def __init__(
        self, filesystem: Any, inner: str, path: str, topology_id: str, *, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        super().__init__(path, topology_id)
        with self._explained():
            info = filesystem.get_file_info(inner)
            if info.size is None:  # a folder, or nothing
                kind = info.type.name
                if kind == "NotFound":
                    raise SourceError(self.missing())
                raise SourceError(f"input file {path!r} is a {kind.lower()} now, and {FAULT}: {self.remedy()}")
            self._file = filesystem.open_input_file(inner)
        self._look: Callable[[], Any] = partial(filesystem.get_file_info, inner)
        self._told, self._is_asked = (info.size, info.mtime_ns), True
        self.stored_bytes = info.size
        self.stamp = stamp_of((info.size, info.mtime_ns or 0, touched_ns(filesystem, inner), 0), clock_ns())

    @property
    def byte_count(self) -> int:
        return self.stored_bytes

    def read_up_to(self, start: int, end: int) -> bytes:
        if start >= self.stored_bytes or end <= start:
            return b""
        self._is_asked = False
        with self._explained():
            content: bytes = self._file.read_at(min(end, self.stored_bytes) - start, start)
        return content

    def was_touched(self) -> bool:
        if self._is_asked:
            return False
        with self._explained():
            info = self._look()
        before, self._told, self._is_asked = self._told, (info.size, info.mtime_ns), True
        return before != self._told

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise SourceError(self.missing()) from error
        except SourceError:
            raise
        except Exception as error:  # a store of the user's may raise anything
            raise SourceError(
                f"input file {self.path!r} cannot be read: {message_of(error)}; fix the access to its store and run "
                "again"
            ) from error
