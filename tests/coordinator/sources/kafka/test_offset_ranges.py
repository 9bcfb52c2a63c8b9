"""Cutting and sharing offsets, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.sources.kafka.offset_ranges import OffsetCut, OffsetRange, cut_ranges, share_of
from state import SourceError
from state.codec import pack_exact, unpack

COUNTS = st.dictionaries(st.integers(0, 20), st.integers(0, 1000), max_size=8)


@pytest.mark.parametrize(
    ("positions", "ends", "limit", "cut"),
    [
        ({0: 0, 1: 100, 2: 0}, {0: 1000, 1: 110, 2: 1000}, 100, {0: (0, 45), 1: (100, 110), 2: (0, 45)}),
        ({0: 7, 1: 0}, {0: 7, 1: 3}, 10, {0: (7, 7), 1: (0, 3)}),
        ({0: 7, 1: 9}, {0: 3}, 10, {0: (7, 7), 1: (9, 9)}),
    ],
    ids=[
        "what one lacks others give",
        "nothing new keeps its position",
        "an end that is unknown or below gives nothing",
    ],
)
def test_each_partition_gives_about_as_many_as_far_as_it_can(positions, ends, limit, cut):
    assert cut_ranges(positions, ends, limit) == {each: OffsetRange(*part) for each, part in cut.items()}


@given(COUNTS, st.integers(1, 2000))
def test_a_cut_takes_all_there_is_up_to_its_limit(counts, limit):
    cut = cut_ranges(dict.fromkeys(counts, 5), {each: 5 + count for each, count in counts.items()}, limit)
    assert sum(part.count for part in cut.values()) == min(limit, sum(counts.values()))
    assert all(part.first == 5 and part.count <= counts[each] for each, part in cut.items())


@given(COUNTS, st.integers(1, 30))
def test_the_shares_of_all_tasks_are_every_offset_once(counts, tasks):
    ranges = {each: OffsetRange(each, each + count) for each, count in counts.items()}
    read = [
        (partition, offset)
        for task in range(tasks)
        for partition, part in share_of(ranges, task, tasks)
        for offset in range(part.first, part.next)
    ]
    every = [(each, offset) for each, part in ranges.items() for offset in range(part.first, part.next)]
    assert sorted(read) == sorted(every)


def test_more_tasks_than_partitions_divide_each_range():
    ranges = {0: OffsetRange(0, 100), 1: OffsetRange(0, 10)}
    first, second, third, _, fifth = (list(share_of(ranges, task, 5)) for task in range(5))
    assert [first, third, fifth] == [[(0, OffsetRange(*part))] for part in ((0, 33), (33, 66), (66, 100))]
    assert second == [(1, OffsetRange(0, 5))]


def test_a_task_keeps_its_partitions_from_one_transaction_to_the_next():
    first = {each: OffsetRange(0, 10) for each in range(7)}
    later = {each: OffsetRange(10, 10 + each) for each in range(7)}
    kept = [{partition for partition, _ in share_of(first, task, 3)} for task in range(3)]
    assert all({partition for partition, _ in share_of(later, task, 3)} <= kept[task] for task in range(3))


def test_metadata_survives_storage_with_its_numbers_as_numbers():
    cut = OffsetCut("some-id", {3: OffsetRange(2**53, 2**53 + 4), 0: OffsetRange(1, 1)}, 12)
    assert OffsetCut.from_plain(unpack(pack_exact(cut.to_plain()))) == cut


OURS = {"kafka_topic_id": "x", "lost": 0}


@pytest.mark.parametrize(
    "plain", [None, [], {"ranges": {}}, *(OURS | {"ranges": each} for each in ({"0": [0, 1]}, {0: [2, 1]}, {0: [0]}))]
)
def test_what_is_not_ours_is_refused_with_a_sentence(plain):
    with pytest.raises(SourceError, match=r"another source|was altered"):
        OffsetCut.from_plain(plain)
