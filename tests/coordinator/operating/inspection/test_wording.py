"""What a transaction read is said in the words of its source, as stored metadata tells it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coordinator import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout, TextFiles
from coordinator.operating.inspection.wording import SOURCES, words_by_scope, words_of_spout, words_or_values
from coordinator.sources import Batches, ColumnRanges, CsvFiles, DataFrameBatches, JsonLines, MicroBatches, RedisStreams
from coordinator.sources.files.record_ranges import RecordRange
from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.kafka.offset_ranges import OffsetCut, OffsetRange
from coordinator.sources.kafka.topic import BrokerTopic
from coordinator.sources.redis_streams.stream_range import StreamRange
from coordinator.spouts.transactional import ITransactionalSpout
from tests.support.approved import approved
from tests.support.case_names import shown

FILE = RecordRange("/data/a.txt", 1_000, 2_500, 100, 50, 7).to_plain()
CUT = OffsetCut("id7", {0: OffsetRange(5, 25), 1: OffsetRange(3, 3), 2: OffsetRange(0, 1)}, lost=4).to_plain()
SEVERAL = """{"a": "text files 'a'", "b": "text files 'b'", "k": "kafka topic 't'"}"""
STREAM = StreamRange("orders", "17-0", "19-3", 25, 7, 100, 3, "19-3", 100).to_plain()
NO_ENTRIES = StreamRange("orders", "", "19-3", 0, 7, 100, 3, "19-3", 100).to_plain()

CASES: list[tuple[str, Any]] = [
    ("text files 'a'", [FILE]),
    ("kafka topic 't', id id7", CUT),
    ("kafka topic 't', id id7", OffsetCut("id7").to_plain()),
    ("kafka topic 't', id id7", ["id7", 25]),
    ("redis streams 'orders'", STREAM),
    ("redis streams 'orders'", NO_ENTRIES),
    ("batches of m.f, fields 'a'", [7, [["x"], ["y"]]]),
    ("batches of m.f, fields 'a'", [7, []]),
    ("DataFrame of 'a'", ["by column 'day'", 1, 7, 500, [900, 3]]),
    ("DataFrame of 'a'", ["by files", "a.csv", "a.csv", None, [9, 3]]),
    ("structured streaming query q7", ["q7", 4, 11]),
    ("coordinator.spouts.memory.FixedBatchesSpout: 3 batches", [2, 99]),
    ("coordinator.spouts.memory.MemoryTransactionalSpout: x", [40, 20, 0, 9]),
    ("coordinator.spouts.memory.OpaqueMemoryTransactionalSpout: x", [40, 0, 1, 9]),
    (SEVERAL, {"a": [3, [FILE]], "k": [3, ["id7", 25]], "b": [2, [FILE]]}),
]


def test_metadata_is_said_in_the_words_of_its_source() -> None:
    said = [
        "\n  ".join([fingerprint, *words_by_scope(fingerprint, {"coordinator": metadata})["coordinator"]])
        for fingerprint, metadata in CASES
    ]
    approved("\n".join(said), "metadata-in-words")


@pytest.mark.parametrize("begin", [*SOURCES, SEVERAL], ids=shown)
def test_what_is_not_the_metadata_of_a_source_is_shown_as_it_is(begin: str) -> None:
    for other in ("of a spout of the user's", 7, {"a": 1}, ["x"]):
        assert words_by_scope(begin, {"coordinator": other}) == {}
    assert words_or_values({"coordinator": ["x", 1]}, {}) == ["coordinator: ['x', 1]"]


def made_by_our_sources(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "a.txt"
    path.write_text('{"a": 1}\n')
    return {
        "text": TextFiles(str(path)),
        "json": JsonLines(str(path), {"a": int}),
        "csv": CsvFiles(str(path), {"a": int}),
        "streams": RedisStreams("orders", fields=["a"], url="redis://h"),
        "batches": Batches(list, ["a"]),
        "frames": DataFrameBatches(lambda _: None, ["a"], cut=ColumnRanges("a", 1)),
        "query": MicroBatches(["a"]),
        "fixed": FixedBatchesSpout([[[1]]], ["a"]),
        "memory": MemoryTransactionalSpout([[[1]]], ["a"], 1),
        "opaque": OpaqueMemoryTransactionalSpout([[[1]]], ["a"], 1),
    }


def test_every_source_of_ours_is_known_by_its_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprints = {name: spout.fingerprint() for name, spout in made_by_our_sources(tmp_path).items()}
    monkeypatch.setattr(BrokerTopic, "topic_id", lambda topic: "id7")
    fingerprints["kafka"] = KafkaTopic("h:1", "t").fingerprint()
    unknown = {name: found for name, found in fingerprints.items() if not any(map(found.startswith, SOURCES))}
    assert unknown == {}


class Pages:
    """Describes its metadata as a user's spout does."""

    def describe(self, metadata: Any) -> Sequence[str]:
        return [f"pages {metadata[0]} to {metadata[1]}"]


class PagesOfShards:
    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        return [f"page {metadata} of shard {partition}"]


class Wordless:
    describe = ITransactionalSpout.describe


class Mistaken:
    def describe(self, metadata: Any) -> Sequence[str]:
        raise KeyError("page")


@pytest.mark.parametrize(
    ("make", "metadata", "lines"),
    [
        (Pages, {"coordinator": [1, 9]}, ["pages 1 to 9"]),
        (
            PagesOfShards,
            {"coordinator": 2, "partition.0": 7, "partition.1": 8},
            ["2 partitions", "partition 0: page 7 of shard 0", "partition 1: page 8 of shard 1"],
        ),
        (Mistaken, {"coordinator": [1, 9]}, ["[1, 9] (describe raised KeyError: 'page')"]),
        (Wordless, {"coordinator": [1, 9]}, ["coordinator: [1, 9]"]),
    ],
    ids=["coordinator", "partitions", "raises", "without words"],
)
def test_a_spout_of_the_users_describes_its_own(make, metadata, lines) -> None:
    assert words_or_values(metadata, words_of_spout(make(), metadata)) == lines


def test_many_parts_are_cut_short_for_people() -> None:
    many = {"coordinator": [FILE] * 50}
    lines = words_or_values(many, words_by_scope("text files 'a'", many))
    assert (len(lines), lines[-1]) == (21, "… 30 more, which --json has")
