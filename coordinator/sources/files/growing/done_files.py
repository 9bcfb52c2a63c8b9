"""What becomes of files whose content is committed: they are listed, moved or deleted, never earlier.

The coordinator of a source notes in which transaction a file was cut to its end; the run tells the `DoneFiles` which
transactions are durable. Both live in the driver. A run that dies in between finds the files again: whatever earlier
runs have read to its end and committed is dealt with once the last transaction is told again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coordinator.sources.files.growing.follow import Follow
from coordinator.sources.files.stores.compressed_file import close_kept
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.spouts.committing import SpoutCommitter
from state.attempt import TransactionAttempt
from state.errors import SourceError


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """A file that was cut to its end.

    Attributes:
        path: of it.
        byte_count: its size in the store then; None if an earlier run has cut it.
    """

    path: str
    byte_count: int | None = None


class FinishedFiles:
    """Which files end in which transaction; shared by coordinator and committer of one run."""

    def __init__(self) -> None:
        self._by_txid: dict[int, tuple[FinishedFile, ...]] = {}

    def cut(self, txid: int, files: Iterable[FinishedFile]) -> None:
        """Notes what ends in a transaction; one that is cut again replaces what was noted."""
        self._by_txid[txid] = tuple(files)

    def take(self, txid: int) -> list[FinishedFile]:
        """Files that end in a transaction or before, each told once."""
        due = sorted(number for number in self._by_txid if number <= txid)
        return [file for number in due for file in self._by_txid.pop(number)]


class DoneFiles(SpoutCommitter):
    """Deals with files that are done; made once a run (driver).

    Args:
        finished: which files end in which transaction.
        follow: says what becomes of them; None leaves all alone.
        store: where the files are.
        folder: what a relative `Follow.done_path` starts from.
    """

    def __init__(self, finished: FinishedFiles, follow: Follow | None, store: FileStore, folder: str) -> None:
        self._finished, self._store = finished, store
        self._done = "keep" if follow is None else follow.done
        self._marker = follow.marker if follow is not None and follow.complete == "marker" else ""
        self._done_path = "" if follow is None else follow.done_path
        self._list = Path(folder, self._done_path)
        self._listed: set[str] | None = None
        self._is_torn = False

    def commit(self, attempt: TransactionAttempt) -> None:
        """Deals with every file that ends in the transaction or before.

        Raises:
            SourceError: a file has changed since it was cut, or cannot be moved, deleted or listed.
        """
        files = self._finished.take(attempt.txid)
        if self._done == "list":
            self._append(file.path for file in files)
        elif self._done in ("move", "delete"):
            for file in files:
                self._remove(file)

    def _remove(self, file: FinishedFile) -> None:
        if not self._store.exists(file.path):
            return
        self._refuse_grown(file)
        close_kept()
        # the marker first: without it a file that a crash leaves is known, and found again by the next run
        paths = [file.path + self._marker, file.path] if self._marker else [file.path]
        for path in paths:
            if self._done == "delete":
                self._store.delete(path)
            else:
                self._store.move(path, self._done_path)

    def _refuse_grown(self, file: FinishedFile) -> None:
        found = self._store.byte_count(file.path)
        if file.byte_count is not None and found != file.byte_count:
            raise SourceError(
                f"input file {file.path!r} had {file.byte_count} bytes when it was complete, was read and committed, "
                f"and has {found} bytes now, so it is not {'deleted' if self._done == 'delete' else 'moved'}: its "
                "writer was not done; give Follow a longer quiet_s, or complete='rename' or 'marker', and deal with "
                "this file by hand"
            )

    def _append(self, paths: Iterable[str]) -> None:
        try:
            self._append_fresh(paths)
        except OSError as error:
            raise SourceError(
                f"list {str(self._list)!r} of files that are done cannot be written: {error.strerror or error}; give "
                "Follow the done_path of a file that this user may write, in a folder that exists, and run again"
            ) from error

    def _append_fresh(self, paths: Iterable[str]) -> None:
        if self._listed is None:
            before = self._list.read_text("utf-8") if self._list.exists() else ""
            self._listed = set(before.splitlines())
            self._is_torn = bool(before) and not before.endswith("\n")  # a crash in the middle of a line
        fresh = [path for path in paths if path not in self._listed]
        if fresh:
            lines = "".join(f"{path}\n" for path in fresh)
            with self._list.open("a", encoding="utf-8") as file:
                file.write(f"\n{lines}" if self._is_torn else lines)
            self._is_torn = False
            self._listed.update(fresh)
