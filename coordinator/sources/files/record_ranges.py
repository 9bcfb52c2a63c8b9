"""Ranges of whole records: which part of a file belongs to a transaction, and how it is recognised later.

A range is a path, two byte offsets and a digest of exactly the bytes between, so that reading it again
gives the same records or an error, never other records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from typing import Any

from coordinator.sources.files.prefix_digest import PrefixMark, short_digest
from coordinator.sources.files.stores.input_file import InputFile
from state.errors import SourceError
from state.troubles import Trouble

_COUNT = 4
"""Place of the number of records in a range as plain data."""


TURNS = 4
"""About how many turns it takes until as many transactions were read as there are tasks."""


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Whole records of one file.

    Attributes:
        path: absolute path of the file, or its address.
        start: offset of the first byte; of a compressed file, in what it unpacks to.
        end: offset after the last byte; more than `start`.
        first: records of the file before the range.
        count: records of the range.
        digest: of the bytes in between.
        columns: of CSV with a header, the names in it; otherwise empty.
        mark: of the file up to `end`; only the last range of a file in a transaction carries one.
    """

    path: str
    start: int
    end: int
    first: int
    count: int
    digest: int
    columns: tuple[str, ...] = ()
    mark: PrefixMark | None = None

    @classmethod
    def from_plain(cls, plain: Any) -> RecordRange:
        """Restores what `to_plain` gave.

        Raises:
            SourceError: it is something else.
        """
        match plain:
            case [str(path), int(start), int(end), int(first), int(count), int(digest), list(columns), *plain_mark]:
                mark = PrefixMark.from_plain([end, *plain_mark])
                if mark is not None or not plain_mark:
                    return cls(path, start, end, first, count, digest, tuple(columns), mark)
        raise SourceError(
            f"stored metadata {plain!r} is not a range of records: the topology was run with another kind of "
            "source before, or by an earlier version; drop it or take another topology id"
        ).about(Trouble.OTHER_SOURCE)

    def to_plain(self) -> list[Any]:
        """Returns the range as plain data, to be stored."""
        mark = [] if self.mark is None else self.mark.to_plain()[1:]  # its end is the range's
        columns = list(self.columns)
        return [self.path, self.start, self.end, self.first, self.count, self.digest, columns, *mark]

    def read(self, file: InputFile) -> bytes:
        """Returns the bytes, which are those that were cut.

        Raises:
            SourceError: the file has shrunk or changed, or cannot be read.
        """
        content = file.read(self.start, self.end)
        digest = short_digest(hashlib.sha256(content))
        if digest != self.digest:
            file.fail_changed(self.start, self.end, expected_digest=self.digest, found_digest=digest)
        return content


@dataclass(frozen=True, slots=True)
class Naming:
    """A name that means another file than it did, as of a transaction; `note` says what was read, None for nothing.

    Namings come before the ranges of the transaction that was cut after a file of a followed folder was renamed.
    """

    path: str
    note: list[Any] | None = None

    def to_plain(self) -> list[Any]:
        """Returns it as plain data, to be stored: no range has a text in second place."""
        return [self.path, "", *([] if self.note is None else [self.note])]


def parse_namings(metadata: Any) -> list[Naming]:
    """Restores the namings of a transaction; most have none."""
    return [Naming(item[0], *item[2:]) for item in _plain_items(metadata) if _is_naming(item)]


def parse_ranges(metadata: Any) -> list[RecordRange]:
    """Restores the ranges of a transaction, which has at least one.

    Raises:
        SourceError: it is not the metadata of files.
    """
    return [RecordRange.from_plain(item) for item in _plain_ranges(metadata)]


def words_of(metadata: Any) -> list[str]:
    """Returns the ranges of a transaction in words, a line each.

    Raises:
        SourceError: it is not the metadata of files.
    """
    return [
        f"{each.path}: records {each.first + 1:,} to {each.first + each.count:,}, "
        f"in bytes {each.start:,} to {each.end:,}"
        for each in parse_ranges(metadata)
    ]


def parse_share(metadata: Any, task_index: int, task_count: int, *, number: int = 0) -> list[RecordRange]:
    """Restores the ranges that one task reads; the others are left alone, since there is one for nearly every task.

    Args:
        metadata: of a transaction.
        task_index: the task.
        task_count: how many tasks read.
        number: of the transaction, see `sharing_tasks`.

    Raises:
        SourceError: it is not the metadata of files.
    """
    plain = _plain_ranges(metadata)
    try:
        tasks = sharing_tasks(metadata, task_count, number=number)
    except (LookupError, TypeError):
        return parse_ranges(metadata)  # which says what it is instead
    return [RecordRange.from_plain(item) for item, task in zip(plain, tasks, strict=True) if task == task_index]


def sharing_tasks(metadata: Any, task_count: int, *, number: int = 0) -> list[int]:
    """Returns the task that reads each range: the one with the fewest records so far.

    Ranges of equal size go round; small ones from the ends of files do not unbalance the rest. Every
    range belongs to exactly one task, whatever number of tasks it was cut for.

    Args:
        metadata: of a transaction.
        task_count: how many tasks read.
        number: of the transaction. Small ones have one range, so tasks take turns, and of many tasks each takes
            several in a row: what it sends of them shares blocks, and in a wave most tasks have nothing to do.

    Raises:
        LookupError, TypeError: it is not the metadata of files.
    """
    loads = [(0, index) for index in range(task_count)]  # of the tasks, from the one whose turn it is: a heap
    first = number // max(1, task_count // TURNS)
    tasks = []
    for item in _plain_ranges(metadata):
        load, index = loads[0]
        heapreplace(loads, (load + item[_COUNT], index))
        tasks.append((index + first) % task_count)
    return tasks


def with_last_marks(ranges: Sequence[RecordRange]) -> list[RecordRange]:
    """Returns the ranges of a transaction without the marks that a later range of the same file makes worthless."""
    last = {each.path: each for each in ranges}
    return [each if last[each.path] is each else replace(each, mark=None) for each in ranges]


def _plain_ranges(metadata: Any) -> list[Any]:
    items = _plain_items(metadata)
    return [item for item in items if not _is_naming(item)] if _is_naming(items[0]) else items


def _plain_items(metadata: Any) -> list[Any]:
    return metadata if isinstance(metadata, list) and metadata else [metadata]


def _is_naming(item: Any) -> bool:
    return isinstance(item, list) and len(item) in (2, 3) and item[1] == ""
