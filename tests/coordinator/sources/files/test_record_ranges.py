"""Lines are counted right over strides and blocks, and ranges are shared out evenly."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.sources import TextFiles
from coordinator.sources.files.prefix_digest import PrefixDigest
from coordinator.sources.files.record_ranges import RecordRange, parse_share, sharing_tasks
from coordinator.sources.files.record_scanner import STRIDE_BYTES, RecordScanner, after_lines
from coordinator.sources.files.stores.local_store import LocalFile
from state import SourceError


def of_lines(*line_counts: int) -> list[RecordRange]:
    return [RecordRange("/f", index, index + 1, 0, count, 0) for index, count in enumerate(line_counts)]


def shared(ranges: list[RecordRange], task_index: int, task_count: int) -> list[RecordRange]:
    plain = [each.to_plain() for each in ranges]
    return parse_share(plain, task_index, task_count) if plain else []


def line_counts_by_task(ranges: list[RecordRange], task_count: int) -> list[list[int]]:
    return [[r.count for r in shared(ranges, task, task_count)] for task in range(task_count)]


@given(lengths=st.lists(st.integers(0, 3000), max_size=12), rest=st.integers(0, 9000), data=st.data())
@example(lengths=[STRIDE_BYTES - 1], rest=0, data=None)
def test_the_nth_newline_is_found_or_the_rest_counted(lengths: list[int], rest: int, data: st.DataObject) -> None:
    block = b"".join(b"x" * length + b"\n" for length in lengths) + b"x" * rest
    for cursor in {0, len(block) // 3, max(0, len(block) - 1)} if block else ():
        ends = [i + 1 for i in range(cursor, len(block)) if block[i] == ord("\n")]
        for wanted in range(1, len(lengths) + 2):
            expected = (ends[wanted - 1], wanted) if wanted <= len(ends) else (len(block), len(ends))
            assert after_lines(block, cursor, wanted) == expected


@pytest.mark.parametrize(
    ("counts", "by_task"),
    [((500, 1, 499), [[500], [1, 499]]), ((3,), [[3], [], []])],
    ids=["a short range at the end of a file unbalances nothing", "tasks without a range read nothing"],
)
def test_ranges_are_shared_out_evenly(counts, by_task):
    assert line_counts_by_task(of_lines(*counts), len(by_task)) == by_task
    assert [[r.start for r in shared(of_lines(*[10] * 7), task, 3)] for task in range(3)] == [[0, 3, 6], [1, 4], [2, 5]]


def test_tasks_take_turns_at_transactions_of_one_range() -> None:
    one = [of_lines(3)[0].to_plain()]
    readers = [[task for task in range(3) if parse_share(one, task, 3, number=number)] for number in range(1, 7)]
    assert readers == [[1], [2], [0], [1], [2], [0]]


def test_of_many_tasks_each_reads_several_transactions_of_one_range_in_a_row() -> None:
    one = [of_lines(3)[0].to_plain()]
    readers = [sharing_tasks(one, 64, number=number)[0] for number in range(64 * 16)]
    assert readers == [task for task in range(64) for _ in range(16)]


@given(
    line_counts=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    task_count=st.integers(1, 8),
    number=st.integers(0, 100),
)
def test_every_range_belongs_to_one_task_and_stays_in_order(line_counts, task_count, number):
    ranges = of_lines(*line_counts)
    plain = [each.to_plain() for each in ranges]
    shares = [parse_share(plain, task, task_count, number=number) for task in range(task_count)]
    assert sorted(r.start for mine in shares for r in mine) == [r.start for r in ranges]
    assert all(mine == sorted(mine, key=lambda r: r.start) for mine in shares)
    emitting = TextFiles(__file__).emitting_tasks(number, plain, task_count)
    assert emitting == {task for task in range(task_count) if shares[task]}, "and the others are not asked"
    totals = [sum(r.count for r in mine) for mine in shares]
    assert max(totals) - min(totals) <= max(line_counts, default=0)


@pytest.mark.parametrize(
    "metadata", [None, 5, "a text", {}, [], [[]], [["/f", 0, 1, 0, "count", 0, []]], [{"count": 5}]]
)
def test_metadata_of_another_kind_of_source_is_refused_whoever_reads_it(metadata: object) -> None:
    with pytest.raises(SourceError, match="is not a range of records"):
        parse_share(metadata, 0, 1)


def test_a_line_that_is_too_long_is_refused_with_its_number_and_place(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n" + b"x" * 10_000 + b"\nfour\n")
    with closing(LocalFile(str(path), "words")) as file:
        prefix = PrefixDigest()
        prefix.update(b"one\n")
        bounds: dict[str, Any] = {"first": 1, "block_bytes": 512, "record_bytes_max": 4096}
        scanner = RecordScanner(file, 4, path.stat().st_size, find=after_lines, prefix=prefix, **bounds)
        with pytest.raises(SourceError) as refused:
            scanner.take(1000)
    assert f"'{path}' has a record of more than 4,096 bytes: record 3, which starts at byte 8;" in str(refused.value)


def test_long_ranges_of_short_lines_are_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"x" * 300 + b"\n" + (b"y" * 99 + b"\n") * 1000)
    with closing(LocalFile(str(path), "words")) as file:
        scanner = RecordScanner(file, 0, path.stat().st_size, find=after_lines, block_bytes=64, record_bytes_max=310)
        assert scanner.take(10_000).count == 1001
