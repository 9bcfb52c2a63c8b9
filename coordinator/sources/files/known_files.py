"""The files of a followed folder that were read, each under its current path (driver).

A path does not identify a file: logs are rotated, compressed in place, or copied and truncated, and paths are reused.
So a file is identified by its inode, size and time, and by the content that was read; its path only says where to look
first. A grown file is read further. A file that may or may not be one we read is reported; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from coordinator.sources.files.file_kind import FileKind
from coordinator.sources.files.prefix_digest import PREFIX_BLOCK_BYTES, PrefixMark, holds, marks_at, whole_mark
from coordinator.sources.files.rotation import is_likely_one, is_one, is_related, is_renamed
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_listing import FileFacts
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import NO_STAMP, InputFile, identity_of, is_settled
from state.errors import SourceError

Complete = Callable[[Mapping[str, FileFacts]], Set[str]]
"""Given path -> facts of files that wait to be read, returns the paths of the complete ones."""


@dataclass(frozen=True, slots=True)
class JoinedFile:
    """A file that is to be read.

    Attributes:
        path: its path when it was found.
        byte_count: how many of its bytes in the store were complete then.
        note: the part that was read already; None for a new file.
        number: its position in the order; 0 where files are ordered by path.
        facts: its facts when it joined a followed folder.
    """

    path: str
    byte_count: int
    note: PrefixMark | None = None
    number: int = 0
    facts: FileFacts | None = None


@dataclass(frozen=True, slots=True)
class Replaced:
    """A path whose file is not the one we read, or has more than we read; with a sentence for the user."""

    path: str
    note: PrefixMark
    sentence: str


@dataclass(frozen=True, slots=True)
class Alike:
    """A file that begins with the bytes read from a vanished file: the same file renamed, or another one."""

    path: str
    former: str
    note: PrefixMark

    @property
    def sentence(self) -> str:
        return (
            f"file {self.path!r} begins with the {self.note.end} bytes that were read of {self.former!r}, which "
            "is gone: it is the same file under a new name, or another of the same content"
        )


@dataclass(slots=True)
class Settled:
    """The result of one look.

    Attributes:
        moved: former path -> current path of every file that was found again.
        joined: complete files that will be read, by path.
        replaced: paths that hold another file than we read.
        outgrown: files that have more than was read and will not be read further; with their former notes.
        alike: see `Alike`.
        missing: path -> note of files that were not found.
    """

    moved: dict[str, str] = field(default_factory=dict)
    missing: dict[str, PrefixMark] = field(default_factory=dict)
    joined: list[JoinedFile] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    outgrown: list[Replaced] = field(default_factory=list)
    alike: list[Alike] = field(default_factory=list)


class KnownFiles:
    """Keeps the notes of all files that were read, and finds each file again; lives in the driver.

    Args:
        store: where the files are.
        kind: decides whether a grown file can be read further.
        removes: whether done files are removed, so that a missing one is not searched for.
        may_grow: whether writers append to complete files, which are then read further.

    Attributes:
        notes: current path -> note of every file that was read.
    """

    def __init__(self, store: FileStore, kind: FileKind, *, removes: bool, may_grow: bool = False) -> None:
        self._store, self._kind, self._removes, self.may_grow = store, kind, removes, may_grow
        self.notes: dict[str, PrefixMark] = {}
        self._sure: dict[str, FileFacts] = {}  # a file's facts when its content was last proven
        self._renamed: dict[str, PrefixMark] = {}  # since the last `take_path_changes`
        self._forgotten: set[str] = set()

    def like_it(self, notes: Mapping[str, PrefixMark]) -> KnownFiles:
        """Returns a new `KnownFiles` with these notes, to compare files without changing this one."""
        made = KnownFiles(self._store, self._kind, removes=self._removes, may_grow=self.may_grow)
        made.recall(notes)
        return made

    def recall(self, notes: Mapping[str, PrefixMark]) -> None:
        """Restores the notes of earlier runs."""
        self.notes = dict(notes)
        self._sure = {path: facts for path, note in notes.items() if (facts := _settled_facts(path, note))}

    def rename(self, moved: Mapping[str, str]) -> None:
        """Moves notes to new paths, given former path -> path; the next transaction stores the change."""
        moved = {former: path for former, path in moved.items() if former != path and former in self.notes}
        notes = {path: self.notes.pop(former) for former, path in moved.items()}
        for former in moved:
            self._sure.pop(former, None)
            self._renamed.pop(former, None)
        self.notes |= notes
        self._renamed |= notes
        self._forgotten |= moved.keys()

    def correct(self, notes: Mapping[str, PrefixMark]) -> None:
        """Replaces the recalled notes; the next transaction stores the differences."""
        former = self.notes
        self.recall(notes)
        self._renamed |= {path: note for path, note in notes.items() if former.get(path) != note}
        self._forgotten |= former.keys() - notes.keys()

    def note(self, path: str, note: PrefixMark) -> None:
        """Records how much of a file has been read."""
        self.notes[path] = note
        if note.is_whole:
            self._sure[path] = FileFacts.of(path, note.stamp)
        else:
            self._sure.pop(path, None)

    def leave(self, path: str) -> None:
        """Notes that the file now at a path is left as it is; whether to leave it, the user decides.

        Raises:
            SourceError: the file cannot be read.
        """
        with closing(self._open(path)) as file:
            self.note(path, whole_mark(file).left())

    def facts_at(self, path: str) -> FileFacts | None:
        """Returns the facts of a file, listed or not; None if it cannot be opened."""
        with suppress(SourceError), closing(self._open(path)) as file:
            return FileFacts.of(path, file.stamp)
        return None

    def path_of(self, mark: PrefixMark, path: str) -> str:
        """Returns the current path of the file with a mark: `path`, unless that content is known under another path."""
        known = self.notes.get(path)
        if known is not None and (known.end, known.digest) == (mark.end, mark.digest):
            return path
        alike = [name for name, note in self.notes.items() if (note.end, note.digest) == (mark.end, mark.digest)]
        return next((name for name in alike if self.notes[name].stamp[3] == mark.stamp[3]), [*alike, path][0])

    def take_path_changes(self, cut: Mapping[str, PrefixMark], current: str) -> dict[str, PrefixMark | None]:
        """See `ReadingOrder.take_path_changes`."""
        names = dict.fromkeys(sorted(self._forgotten)) | self._renamed
        self._renamed, self._forgotten = {}, set()
        for path, mark in cut.items():
            note = self.notes.get(path)
            if path == current or (note is not None and (note.end, note.digest) == (mark.end, mark.digest)):
                names.pop(path, None)  # the file that was cut still has this path
            else:
                names[path] = note
        return names

    def is_strange(self, facts: FileFacts) -> bool:
        """Returns whether a file is unknown, or has changed since its content was last proven."""
        return self._sure.get(facts.path) != facts

    def settle(self, found: Mapping[str, FileFacts], complete: Complete) -> Settled:
        """Identifies every file that is unknown or has changed (driver, at every look).

        Args:
            found: path -> facts of every file that matches.
            complete: returns which files are complete; called once.

        Raises:
            SourceError: a file cannot be read.
        """
        settled = Settled()
        strange = {path: facts for path, facts in found.items() if self.is_strange(facts)}
        lost = {path: note for path, note in self.notes.items() if path not in found or path in strange}
        strange = {path: facts for path, facts in strange.items() if facts.byte_count}  # an empty file waits
        here: dict[str, PrefixMark] = {}  # path -> mark of the file that was found there
        alike: dict[str, Alike] = {}
        for former, path in self._by_identity(lost, strange):
            is_open = former not in settled.moved and path not in here
            if is_open and (mark := self._compared(note := lost[former], path, was_renamed=former != path)) is not None:
                was_removed = self._removes and note.is_whole and former not in found
                is_same = former == path or is_renamed(
                    note, mark, was_removed=was_removed, is_related=is_related(former, path)
                )
                if is_same:
                    settled.moved[former], here[path] = path, mark
                elif is_same is None:
                    alike[path] = Alike(path, former, note)
        candidates = {path: facts for path, facts in strange.items() if path not in here or not here[path].is_whole}
        ready = complete(candidates)
        waiting = {path: facts for path, facts in candidates.items() if path not in here and path not in ready}
        settled.alike = [each for path, each in sorted(alike.items()) if path in ready - here.keys()]
        for path in sorted(ready - here.keys() - alike.keys()) if lost else ():
            self._find_by_content(path, lost, found, settled, here)
        explained = settled.moved.keys() | here.keys() | {each.former for each in settled.alike}
        replaced = {path: lost[path] for path in (lost.keys() & strange.keys()) - explained}
        settled.replaced = [*self._replaced(replaced, ready, waiting), *self._others(lost, here)]
        self._keep_nameless(settled, lost, waiting)
        self._take_over(settled, found, here)
        settled.missing = {path: note for path, note in lost.items() if path not in settled.moved}
        read = {path for path, mark in here.items() if mark.is_whole}
        for path in sorted(ready - read - replaced.keys() - {each.path for each in settled.alike}):
            names = [name for name, now in settled.moved.items() if now == path]
            self._join(found[path], lost[names[0]] if names else None, settled)
        return settled

    def _by_identity(
        self, lost: Mapping[str, PrefixMark], strange: Mapping[str, FileFacts]
    ) -> Iterator[tuple[str, str]]:
        """Yields former and current path of files that may be the same: first by inode, then by path."""
        by_inode = {facts.inode: path for path, facts in strange.items() if facts.inode}
        for path, note in sorted(lost.items(), key=lambda each: -each[1].end):
            if note.stamp != NO_STAMP and note.stamp[3] in by_inode:
                yield path, by_inode[note.stamp[3]]
        for path in lost.keys() & strange.keys():
            yield path, path

    def _compared(self, note: PrefixMark, path: str, *, was_renamed: bool) -> PrefixMark | None:
        """Returns the mark of a file if it begins with the bytes that were read, otherwise None.

        An untouched file is not read again. Renaming touches a file, so only its last block is compared then.
        """
        with closing(self._open(path)) as file:
            is_left_alone = file.stamp == note.stamp or (
                was_renamed
                and identity_of(file.stamp) == identity_of(note.stamp)
                and note.end % PREFIX_BLOCK_BYTES
                and holds(file, note)
            )
            if is_settled(note.stamp) and is_left_alone:
                return replace(note, stamp=file.stamp)
            return if_read(marks_at(file, {note.end}).get(note.end), note, file)

    def _find_by_content(
        self,
        path: str,
        lost: Mapping[str, PrefixMark],
        found: Mapping[str, FileFacts],
        settled: Settled,
        here: dict[str, PrefixMark],
    ) -> None:
        """Looks for the missing file whose bytes a file begins with."""
        sought = {former: note for former, note in lost.items() if former not in settled.moved}
        if self._removes:  # done files were removed by a run
            sought = {former: note for former, note in sought.items() if former in found or not note.is_whole}
        with closing(self._open(path)) as file:
            limit = None if file.is_compressed else file.stored_bytes
            marks = marks_at(file, {n.end for n in sought.values() if limit is None or n.end <= limit})
            for former, note in sorted(sought.items(), key=lambda each: -each[1].end):
                if former == path:
                    continue
                mark = if_read(marks.get(note.end), note, file)
                shortened = _shortened(former, note, found)
                is_same = mark is not None and is_one(
                    note,
                    mark,
                    is_cut_off=former in shortened or any(is_related(former, other) for other in shortened),
                    is_packed=file.is_compressed,
                    is_related=is_related(former, path),
                )
                if is_same and mark is not None:
                    settled.moved[former], here[path] = path, mark
                elif is_same is None:
                    settled.alike.append(Alike(path, former, note))
                if is_same is not False:
                    return

    def _replaced(
        self, replaced: Mapping[str, PrefixMark], ready: Set[str], waiting: Mapping[str, FileFacts]
    ) -> Iterator[Replaced]:
        """Yields the paths that hold another file, once no waiting file can be the one that was read."""
        for path, note in sorted(replaced.items()):
            end = note.end
            if path in ready and not any(
                facts.byte_count >= end or is_related(path, other) for other, facts in waiting.items()
            ):
                with closing(self._open(path)) as file:
                    is_shorter = not file.read_up_to(end - 1, end)
                now = "is shorter now" if is_shorter else "differs from them now"
                yield Replaced(path, note, f"file {path!r} has changed: {end} bytes of it were read, and it {now}")

    def _others(self, lost: Mapping[str, PrefixMark], here: Mapping[str, PrefixMark]) -> Iterator[Replaced]:
        """Yields files that have the path and content of one we read, but another identity, and so are not removed."""
        for path, note in lost.items() if self._removes else ():
            read, found = note, here.get(path)
            if found is None or not read.is_whole or read.stamp == NO_STAMP or found.digest != read.digest:
                continue
            if found.is_whole and identity_of(found.stamp) != identity_of(read.stamp):
                yield Replaced(
                    path,
                    note,
                    f"file {path!r} holds what was read under that name, and is another file by inode or time: it "
                    "would neither be read nor removed",
                )

    def _keep_nameless(self, settled: Settled, lost: Mapping[str, PrefixMark], waiting: Collection[str]) -> None:
        """Gives a made-up name to a file whose path another file has taken, while its compressed copy may be waiting.

        Otherwise the copy would be taken for a new file once it is complete.
        """
        taken = set() if self._removes else settled.moved.values() - settled.moved.keys()
        for path, note in sorted(lost.items()):
            is_nameless = note.is_made_up(path)
            if path in settled.moved or not (is_nameless or path in taken):
                continue
            if note.is_whole and any(is_related(path, other) for other in waiting):
                settled.moved[path] = path if is_nameless else note.made_up_name(path)
            elif is_nameless:
                del self.notes[path]
                self._forgotten.add(path)

    def _take_over(self, settled: Settled, found: Mapping[str, FileFacts], here: Mapping[str, PrefixMark]) -> None:
        """Records the current name and metadata of each file."""
        for former, path in settled.moved.items():
            if path in here:
                self.notes[former] = replace(here[path], record_count=self.notes[former].record_count)
        self.rename(settled.moved)
        self._sure |= {path: found[path] for path, mark in here.items() if mark.is_whole}

    def forget_former_name(self, former: str, note: PrefixMark) -> str | None:
        """Forgets a note under a path that its file no longer had when it was stored (at the start of a run).

        Returns:
            The path under which the file is known; None if it is not found.
        """
        for path, other in self.notes.items():
            has_its_inode = bool(note.stamp[3]) and other.stamp[3] == note.stamp[3]
            may_be_it = other.end >= note.end and is_likely_one(former, path, note.end, has_its_inode=has_its_inode)
            if path != former and may_be_it and self._compared(note, path, was_renamed=True) is not None:
                if self.notes.get(former) == note:  # unless it describes another file that has the path now
                    del self.notes[former]
                return path
        return None

    def _join(self, facts: FileFacts, former: PrefixMark | None, settled: Settled) -> None:
        """Queues a new or grown file to be read, or reports growth that cannot be read."""
        path, note = facts.path, None if former is None else self.notes[facts.path]
        if former is None or (note is not None and self._can_continue(path, note)):
            settled.joined.append(JoinedFile(path, facts.byte_count, note, facts=facts))
        else:
            said = f"file {path!r} was complete with {former.end} bytes of content, and has more now, which would "
            settled.outgrown.append(Replaced(path, former, f"{said}never be read"))

    def _can_continue(self, path: str, note: PrefixMark) -> bool:
        if not self.may_grow or note.record_count is None or note.is_left:
            return False
        with closing(self._open(path)) as file:
            return self._kind.ends_at(file, note.end)

    def _open(self, path: str) -> InputFile:
        return open_content(self._store, self._store.place_of(path) or path)


def _shortened(path: str, read: PrefixMark, found: Mapping[str, FileFacts]) -> set[str]:
    """Returns the paths where a file that was read may still be, with less content."""
    inode = read.stamp[3]
    left = {other for other, facts in found.items() if inode and facts.inode == inode and facts.byte_count < read.end}
    return left | {path} if path in found and found[path].inode in (0, inode) else left


def if_read(found: PrefixMark | None, read: PrefixMark, file: InputFile) -> PrefixMark | None:
    """Returns the mark that was found in a file; None if its digest is not that of the bytes that were read."""
    if found is None or found.digest != read.digest:
        return None
    return replace(found, is_whole=not file.read_up_to(read.end, read.end + 1))


def _settled_facts(path: str, mark: PrefixMark) -> FileFacts | None:
    return FileFacts.of(path, mark.stamp) if mark.is_whole and is_settled(mark.stamp) else None
