"""The base class of all sources of files: patterns, a store, a fingerprint, and the objects made from them."""

from __future__ import annotations

import glob
import itertools
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.option_checks import positive
from coordinator.sources.files.done_files import DoneDestinations, DoneFiles, FinishedFiles
from coordinator.sources.files.file_coordinator import FileCoordinator
from coordinator.sources.files.file_kind import EDGE_BYTES, FileKind, FoundFile, find_file
from coordinator.sources.files.follow import FolderWatch, Follow, checked_follow
from coordinator.sources.files.known_files import KnownFiles
from coordinator.sources.files.reading_order import GrowingOrder, ReadingOrder, SortedOrder
from coordinator.sources.files.record_ranges import RecordRange, parse_share, sharing_tasks, words_of
from coordinator.sources.files.stores.compressed_file import open_content
from coordinator.sources.files.stores.file_listing import FileFacts
from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.input_file import InputFile
from coordinator.sources.files.stores.local_store import LocalStore
from coordinator.sources.files.stores.packed_files import head_of
from coordinator.spouts.committing import ICommitterTransactionalSpout
from coordinator.spouts.transactional import ITransactionalSpout, SpoutEmitter
from state.attempt import TransactionAttempt
from state.codec import digest64
from state.errors import SourceError, TopologyError

PATTERNS_SHOWN = 3
DESTROYED = {"delete": "done files are deleted", "move": "done files are moved away"}
Pattern: TypeAlias = str | os.PathLike[str]


class FileSpout(ITransactionalSpout, ICommitterTransactionalSpout):
    """Files that match patterns, cut into transactions by records; subclasses define what a record is.

    Args:
        pattern: see `TextFiles`.
        records_per_batch: records per transaction.
        batch_parameter: the user's name for `records_per_batch`, for messages.
        kind: the kind of the files.
        follow: whether, and how, to wait for new files.
        filesystem: a file system of pyarrow; None to choose it by the patterns.

    Raises:
        TopologyError: a parameter is invalid.
    """

    def __init__(
        self,
        pattern: Pattern | Sequence[Pattern],
        records_per_batch: int | str,
        batch_parameter: str,
        kind: FileKind,
        *,
        follow: bool | Follow,
        filesystem: Any,
    ) -> None:
        owner = type(self).__name__
        self.patterns = _patterns(owner, pattern)
        self.records_per_batch = positive(owner, batch_parameter, records_per_batch)
        self.kind = kind
        self.follow = checked_follow(follow)
        self.destruction = "" if self.follow is None else DESTROYED.get(self.follow.done, "")
        self._folder = os.getcwd()  # noqa: PTH109 - a plain string, as everything that is stored
        self.store: FileStore = choose_store(owner, self.patterns, self._folder, filesystem)
        self._paths: tuple[str, ...] | None = None
        self._found: Mapping[str, FoundFile] = {}
        self._finished: FinishedFiles | None = None
        self._places = DoneDestinations()

    def find_input(self) -> None:
        if self.follow is None:
            self.paths()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self.kind.declare(declarer)

    def paths(self) -> tuple[str, ...]:
        """Returns the absolute paths, or addresses, of the files that existed at the start, in order.

        Raises:
            TopologyError: a pattern matches no file, or a file is of another kind.
        """
        if self._paths is None:
            self._paths = self.store.list_files(self.patterns)
            for path in self._paths if isinstance(self.store, LocalStore) else ():
                said = self.kind.refusal(path, head_of(path))
                if said:
                    raise TopologyError(said)
        return self._paths

    def recut(self, is_coarser: bool) -> FileSpout:
        """Returns the same input in larger transactions, or in smaller ones (for proofs)."""
        other = copy(self)
        other.records_per_batch = self.records_per_batch * 1000 if is_coarser else max(1, self.records_per_batch // 3)
        return other

    @property
    def is_endless(self) -> bool:
        """Whether the input has no end."""
        return self.follow is not None

    @property
    def input_places(self) -> tuple[str, ...]:
        """Patterns of all files that are read; see `shared_input`."""
        return tuple(map(self.store.absolute, self.patterns))

    @property
    def filled_places(self) -> tuple[str, ...]:
        """Pattern of the folder that done files are moved to; empty if they are not moved."""
        return (f"{self._done_place().rstrip('/')}/*",) if self.destruction == DESTROYED["move"] else ()

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> FileCoordinator:
        return self.coordinator(context)

    def coordinator(
        self, context: TopologyContext, *, clock: Callable[[], float] = time.monotonic, **more: Any
    ) -> FileCoordinator:
        """Makes the coordinator (driver, once a run).

        Args:
            context: context of the spout.
            clock: monotonic seconds; decides when to list a folder again.
            more: further arguments of `FileCoordinator`.
        """
        self._refuse_own_folder()
        finished = self._finished = FinishedFiles(removes=bool(self.destruction))
        places = self._places = DoneDestinations("" if self.follow is None else self.follow.done, self._done_place())
        store = self.store.of(context.topology_id)
        if self.follow is None:
            self._found = {path: find_file(self.kind, store, path) for path in self.paths()}
        order, number = self._order(store, finished, clock), self.records_per_batch
        more |= {"found": self._found, "finished": finished, "places": places}
        return FileCoordinator(self.kind, store, order, number, context, **more)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> FileEmitter:
        patterns = self.patterns if self.follow is not None else ()
        return FileEmitter(self.kind, self.store.of(context.topology_id), context, patterns)

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> DoneFiles:
        finished, store = self._finished or FinishedFiles(), self.store.of(context.topology_id)
        if self.follow is not None:
            finished.recover = partial(store.recover, self.patterns)
        return DoneFiles(finished, self.follow, store, self._done_place())

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        try:
            return frozenset(sharing_tasks(metadata, task_count, number=txid))
        except (LookupError, TypeError):
            return range(task_count)  # each of them raises an error that names the foreign metadata

    def describe(self, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        """Returns the patterns, the number and size of the files, and a digest of their paths, sizes and beginnings.

        Patterns become absolute paths without links or ``..``, so another spelling means the same input. A followed
        folder has only its patterns, since every file that matches belongs to the input. Otherwise the sizes are those
        that the last coordinator of this spec has found: later growth is for the next run.

        Raises:
            SourceError: a file is missing or cannot be read.
        """
        patterns = [self.store.absolute(pattern) for pattern in self.patterns]
        shown = ", ".join(map(repr, patterns[:PATTERNS_SHOWN]))
        shown += ", …" if len(patterns) > PATTERNS_SHOWN else ""
        shown += self.store.describe()
        digest = digest64(*map(str.encode, patterns))
        if self.follow is not None:
            return f"{self.kind.name} {shown}, followed: digest {digest:016x}"
        byte_count, store = 0, self.store.of("TOPOLOGY")
        for path in self.paths():
            with closing(store.open(path)) as file:
                size = self._found[path].size if path in self._found else file.stored_bytes
                head = file.read(0, min(size, EDGE_BYTES))
            digest = digest64(b"%016x" % digest, path.encode(), b"%d" % size, head)
            byte_count += size
        files = "1 file" if len(self.paths()) == 1 else f"{len(self.paths())} files"
        return f"{self.kind.name} {shown}: {files}, {byte_count} bytes, digest {digest:016x}"

    def __getstate__(self) -> dict[str, Any]:
        # executors find paths in the metadata; the whole list may be large
        return {**self.__dict__, "_paths": None, "_found": {}, "_finished": None, "_places": None}

    def _order(self, store: FileStore, finished: FinishedFiles, clock: Callable[[], float]) -> ReadingOrder:
        follow = self.follow
        if follow is None:
            return SortedOrder({path: each.size for path, each in self._found.items()})
        watch = FolderWatch(follow, lambda path: self.store.exists(path + follow.marker))
        known = KnownFiles(store, self.kind, removes=finished.removes, may_grow=follow.complete == "quiet")
        more: dict[str, Any] = {"topology_id": store.topology_id, "patterns": self.patterns}
        return GrowingOrder(watch, known, self._look, clock=clock, poll_s=follow.poll_s, **more)

    def _done_place(self) -> str:
        """Returns the path of the list (on this machine) or folder (in the store) for done files; "" without one."""
        if self.follow is None or not self.follow.done_path:
            return ""
        path = self.follow.done_path
        return os.path.realpath(Path(self._folder, path)) if self.follow.done == "list" else self.store.resolved(path)

    def _refuse_own_folder(self) -> None:
        """Refuses to move files into a folder of the input: files there count as done, and are never read."""
        if self.follow is None or self.follow.done != "move":
            return
        done = self._done_place().rstrip("/") + "/"
        for pattern in self.patterns:
            named = itertools.takewhile(lambda part: not glob.has_magic(part), self.store.absolute(pattern).split("/"))
            if "/".join([*named, ""]).startswith(done):
                raise TopologyError(
                    f"done_path={self.follow.done_path!r} of Follow is the folder of pattern {pattern!r}; files there "
                    "count as done and would never be read: give another folder, or one below it"
                )

    def _look(self) -> dict[str, FileFacts]:
        """Returns every file that matches, except markers, and the lists and folders of done files."""
        assert self.follow is not None
        found = self.store.look(self.patterns)
        (self._finished or FinishedFiles()).refuse_again(found)
        if self.follow.complete == "marker":
            found = {path: facts for path, facts in found.items() if not path.endswith(self.follow.marker)}
        return self._places.without(found, self.store)


def _patterns(owner: str, given: Pattern | Sequence[Pattern]) -> tuple[str, ...]:
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(several, (list, tuple)) or not several:
        raise TopologyError(f"pattern={given!r} of {owner} is neither a path or glob nor a list of these")
    return tuple(_pattern(owner, each) for each in several)


def _pattern(owner: str, given: Any) -> str:
    text = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    try:
        is_path = isinstance(text, str) and bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half a surrogate pair that stands for no byte
        is_path = False
    if not is_path or not isinstance(text, str):
        raise TopologyError(f"pattern {given!r} of {owner} is not a path or glob: give a text such as 'logs/*.txt'")
    return text


_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


def choose_store(owner: str, patterns: Sequence[str], folder: str, filesystem: Any) -> FileStore:
    """Returns the store of some patterns (driver).

    Args:
        owner: the source, for messages.
        patterns: paths or globs, or addresses such as ``s3://bucket/logs/*.json``.
        folder: what relative paths start from.
        filesystem: the file system of pyarrow that holds the patterns; None to choose it by the patterns.

    Raises:
        TopologyError: some patterns are addresses and some are not, or pyarrow is not installed.
    """
    addresses = [pattern for pattern in patterns if _ADDRESS.match(pattern)]
    if filesystem is None and not addresses:
        return LocalStore(folder)
    if len(addresses) not in (0, len(patterns)):
        raise TopologyError(
            f"pattern={list(patterns)!r} of {owner} mixes addresses with paths; give several sources, or only one kind"
        )
    if filesystem is not None and addresses:
        raise TopologyError(
            f"pattern {addresses[0]!r} of {owner} is an address, and filesystem is given too: give a pattern without "
            "a scheme, or no filesystem"
        )
    from coordinator.sources.files.stores.arrow_store import ArrowStore  # pyarrow is an extra

    return ArrowStore(filesystem, patterns)


class FileEmitter(SpoutEmitter):
    """Emits this task's ranges of every batch (executor).

    Args:
        kind: how a range is read.
        store: where the files are.
        context: the task.
        patterns: patterns of a followed folder, where a file may be renamed before it is read; otherwise none.
    """

    def __init__(
        self, kind: FileKind, store: FileStore, context: TopologyContext, patterns: Sequence[str] = ()
    ) -> None:
        self._kind, self._store, self._context, self._patterns = kind, store, context, patterns
        self._file: InputFile | None = None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        context = self._context
        for part in parse_share(metadata, context.task_index, context.task_count, number=attempt.txid):
            try:
                self._kind.emit(part, self._open(part.path), collector, context)
            except SourceError:
                file = self._under_another_name(part)
                if file is None:
                    raise
                self._kind.emit(part, file, collector, context)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _under_another_name(self, part: RecordRange) -> InputFile | None:
        """Returns the file that holds a range, under another path; None without one, or if its own path still does."""
        names = {part.path: None, **dict.fromkeys(sorted(self._store.look(self._patterns)))} if self._patterns else {}
        for path in names:
            with suppress(SourceError):
                file = self._open(path)
                self._kind.prove(part, file)
                return file if path != part.path else None
        return None

    def _open(self, path: str) -> InputFile:
        # ranges are in the order of files, so only the last file stays open
        if self._file is None or self._file.path != path:
            self.close()
            self._file = open_content(self._store, path)
        return self._file
