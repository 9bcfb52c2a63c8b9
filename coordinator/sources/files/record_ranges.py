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
"""Index of the number of records in a range as plain data."""


TURNS = 4
"""About how often another task gets its turn, in as many transactions as there are tasks."""


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Whole records of one file.

    Attributes:
        path: absolute path of the file, or its address.
        start: offset of the first byte; in a compressed file, within the unpacked content.
        end: offset after the last byte; more than `start`.
        first: number of records before the range.
        count: number of records in the range.
        digest: digest of the bytes in the range.
        columns: the column names in the header of a CSV file; otherwise empty.
        mark: the mark of the file up to `end`; only the last range of a file in a transaction has one.
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
        """Restores a range from `to_plain`.

        Raises:
            SourceError: the data is not a range.
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
        """Reads the bytes, and proves that they are the ones that were cut.

        Raises:
            SourceError: the file has shrunk or changed, or cannot be read.
        """
        content = file.read(self.start, self.end)
        digest = short_digest(hashlib.sha256(content))
        if digest != self.digest:
            file.fail_changed(self.start, self.end, expected_digest=self.digest, found_digest=digest)
        return content


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path that means another file from a transaction on; `note` is that file's note, None if it was never read.

    After a file of a followed folder was renamed, the next transaction has path_changes before its ranges.
    """

    path: str
    note: list[Any] | None = None

    def to_plain(self) -> list[Any]:
        """Returns the naming as plain data, to be stored: unlike a range, it has a string in second place."""
        return [self.path, "", *([] if self.note is None else [self.note])]


def parse_path_changes(metadata: Any) -> list[PathChange]:
    """Restores the path_changes of a transaction; most transactions have none."""
    return [PathChange(item[0], *item[2:]) for item in _plain_items(metadata) if _is_path_change(item)]


def parse_ranges(metadata: Any) -> list[RecordRange]:
    """Restores the ranges of a transaction, which has at least one.

    Raises:
        SourceError: the metadata is not that of files.
    """
    return [RecordRange.from_plain(item) for item in _plain_ranges(metadata)]


def words_of(metadata: Any) -> list[str]:
    """Returns the ranges of a transaction in words, one line each.

    Raises:
        SourceError: the metadata is not that of files.
    """
    return [
        f"{each.path}: records {each.first + 1:,} to {each.first + each.count:,}, "
        f"in bytes {each.start:,} to {each.end:,}"
        for each in parse_ranges(metadata)
    ]


def parse_share(metadata: Any, task_index: int, task_count: int, *, number: int = 0) -> list[RecordRange]:
    """Restores the ranges that one task reads; leaves the others as plain data, which saves each task much parsing.

    Args:
        metadata: metadata of a transaction.
        task_index: the task.
        task_count: how many tasks read.
        number: the txid, see `sharing_tasks`.

    Raises:
        SourceError: the metadata is not that of files.
    """
    plain = _plain_ranges(metadata)
    try:
        tasks = sharing_tasks(metadata, task_count, number=number)
    except (LookupError, TypeError):
        return parse_ranges(metadata)  # raises an error that shows the metadata
    return [RecordRange.from_plain(item) for item, task in zip(plain, tasks, strict=True) if task == task_index]


def sharing_tasks(metadata: Any, task_count: int, *, number: int = 0) -> list[int]:
    """Returns the task that reads each range: the one with the fewest records so far.

    Ranges of equal size are dealt round; small ranges from the ends of files do not unbalance the rest. Every
    range belongs to exactly one task, whatever number of tasks it was cut for.

    Args:
        metadata: metadata of a transaction.
        task_count: how many tasks read.
        number: the txid. Small transactions have one range, so tasks take turns. If there are many tasks, each takes
            several transactions in a row: their tuples share blocks, and most tasks have nothing to do in a wave.

    Raises:
        LookupError, TypeError: the metadata is not that of files.
    """
    loads = [(0, index) for index in range(task_count)]  # a heap of (records, task), from the task whose turn it is
    first = number // max(1, task_count // TURNS)
    tasks = []
    for item in _plain_ranges(metadata):
        load, index = loads[0]
        heapreplace(loads, (load + item[_COUNT], index))
        tasks.append((index + first) % task_count)
    return tasks


def with_last_marks(ranges: Sequence[RecordRange]) -> list[RecordRange]:
    """Returns the ranges of a transaction, with a mark only on the last range of each file."""
    last = {each.path: each for each in ranges}
    return [each if last[each.path] is each else replace(each, mark=None) for each in ranges]


def _plain_ranges(metadata: Any) -> list[Any]:
    items = _plain_items(metadata)
    return [item for item in items if not _is_path_change(item)] if _is_path_change(items[0]) else items


def _plain_items(metadata: Any) -> list[Any]:
    return metadata if isinstance(metadata, list) and metadata else [metadata]


def _is_path_change(item: Any) -> bool:
    return isinstance(item, list) and len(item) in (2, 3) and item[1] == ""
