"""The list of files that are done: a path a line, each once, also over restarts and torn lines.

A path that holds anything but printable characters, or begins with a quote, stands as a JSON string, so no name can
forge a line or split one. Every other line is the path itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from state.errors import SourceError


class DoneList:
    """Appends to one list; lives in the driver.

    Args:
        path: of the list, on this machine.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listed: set[str] | None = None
        self._torn = ""  # a last line without an end: a crash, or a full disk, in the middle of it

    def append(self, paths: Iterable[str]) -> None:
        """Lists those of some paths that are not listed yet.

        Raises:
            SourceError: the list cannot be read or written.
        """
        try:
            self._append_fresh(paths)
        except OSError as error:
            self._listed = None  # part of it may be written: the next call looks
            raise SourceError(
                f"list {str(self._path)!r} of files that are done cannot be written: {error.strerror or error}; give "
                "Follow the done_path of a file that this user may write, in a folder that exists, and run again"
            ) from error

    def _append_fresh(self, paths: Iterable[str]) -> None:
        if self._listed is None:
            before = self._path.read_bytes().decode(errors="replace") if self._path.exists() else ""
            *lines, self._torn = before.split("\n")
            self._listed = set(map(path_of, lines))
        fresh = [line_of(path) for path in paths if path not in self._listed]
        if not fresh:
            return
        self._listed.update(map(path_of, fresh))
        if self._torn:  # it is completed if it is one of ours
            fresh.sort(key=lambda line: not line.startswith(self._torn))
            fresh[0] = fresh[0].removeprefix(self._torn) if fresh[0].startswith(self._torn) else f"\n{fresh[0]}"
            self._torn = ""
        with self._path.open("ab") as file:
            file.write("".join(f"{line}\n" for line in fresh).encode())


def line_of(path: str) -> str:
    """How a path stands in the list."""
    return path if path.isprintable() and not path.startswith('"') else json.dumps(path)


def path_of(line: str) -> str:
    """The path that a line of the list names; a line of another form is taken as a path."""
    try:
        return str(json.loads(line)) if line.startswith('"') else line
    except ValueError:
        return line
