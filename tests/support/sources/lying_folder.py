"""A folder that others write between any two calls of a store: what is asked, and what was read, is different then."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

from coordinator.sources.files.stores.arrow_store import ArrowFile, ArrowStore
from coordinator.sources.files.stores.file_listing import FileFacts
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.sources.files.stores.local_store import LocalFile, LocalStore
from tests.support.sources.growing_folder import Crash, files_below

CALLS = ("look", "list_files", "byte_count", "set_aside", "put_back", "recover", "delete", "move", "open")


class Lie(Enum):
    """What strikes before a call is answered; those after `CRASHES` concern this answer alone."""

    APPEARS = "a file joins"
    VANISHES = "a file is removed"
    REPLACED = "a file is replaced by another of the same name, size and time"
    REWRITTEN = "a file is rewritten in place, and has its former size and time"
    GROWS = "lines are appended to a file"
    CRASHES = "the process that asks dies"
    IS_LATE = "a listing lacks the file that joined last"
    IS_TURNED = "a listing has another order"
    HAS_GHOST = "a listing has a file that is gone"


BENIGN = (Lie.APPEARS, Lie.CRASHES, Lie.IS_LATE, Lie.IS_TURNED)
"""What no run that follows a folder has to end for."""


@dataclass(frozen=True, slots=True)
class Struck:
    """One lie of a plan: `after` so many calls since the one before, at the file `place` points to."""

    after: int
    lie: Lie
    place: int = 0


class LyingFolder:
    """The folder, and everything that was ever written into it.

    Args:
        folder: is empty.
        plan: what strikes, in order.
        pack: makes the bytes of a file; those of two may follow one another in one file.

    Attributes:
        written: what was ever written under one name at one time: name -> contents, each a list of lines.
        destroyed: the contents that others have removed or replaced.
        struck: the lies so far.
    """

    def __init__(self, folder: Path, plan: Sequence[Struck], pack: Callable[[bytes], bytes]) -> None:
        self.folder, self._left, self._pack = folder, list(plan), pack
        self._calls = self._depth = 0
        self.written: dict[str, list[list[str]]] = {}
        self.destroyed: list[list[str]] = []
        self.struck: list[Lie] = []
        self._opened: list[InputFile] = []
        for place in range(2):
            self._put(f"{'mz'[place]}{place}", 3 + place)

    def has_more(self) -> bool:
        """Whether a lie of the plan has not struck yet."""
        return bool(self._left)

    def settle(self) -> None:
        """No further lie."""
        self._left.clear()

    def close_files(self) -> None:
        """Closes what a process that died had open, as its end does."""
        while self._opened:
            self._opened.pop().close()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Has every store and every file of the process lie meanwhile."""
        with ExitStack() as patched:
            for store, file in ((LocalStore, LocalFile), (ArrowStore, ArrowFile)):
                for call in CALLS:
                    patched.enter_context(patch.object(store, call, self._struck(getattr(store, call))))
                patched.enter_context(patch.object(file, "read_up_to", self._struck(file.read_up_to)))
            yield

    def current(self) -> dict[str, list[str]]:
        """Name -> lines, of the files that are there now under their own names."""
        return {name: contents[-1] for name, contents in self.written.items() if self._path(name).exists()}

    def kept(self) -> list[bytes]:
        """The content of everything below the folder's parent, under whatever name."""
        return [path.read_bytes() for path in files_below(self.folder.parent)]

    def packed(self, lines: list[str]) -> bytes:
        """What a file with these lines holds; one that has grown, of its first lines and of those after them."""
        return b"".join(self._pack("".join(f"{line}\n" for line in part).encode()) for part in _parts(lines))

    def _struck(self, real: Any) -> Any:
        def call(store: Any, *arguments: Any, **more: Any) -> Any:
            lie = self._asked() if not self._depth else None
            self._depth += 1
            try:
                return self._altered(lie, real(store, *arguments, **more))
            finally:
                self._depth -= 1

        return call

    def _asked(self) -> Lie | None:
        self._calls += 1
        if not self._left or self._calls <= self._left[0].after:
            return None
        due, self._calls = self._left.pop(0), 0
        self.struck.append(due.lie)
        self._change(due.lie, due.place)
        return due.lie

    def _altered(self, lie: Lie | None, answer: Any) -> Any:
        """Alters one listing of a folder that is followed."""
        if isinstance(answer, InputFile):
            self._opened.append(answer)
        if not isinstance(answer, dict):
            return answer
        found = dict(answer)
        if lie is Lie.IS_LATE:
            newest = [path for path in found if Path(path).stem == [*self.written][-1]]
            return {path: facts for path, facts in found.items() if path not in newest}
        if lie is Lie.IS_TURNED:
            return dict(reversed(found.items()))
        if lie is Lie.HAS_GHOST:
            path = next((path for path in found), str(self._path("g")))
            ghost = str(Path(path).with_name("ghost.txt")) if found else path
            return found | {ghost: FileFacts(ghost, 6, 1)}
        return found

    def _change(self, lie: Lie, place: int) -> None:
        if lie is Lie.CRASHES:
            raise Crash
        if lie is Lie.APPEARS:
            self._put(f"{'amz'[place % 3]}{len(self.written)}", 1 + place % 4)
            return
        names = sorted(self.current())
        if not names or lie not in (Lie.VANISHES, Lie.REPLACED, Lie.REWRITTEN, Lie.GROWS):
            return
        name = names[place % len(names)]
        path, before = self._path(name), self.written[name][-1]
        told = path.stat()
        if lie is Lie.GROWS:
            self.written[name][-1] = [*before, f"{name}+{len(before):03}"]
            with path.open("ab") as file:
                file.write(self._pack(f"{name}+{len(before):03}\n".encode()))
            return
        self.destroyed.append(before)
        if lie is Lie.VANISHES:
            path.unlink()
            return
        if lie is Lie.REPLACED:
            path.unlink()
        self._put(name, len(before))
        os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))

    def _put(self, name: str, count: int) -> None:
        contents = self.written.setdefault(name, [])
        lines = [f"{name}.{len(contents)}.{number}" for number in range(count)]
        contents.append(lines)
        self._path(name).write_bytes(self.packed(lines))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.txt"


def _parts(lines: list[str]) -> list[list[str]]:
    first = [line for line in lines if "+" not in line]
    return [first, *([line] for line in lines if "+" in line)]
