"""Files of whatever pyarrow.fs opens: S3, Hadoop, Google storage, or a file system of the user's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from coordinator.sources.files.stores.arrow_streams import require_arrow
from coordinator.sources.files.stores.file_store import FileFacts, FileStore, name_in
from coordinator.sources.files.stores.input_file import FAULT, InputFile, stamp_of
from state.codec import digest64
from state.errors import SourceError, TopologyError
from state.troubles import Trouble

_WILD = re.compile(r"[*\[]")
BUCKETS = ("s3", "gs", "gcs")
"""Schemes whose host is the first part of the path."""


class ArrowStore(FileStore):
    """A file system of pyarrow: one that is given, or the one an address names.

    Addresses carry no credentials: they would be stored with every transaction. pyarrow finds them where the
    machine keeps them; options after a ``?`` are used and not stored.

    Args:
        filesystem: of pyarrow.fs; it is pickled with the source. None to go by addresses.
        addresses: patterns whose options are to be used.

    Raises:
        TopologyError: pyarrow is not installed, or this is none of its file systems.
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
            bare, _, options = address.partition("?")
            _refuse_credentials(bare)
            if options:
                self._options[_root(bare)] = options

    def __getstate__(self) -> dict[str, Any]:
        return {"_given": self._given, "_options": self._options, "topology_id": self.topology_id}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["_given"])  # type: ignore[misc] # the same checks where it arrives: pyarrow may lack there
        vars(self).update(state)

    def list_files(self, patterns: Iterable[str]) -> tuple[str, ...]:
        found: dict[str, FileFacts] = {}
        for pattern in patterns:
            try:
                matching = self._matching(pattern)
            except (OSError, self._arrow_error) as error:
                raise TopologyError(f"files that match {pattern!r} cannot be listed: {error}").about(
                    Trouble.INPUT
                ) from error
            if not matching:
                raise TopologyError(
                    f"no file matches {pattern!r}; give the address of a file, or a glob such as s3://bucket/logs/*.json"
                ).about(Trouble.INPUT)
            found |= matching
        return tuple(sorted(found))

    def look(self, patterns: Iterable[str], known: Container[str] = ()) -> dict[str, FileFacts]:
        found: dict[str, FileFacts] = {}
        for pattern in patterns:
            try:
                found |= self._matching(pattern)
            except (OSError, self._arrow_error) as error:
                raise SourceError(
                    f"files that match {pattern!r} cannot be listed: {error}; fix the access to their store and run "
                    "again"
                ) from error
        return found

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
        _, target = self._place(self.absolute(folder))
        with self._explained(f"moved to {folder!r}", path):
            filesystem.create_dir(target, recursive=True)
            there = filesystem.get_file_info(self._fs.FileSelector(target))
            name = name_in({info.base_name for info in there}, PurePosixPath(inner).name, digest64(path.encode()))
            filesystem.move(inner, f"{target.rstrip('/')}/{name}")

    def absolute(self, path: str) -> str:
        return path

    def describe(self) -> str:
        return f" in {self._given.type_name}" if self._given is not None else ""

    @property
    def _arrow_error(self) -> type[Exception]:
        error: type[Exception] = require_arrow("a source of files that are not on a local disk").ArrowException
        return error

    def _matching(self, pattern: str) -> dict[str, FileFacts]:
        filesystem, inner = self._place(pattern)
        prefix = pattern.partition("?")[0].removesuffix(inner) if self._given is None else ""
        if not _WILD.search(inner):
            infos = [filesystem.get_file_info(inner)]
        else:
            base = inner[: _WILD.search(inner).start()].rpartition("/")[0]  # type: ignore[union-attr] # it is there
            rest = inner.removeprefix(base).lstrip("/")
            is_deep = "/" in rest or "**" in rest
            selector = self._fs.FileSelector(base, recursive=is_deep, allow_not_found=True)
            wanted = glob_expression(inner)
            infos = [info for info in filesystem.get_file_info(selector) if wanted.fullmatch(info.path)]
        return {
            prefix + info.path: FileFacts(prefix + info.path, info.size, info.mtime_ns or 0)
            for info in infos
            if info.type == self._fs.FileType.File
        }

    def _place(self, path: str) -> tuple[Any, str]:
        """Returns the file system of a path or address, and the path in it."""
        if self._given is not None:
            return self._given, path
        address = path.partition("?")[0]
        root = _root(address)
        if root not in self._opened:
            options = self._options.get(root, "")
            try:
                opened, _ = self._fs.FileSystem.from_uri(f"{root}/{'?' + options if options else ''}")
            except (OSError, ValueError, self._arrow_error) as error:
                raise TopologyError(f"pyarrow cannot open the file system of {address!r}: {error}") from error
            self._opened[root] = opened
        scheme, _, host = root.partition("://")
        inner = address.removeprefix(root)
        return self._opened[root], f"{host}{inner}".rstrip("/") if scheme in BUCKETS else inner

    @contextmanager
    def _explained(self, what: str, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, self._arrow_error) as error:
            raise SourceError(
                f"input file {path!r} cannot be {what}: {error}; fix the access to its store and run again"
            ) from error


def _root(address: str) -> str:
    """Scheme and host of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _refuse_credentials(address: str) -> None:
    parts = urlsplit(address)
    if parts.username or parts.password:
        raise TopologyError(
            f"the address of files in {parts.hostname!r} holds credentials, which would be stored with every "
            "transaction: leave them out, and give them by the environment, or by filesystem=pyarrow.fs.S3FileSystem(…)"
        )


def _module() -> Any:
    import pyarrow.fs

    return pyarrow.fs


def glob_expression(pattern: str) -> re.Pattern[str]:
    """Returns a glob as a regular expression: ``*`` within a folder, ``**/`` for any depth, ``[…]``; no ``?``.

    Raises:
        TopologyError: a range of characters is none.
    """
    parts = []
    for token in re.findall(r"\*\*/|\*\*|\*|\[!?[^\]]+\]|.", pattern, re.DOTALL):
        match token:
            case "**/":
                parts.append(r"(?:[^/]+/)*")
            case "**" | "*":
                parts.append(r"[^/]*")
            case _ if token[0] == "[" and len(token) > 1:
                negated = token[1] == "!"
                inner = "".join(c if c == "-" else re.escape(c) for c in token[2 if negated else 1 : -1])
                parts.append(f"[{'^' if negated else ''}{inner}]")
            case _:
                parts.append(re.escape(token))
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise TopologyError(f"pattern {pattern!r} is not a glob: {error}") from None


class ArrowFile(InputFile):
    """A file that pyarrow opened, read by position.

    Args:
        filesystem: of pyarrow.
        inner: the path in it.
        path: how we call it.
        topology_id: for the remedy in messages.
        clock_ns: time of day, as the store tells it.

    Raises:
        SourceError: there is no such file, or it cannot be opened.
    """

    def __init__(
        self, filesystem: Any, inner: str, path: str, topology_id: str, *, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        super().__init__(path, topology_id)
        self._error = require_arrow("a source of files that are not on a local disk").ArrowException
        with self._explained():
            info = filesystem.get_file_info(inner)
            if info.size is None:  # a folder, or nothing
                kind = info.type.name
                if kind == "NotFound":
                    raise SourceError(self.missing())
                raise SourceError(f"input file {path!r} is a {kind.lower()} now, and {FAULT}: {self.remedy()}")
            self._file = filesystem.open_input_file(inner)
        self.stored_bytes = info.size
        self.stamp = stamp_of((info.size, info.mtime_ns or 0, 0, 0), clock_ns())

    @property
    def byte_count(self) -> int:
        return self.stored_bytes

    def read_up_to(self, start: int, end: int) -> bytes:
        if start >= self.stored_bytes or end <= start:
            return b""
        with self._explained():
            content: bytes = self._file.read_at(min(end, self.stored_bytes) - start, start)
        return content

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise SourceError(self.missing()) from error
        except (OSError, self._error) as error:
            raise SourceError(
                f"input file {self.path!r} cannot be read: {error}; fix the access to its store and run again"
            ) from error
