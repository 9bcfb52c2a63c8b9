"""A function is a basic bolt: in a builder, in a stream, and called by hand."""

from __future__ import annotations

import pickle
import random
from typing import NamedTuple

import pytest

from coordinated_bolt import bolt
from coordinator import FixedBatchesSpout, LocalCluster, TransactionalTopologyBuilder, prove, run_bolt
from coordinator.engines.spark.shipping import dumps as dumps_for_spark
from coordinator.engines.spark.shipping import topology_modules
from coordinator.topology.planning.pickling import dumps
from state import HashState, TopologyError, UserCodeError
from tests.support.topologies.plain_components import fed_builder, start
from tests.support.topologies.short_forms import kept, rows

LINES = [["to be"], ["or not"]]


@bolt(output_fields="word")
def split(tup):
    """Splits a line."""
    yield from tup["line"].split()


@bolt(output_fields=("word", "size"))
def measured(tup):
    return [(word, len(word)) for word in tup["line"].split()]


@bolt(output_fields="word")
def wrong(tup):
    return tup["line"]


@bolt(output_fields="word")
def failing(tup):
    yield tup["line"]
    raise ValueError("no second word")


@bolt(output_fields="word")
def drawn(tup):
    yield tup["line"] * random.randrange(1, 10)


class Line(NamedTuple):
    line: str


@bolt(output_fields="word")
def split_records(line: Line):
    yield from line.line.split()


@bolt(output_fields="word")
def misled(line: list[Line]):
    yield from ()


def test_a_function_that_is_annotated_with_a_record_class_gets_its_objects():
    assert run_bolt(split_records, LINES, fields=["line"]).emitted() == [["to"], ["be"], ["or"], ["not"]]
    short = rows("line", LINES, LINES).apply(split_records).count_by("word", into=HashState("counts")).topology("short")
    assert kept(short, "counts") == {"to": 2, "be": 2, "or": 2, "not": 2}
    assert [*split_records(Line("a b"))] == ["a", "b"]


@pytest.mark.parametrize(
    ("field", "function", "message"),
    [
        ("line", misled, r"^misled takes .*annotate one class, or a Tuple"),
        ("text", split_records, r"takes Line with \['line'\], which stream 'default' of 'input' lacks"),
    ],
    ids=["made of a record class", "a record of other fields than the stream"],
)
def test_a_function_that_no_row_fits_is_refused_before_anything_runs(field, function, message):
    with pytest.raises(TopologyError, match=message):
        rows(field, LINES).apply(function).count_by("word", into=HashState("counts")).topology("short")


def test_it_emits_what_the_function_gives():
    assert run_bolt(split, LINES, fields=["line"]).emitted() == [["to"], ["be"], ["or"], ["not"]]
    assert run_bolt(measured, LINES, fields=["line"]).emitted()[:2] == [["to", 2], ["be", 2]]
    assert [*split({"line": "a b"})] == ["a", "b"]
    assert split.__doc__ == "Splits a line."


def test_it_stands_in_every_builder_and_in_a_stream():
    short = rows("line", LINES, LINES).apply(split).count_by("word", into=HashState("counts")).topology("short")
    assert kept(short, "counts") == {"to": 2, "be": 2, "or": 2, "not": 2}
    assert [c.component_id for c in short.components] == ["input", "split", "count_by_counts", "counts"]
    builder = TransactionalTopologyBuilder("built", "lines", FixedBatchesSpout([LINES], ["line"]))
    builder.set_bolt("split", split).shuffle_grouping("lines")
    with LocalCluster() as cluster:
        run = cluster.submit(builder.build())
        run.run_until_idle()
        assert run.emitted("split", 1) == [("default", [word]) for word in ("to", "be", "or", "not")]
    plain = fed_builder(("line",))
    plain.set_bolt("split", split).shuffle_grouping("spout")
    assert start(plain) is not None


@pytest.mark.parametrize("pickled", [dumps, dumps_for_spark])
def test_it_pickles_by_name_where_it_can_be_imported(pickled):
    assert pickle.loads(pickled(split)) is split

    @bolt(output_fields="word")
    def inner(tup):
        yield tup["line"]

    assert [*pickle.loads(pickled(inner))({"line": "a"})] == ["a"]


def test_executors_get_its_module():
    s = rows("line", LINES).apply(split)
    assert topology_modules(s.count_by("word", into=HashState("counts")).topology("shipped")) == [__name__]


def test_what_it_raises_or_returns_by_mistake_is_named():
    with pytest.raises(UserCodeError, match=r'(?s)raise ValueError\("no second word"\)'):
        run_bolt(failing, LINES, fields=["line"])
    with pytest.raises(UserCodeError, match=r"wrong returned 'to be' for .*; return a list, or yield each row"):
        run_bolt(wrong, LINES, fields=["line"])
    with pytest.raises(TopologyError, match="was applied to 3; put it directly above a function"):
        bolt(output_fields="word")(3)  # type: ignore[arg-type]


def test_a_proof_names_its_line():
    s = rows("line", LINES, LINES).apply(drawn)
    proof = prove(s.count_by("word", into=HashState("counts")).topology("drawing"), seeds=1)
    assert proof.mistakes[0].component_id == "drawn"
    assert "random.randrange" in proof.mistakes[0].evidence


class Sized(NamedTuple):
    word: str
    size: int


@bolt(output_fields=Sized)
def sized(tup):
    return [Sized(size=len(word), word=word) for word in tup["line"].split()]


def test_a_class_may_name_the_fields_of_the_rows():
    assert run_bolt(sized, LINES, fields=["line"]).emitted() == [["to", 2], ["be", 2], ["or", 2], ["not", 3]]
