"""Lists, moves or deletes input files once all their content is committed, never earlier.

The coordinator of a source records the transaction in which each file ends; the run notifies `DoneFiles` of durable
transactions. Both live in the driver. If a run dies in between, the next run lists, moves or deletes the files when the
last transaction is notified again.

By then another file may have the same path. So a file is compared with the bytes that were read, renamed to a private
name that no writer uses, compared again, and only then removed. If a run dies in between, the next run restores the
name once it owns the topology, before it lists files. Until then the file is compared under its private name.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator.sources.files.follow import Follow
from coordinator.sources.files.prefix_digest import PrefixMark, marks_at
from coordinator.sources.files.record_ranges import parse_ranges
from coordinator.sources.files.stores.compressed_file import close_kept, open_content
from coordinator.sources.files.stores.file_listing import FileFacts
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import NO_STAMP, FileStamp, identity_of, is_settled
from coordinator.spouts.committing import SpoutCommitter
from state.attempt import TransactionAttempt
from state.errors import SourceError
from state.fault_points import reached

_LOG = logging.getLogger("txbatch.files")
PLACE = "done:"
"""Prefix of notes about the places of done files. Notes about files begin with a slash, or an address's scheme."""


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """A file that was cut to its end, and its mark at that time."""

    path: str
    mark: PrefixMark


class FinishedFiles:
    """The files that end in each transaction; shared by the coordinator and the committer of one run.

    Args:
        removes: whether done files are moved or deleted.

    Attributes:
        recover: puts back the files that an earlier run has set aside. Does nothing unless a `DoneFiles` is made: a run
            without one, such as a dry run, leaves the folder alone.
    """

    def __init__(self, *, removes: bool = False) -> None:
        self.removes = removes
        self.recover: Callable[[], None] = lambda: None
        self._by_txid: dict[int, tuple[FinishedFile, ...]] = {}
        self._gone: set[str] = set()

    def cut(self, txid: int, files: Iterable[FinishedFile]) -> None:
        """Records the files that end in a transaction; replaces those of an earlier cut."""
        if found := tuple(files):
            self._by_txid[txid] = found
        else:
            self._by_txid.pop(txid, None)

    def take(self, txid: int) -> list[FinishedFile]:
        """Removes and returns the files that end in this transaction or an earlier one."""
        due = sorted(number for number in self._by_txid if number <= txid)
        return [file for number in due for file in self._by_txid.pop(number)]

    def note_gone(self, path: str) -> None:
        """Records that a file was moved or deleted, so that a new file at its path is refused."""
        self._gone.add(path)

    def refuse_again(self, found: Iterable[str]) -> None:
        """Raises SourceError if a removed file's path holds a file again: it would never be read."""
        for path in found:
            if path in self._gone:
                raise SourceError(
                    f"input file {path!r} has the name of one that was read, committed and removed, and every path is "
                    "read once: give it a new name and run again; its writer has to take a new name for each file"
                )


class DoneDestinations:
    """The lists and folders for done files, of this run and earlier ones; no file in them is input.

    Each place is stored as a note, so that a run with other options still knows it.

    Args:
        done: see `Follow`.
        place: path of the list or folder, links resolved; "" if files are kept or deleted.
    """

    def __init__(self, done: str = "keep", place: str = "") -> None:
        self._now = f"{PLACE}{done}:{place}" if place else ""
        self._known: set[str] = set()

    def recall(self, notes: Mapping[str, Any]) -> dict[str, Any]:
        """Restores the places from the notes, and returns the other notes."""
        self._known.update(name for name in notes if name.startswith(PLACE))
        return {name: note for name, note in notes.items() if not name.startswith(PLACE)}

    def notes(self) -> dict[str, Any]:
        """Returns the note of this run's place, unless it is stored already."""
        return {self._now: True} if self._now and self._now not in self._known else {}

    def tell_change(self, topology_id: str) -> None:
        """Logs a warning for each place of earlier runs, which is still not read."""
        for former in sorted(self._known - {self._now}):
            done, _, place = former.removeprefix(PLACE).partition(":")
            _LOG.warning(
                "topology %r: earlier runs had done=%r, done_path=%r of Follow; what is there is still not read",
                *(topology_id, done, place),
            )

    def without(self, found: Mapping[str, FileFacts], store: FileStore) -> dict[str, FileFacts]:
        """Returns the files that are in none of these places."""
        names = self._known | ({self._now} if self._now else set())
        places = [name.removeprefix(PLACE).partition(":")[::2] for name in names]
        folders = tuple(f"{place.rstrip('/')}/" for done, place in places if done == "move")
        lists = {place for done, place in places if done == "list"}
        return {
            path: facts
            for path, facts in found.items()
            if not path.startswith(folders) and not (lists and store.resolved(path).removeprefix("file://") in lists)
        }


class DoneFiles(SpoutCommitter):
    """Lists, moves or deletes files that are done; made once a run (driver).

    Args:
        finished: the files that end in each transaction.
        follow: says what to do with done files; None keeps them.
        store: where the files are.
        place: see `DoneDestinations`.
    """

    def __init__(self, finished: FinishedFiles, follow: Follow | None, store: FileStore, place: str) -> None:
        self._finished, self._store = finished, store
        self._done = "keep" if follow is None else follow.done
        self._marker = follow.marker if follow is not None and follow.complete == "marker" else ""
        self._place = place
        self._list = DoneList(Path(place))
        self._kept: frozenset[str | int] = frozenset()  # paths, and inodes of files that may have been renamed

    def keep(self, batches: Collection[Any]) -> None:
        """Keeps the files of quarantined batches until the batches are republished or dropped."""
        kept: set[str | int] = set()
        for metadata in batches:
            with suppress(SourceError):  # metadata of another kind of source
                for each in parse_ranges(metadata):
                    kept |= {each.path, *(() if each.mark is None else (each.mark.stamp[3],))}
        self._kept = frozenset(kept - {0})

    def commit(self, attempt: TransactionAttempt) -> None:
        """Lists, moves or deletes every file that ends in this transaction or an earlier one.

        Raises:
            SourceError: a file's path now holds another file, or the file cannot be moved, deleted or listed.
        """
        ended = self._finished.take(attempt.txid)
        files = [file for file in ended if not self._is_kept(file)]
        self._finished.cut(attempt.txid, filter(self._is_kept, ended))
        if self._done == "list":
            self._list.append(file.path for file in files)
        elif self._finished.removes:
            for file in files:
                self._remove(file)
                self._finished.note_gone(file.path)

    def _is_kept(self, file: FinishedFile) -> bool:
        return file.path in self._kept or file.mark.stamp[3] in self._kept

    def _remove(self, file: FinishedFile) -> None:
        store = self._store
        if not store.exists(file.path):
            return
        close_kept()
        is_untouched = self._checked_stamp(file, file.path) == file.mark.stamp and is_settled(file.mark.stamp)
        reached("done_file.checked")
        aside = store.set_aside(file.path)
        reached("done_file.set_aside")
        try:
            if not is_untouched or not store.keeps_our_time(aside):
                self._refuse_other_content(file, aside)
            self._checked_stamp(file, aside)
            reached("done_file.compared")
            # the marker first: if we crash after it, the next run still knows the file and finds it again
            for path in [file.path + self._marker, aside] if self._marker else [aside]:
                if self._done == "delete":
                    store.delete(path)
                else:
                    store.move(path, self._place)
        except SourceError:
            store.put_back(file.path)
            raise

    def _checked_stamp(self, file: FinishedFile, path: str) -> FileStamp:
        """Returns the stamp of the file at a path; raises SourceError if it cannot be the file that was read."""
        with closing(self._store.open(path)) as found:
            stamp, read = found.stamp, file.mark.stamp
        if read != NO_STAMP and identity_of(stamp) != identity_of(read):
            self._refuse(file, stamp)
        return stamp

    def _refuse_other_content(self, file: FinishedFile, path: str) -> None:
        """Raises SourceError if the content has changed; called if the stamp does not prove that it is unchanged."""
        end = file.mark.end
        with closing(open_content(self._store, path)) as found:
            same = marks_at(found, {end}).get(end)
            has_more = file.mark.stamp == NO_STAMP and found.read_up_to(end, end + 1)
            if same is None or same.digest != file.mark.digest or has_more:
                self._refuse(file, found.stamp)
        close_kept()

    def _refuse(self, file: FinishedFile, found: FileStamp) -> None:
        what = "deleted" if self._done == "delete" else "moved"
        read = file.mark.stamp
        if read != NO_STAMP and found[0] != read[0] and found[3] == read[3]:
            raise SourceError(
                f"input file {file.path!r} had {read[0]} bytes when it was complete, was read and committed, and has "
                f"{found[0]} bytes now, so it is not {what}: its writer was not done; give Follow a longer quiet_s, or "
                "complete='rename' or 'marker', and deal with this file by hand"
            )
        raise SourceError(
            f"input file {file.path!r} is not the file that was read and committed, so it is not {what}: it was "
            "replaced or rewritten since; every path is read once, so give it a new name if it is to be read, or "
            "delete it by hand, and run again"
        )


class DoneList:
    """The list of done files, which only grows; lives in the driver.

    Args:
        path: path of the list on this machine.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listed: set[str] | None = None
        self._torn = ""  # an incomplete last line, left by a crash or a full disk

    def append(self, paths: Iterable[str]) -> None:
        """Appends the paths that are not listed yet.

        Raises:
            SourceError: the list cannot be read or written.
        """
        try:
            self._append_fresh(paths)
        except OSError as error:
            self._listed = None  # part of it may be written: the next call reads the list again
            raise SourceError(
                f"the list of finished files, {str(self._path)!r}, cannot be written: {error.strerror or error}; let "
                "done_path of Follow name a file that this user may write, in a folder that exists, and run again"
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
        if self._torn:  # complete it if one of these paths begins with it
            fresh.sort(key=lambda line: not line.startswith(self._torn))
            fresh[0] = fresh[0].removeprefix(self._torn) if fresh[0].startswith(self._torn) else f"\n{fresh[0]}"
            self._torn = ""
        with self._path.open("ab") as file:
            file.write("".join(f"{line}\n" for line in fresh).encode())


def line_of(path: str) -> str:
    """Returns the line that lists a path."""
    return path if path.isprintable() and not path.startswith('"') else json.dumps(path)


def path_of(line: str) -> str:
    """Returns the path on a line of the list: decoded if the line is a JSON string, otherwise the line itself."""
    try:
        return str(json.loads(line)) if line.startswith('"') else line
    except ValueError:
        return line
