"""What a bolt may ask a tuple, its context and its declarer."""

from __future__ import annotations

import pytest

from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer, StreamSpec
from coordinated_bolt.streams.tuples import Tuple, TupleOrigin
from state.errors import TopologyError
from tests.support.tasks.wirings import RecordingBolt, attempt, wire

ORIGIN = TupleOrigin(
    attempt=attempt(3), source_component="lines", source_task=4, stream_id="words", fields=("word", "count")
)


def test_a_tuple_is_read_by_field_and_by_position():
    tup = Tuple(["a", 7], ORIGIN)
    assert (tup["word"], tup["count"], tup[0], tup[1]) == ("a", 7, "a", 7)
    assert list(tup) == ["a", 7]
    assert len(tup) == 2
    assert tup.values == ["a", 7]


def test_a_tuple_tells_where_it_comes_from():
    tup = Tuple(["a", 7], ORIGIN)
    assert (tup.attempt, tup.source_component, tup.source_task, tup.stream_id, tup.fields) == (
        attempt(3),
        "lines",
        4,
        "words",
        ("word", "count"),
    )
    assert repr(tup) == "Tuple(lines/words: word='a', count=7)"


@pytest.mark.parametrize("field", ["words", 2, -1])
def test_an_unknown_field_is_refused_with_the_known_ones(field):
    with pytest.raises(KeyError, match=r"stream 'words' of 'lines' has no field .*; it has \('word', 'count'\)"):
        Tuple(["a", 7], ORIGIN)[field]


def test_a_context_knows_the_tasks_of_every_component_and_counts():
    context = TopologyContext("job", "bolt", 0, 1, 10, {"bolt": (10,), "sink": (11, 12)})
    assert context.component_tasks("sink") == (11, 12)
    with pytest.raises(TopologyError, match="topology 'job' has no component 'sinks'"):
        context.component_tasks("sinks")
    context.count("lines")
    context.count("lines", 4)
    assert context.counters == {"lines": 5}


def test_every_attempt_has_a_context_with_counters_of_its_own():
    wiring = wire(RecordingBolt())
    wiring.context().count("lines")
    assert wiring.context().counters == {}


def test_streams_are_declared_in_order():
    declarer = OutputFieldsDeclarer("bolt")
    declarer.declare(["word", "count"])
    declarer.declare_stream("orders", ("id",), direct=True)
    assert list(declarer.streams.values()) == [
        StreamSpec("default", ("word", "count")),
        StreamSpec("orders", ("id",), direct=True),
    ]


@pytest.mark.parametrize(
    ("stream_id", "fields", "message"),
    [
        ("default", "word", r"declares fields 'word' on stream 'default'; give a sequence of names"),
        ("default", [""], r"declares fields \[''\] on stream 'default'"),
        ("default", [1], r"declares fields \[1\] on stream 'default'"),
        ("default", ["a", "a"], r"component 'bolt' names a field twice in \('a', 'a'\)"),
        ("taken", ["a"], "component 'bolt' declares stream 'taken' twice"),
        ("with space", ["a"], "stream of component 'bolt' 'with space' is not a valid name"),
    ],
)
def test_a_bad_declaration_is_refused(stream_id, fields, message):
    declarer = OutputFieldsDeclarer("bolt")
    declarer.declare_stream("taken", ["a"])
    with pytest.raises(TopologyError, match=message):
        declarer.declare_stream(stream_id, fields)
    assert list(declarer.streams) == ["taken"]
