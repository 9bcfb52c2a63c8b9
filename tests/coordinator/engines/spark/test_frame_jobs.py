"""What runs in a worker around the stages of a job: frames are handed over in pairs, and nothing is left unread."""

from __future__ import annotations

import pickle

from coordinator.engines.spark import frame_jobs
from coordinator.engines.spark.frame_jobs import Stages, by_partition


def pairs(handed_over):
    """(partition, frames) as Java reads them."""
    return [
        (int.from_bytes(partition, "big"), pickle.loads(frames))
        for partition, frames in zip(handed_over[::2], handed_over[1::2], strict=True)
    ]


def test_frames_are_handed_over_by_the_partition_they_name():
    records = [(1, b"a"), (0, b"b"), (1, b"c")]

    assert pairs(list(by_partition(0, records))) == [(1, [(1, b"a"), (1, b"c")]), (0, [(0, b"b")])]


def test_a_task_without_frames_hands_nothing_over():
    assert list(by_partition(0, [])) == []


def test_a_task_hands_over_what_it_holds_before_that_is_too_much(monkeypatch):
    monkeypatch.setattr(frame_jobs, "HELD_BYTES", 4)
    taken = []

    def frames():
        for partition in (0, 1, 0, 1):
            taken.append(partition)
            yield partition, b"xx"

    handed_over = by_partition(0, frames())
    next(handed_over)

    assert taken == [0, 1]
    assert pairs([(0).to_bytes(8, "big"), *handed_over]) == [(0, [(0, b"xx")]), (1, [(1, b"xx")])] * 2


def test_stages_read_all_they_are_given_even_if_they_want_none_of_it():
    given = iter([1, 2, 3])

    assert list(Stages((lambda _partition, _records: ["own"],))(0, given)) == ["own"]
    assert list(given) == []


def test_each_stage_runs_on_what_the_one_before_it_yields():
    def doubled(partition, records):
        return [partition, *(2 * record for record in records)]

    assert list(Stages((doubled, doubled))(1, [3])) == [1, 2, 12]
