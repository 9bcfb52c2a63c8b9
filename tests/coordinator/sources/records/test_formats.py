"""Text, packed values and a function of the user's; what becomes of bad records, whatever the source."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt import TopologyContext
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.streams.declared import DEAD_LETTER_STREAM, StreamSpec
from coordinated_bolt.streams.groupings import FieldsGrouping
from coordinated_bolt.streams.routing import Subscriber
from coordinator.sources import BadRecordError, FunctionFormat, JsonFields, PackedValues, RecordFormat, TextLine
from coordinator.sources.records.record_output import RecordOutput
from state import BadInputError, SourceError, TopologyError
from state.codec import pack, unpack
from tests.support.sources.recorder import Recorder, halves
from tests.support.tasks.collectors import make


@given(st.lists(st.binary(max_size=4) | st.text(max_size=3).map(str.encode)))
def test_many_texts_are_what_each_is_alone(records: list[bytes]) -> None:
    together = TextLine().rows(records)
    alone = RecordFormat.rows(TextLine(), records)
    assert [str(row) if isinstance(row, BadRecordError) else tuple(row) for row in together] == [
        str(row) if isinstance(row, BadRecordError) else tuple(row) for row in alone
    ]


@given(st.lists(st.binary(max_size=4) | st.text(max_size=3).map(str.encode), min_size=1))
def test_lines_of_one_piece_are_what_each_is_alone_or_are_left_to_that(records: list[bytes]) -> None:
    content = b"\n".join(records)
    columns = TextLine().split_columns(content)
    alone = TextLine().rows(content.split(b"\n"))
    if any(isinstance(row, BadRecordError) for row in alone):
        assert columns is None
    else:
        assert columns is not None
        assert list(zip(*columns, strict=True)) == alone


def test_a_subclass_with_rows_of_its_own_is_asked_for_them() -> None:
    class Shouted(TextLine):
        def row(self, data: bytes) -> tuple[str]:
            return (super().row(data)[0].upper(),)

    assert Shouted().split_columns(b"a\nb") is None
    assert Shouted().make_columns([b"a", b"b"]) is None


def test_a_text_with_a_newline_in_it_stays_one_and_wrong_bytes_may_be_replaced():
    assert TextLine("body").rows([b"a\nb", b"c"]) == [("a\nb",), ("c",)]
    assert TextLine(replace=True).rows([b"a\xffb"]) == [("a\ufffdb",)]


def test_packed_values_are_lists_or_mappings() -> None:
    day = dt.date(2026, 11, 21)
    values = PackedValues(["a", "b"])
    assert values.row(pack([1, day])) == [1, day]
    assert values.row(pack((1, day))) == [1, day]
    assert values.row(pack({"b": day, "a": 1, "more": None})) == [1, day]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\xc1", "it cannot be read as msgpack"),
        (b"", "it cannot be read as msgpack"),
        (pack([1]), "it is a list; a list of 2 values or a mapping is wanted"),
        (pack(7), "it is a int"),
        (pack({"a": 1}), "field 'b' is missing"),
        (msgpack.packb([1, msgpack.ExtType(5, b"2026-11-26T00:00:00.123456789")]), "finer than microseconds"),
        (b"\x83\xa1a\x01\xa1b\x02\xa1a\x03", "it has the field 'a' twice in one object"),
        (b"\x92\x01\x82\x01\x02\xc3\x04", "it has the field 1 twice in one object"),
        (b"\x92\x01" + msgpack.packb(msgpack.ExtType(1, b"\x91\x82\xa1a\x01\xa1a\x03")), "the field 'a' twice"),
    ],
)
def test_what_is_packed_otherwise_is_bad(record: bytes, reason: str) -> None:
    with pytest.raises(BadRecordError, match=reason):
        PackedValues(["a", "b"]).row(record)


def dangerous(data: bytes) -> list[Any]:
    """Makes a value that cannot travel of records that say so."""
    return [{b"object": object(), b"surrogate": "\ud800", b"huge": 7**9000}.get(data, data)]


def emit(output: RecordOutput, collector: Any, context: TopologyContext, records: list[bytes]) -> dict[str, int]:
    """Emits, and returns how many records were bad, if any was."""
    places: dict[str, Any] = {"origin": lambda index: ("orders", index), "place": lambda index: f"orders[{index}]"}
    output.emit(collector, context, records, **places)
    return {name: count for name, count in context.counters.items() if name == "bad_records"}


def collected(output: RecordOutput, records: list[bytes]) -> tuple[AttemptCollector, dict[str, int]]:
    """What a real collector makes of it, whose tuples are hashed and packed."""
    spec = StreamSpec("default", output.record_format.fields + output.origin_fields)
    collector, box, _ = make(Subscriber("sink", (20, 21), FieldsGrouping(spec.fields)), specs=(spec,))
    context = TopologyContext("t", "source", 0, 1, 1, {"source": (1,)}, subscribers={DEAD_LETTER_STREAM: ()})
    counters = emit(output, collector, context, records)
    box.close()
    return collector, counters


HALVES = FunctionFormat(["first", "second"], halves)


def recorded(output: RecordOutput, records: list[bytes], *heard_by: str) -> tuple[Recorder, dict[str, int]]:
    """What a recorder is given, if these components hear of bad records."""
    collector = Recorder()
    heard = {DEAD_LETTER_STREAM: heard_by}
    context = TopologyContext("t", "source", 0, 1, 1, {"source": (1,)}, subscribers=heard)
    return collector, emit(output, collector, context, records)


def emitted(output: RecordOutput, records: list[bytes]) -> tuple[list[tuple[str, list[Any]]], dict[str, int]]:
    collector, counters = recorded(output, records, "repair")
    assert collector.letters == []
    return collector.sent, counters


def test_tuples_carry_where_they_come_from_if_that_is_asked_for() -> None:
    output = RecordOutput(HALVES, offered=("topic", "offset"), origin_fields=("offset",))
    assert emitted(output, [b"ab", b"cd"]) == ([("default", [b"a", b"b", 0]), ("default", [b"c", b"d", 1])], {})


def test_a_bad_record_fails_the_run_and_is_named() -> None:
    with pytest.raises(SourceError, match=r"^the record at orders\[1\] is bad: its length is odd; fix it, or give"):
        emitted(RecordOutput(HALVES), [b"ab", b"c"])


def test_bad_records_are_left_out_and_counted() -> None:
    output = RecordOutput(HALVES, on_bad_record="skip")
    assert emitted(output, [b"a", b"bc", b"d"]) == ([("default", [b"b", b"c"])], {"bad_records": 2})


def test_bad_records_are_emitted_on_a_stream_of_their_own() -> None:
    sent, counters = emitted(RecordOutput(HALVES, on_bad_record="dead_letter"), [b"a", b"bc"])
    assert (DEAD_LETTER_STREAM, ["orders[0]", b"a", "its length is odd"]) in sent
    assert ("default", [b"b", b"c"]) in sent
    assert counters == {"bad_records": 1}


def test_bad_records_that_no_bolt_subscribes_to_are_kept_as_dead_letters() -> None:
    output = RecordOutput(HALVES, on_bad_record="dead_letter")
    collector, counters = recorded(output, [b"a", b"bc"])
    assert collector.sent == [("default", [b"b", b"c"])]
    assert collector.letters == [({"place": "orders[0]", "record": b"a"}, "its length is odd")]
    assert counters == {"bad_records": 1}


def deep(depth: int) -> bytes:
    return b'{"a":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("record_format", "good", "bad", "reason"),
    [
        (PackedValues(["a"]), msgpack.packb([1]), msgpack.packb([msgpack.Timestamp(1, 0)]), "holds Timestamp"),
        (PackedValues(["a"]), msgpack.packb([1]), msgpack.packb([msgpack.ExtType(42, b"")]), "unknown extension code"),
        (PackedValues(["a"]), msgpack.packb([1]), b"\x91" * 300 + b"\xc0", "nests more than 250 lists"),
        (PackedValues(["a"]), msgpack.packb([1]), b"\x91" * 3000 + b"\xc0", "cannot be read as msgpack"),
        (JsonFields(["a"]), deep(200), deep(300), "nests more than 250 lists"),
        (JsonFields(["a"]), deep(1), deep(3000), "is not JSON|nested too deeply|nests more"),
        (JsonFields(["a"]), b'{"a": 1}', b'{"a": 1%s}' % (b"0" * 5000), "is not JSON"),
        (FunctionFormat(["a"], dangerous), b"fine", b"object", "holds <object"),
        (FunctionFormat(["a"], dangerous), b"fine", b"surrogate", "not valid Unicode"),
    ],
)
@pytest.mark.parametrize("origin", [(), ("offset",)])
def test_a_record_with_a_value_that_cannot_travel_is_bad_and_its_neighbours_are_not(
    record_format: RecordFormat, good: bytes, bad: bytes, reason: str, origin: tuple[str, ...]
) -> None:
    more: dict[str, Any] = {"offered": ("topic", "offset"), "origin_fields": origin}
    output = RecordOutput(record_format, on_bad_record="skip", **more)
    collector, counters = collected(output, [good, bad, good])
    assert (collector.emitted["default"], counters) == (2, {"bad_records": 1})
    output = RecordOutput(record_format, on_bad_record="dead_letter", **more)
    (letter,) = collected(output, [good, bad, good])[0].letters()
    assert re.search(reason, unpack(letter)[-1])
    output = RecordOutput(record_format, **more)
    with pytest.raises(BadInputError, match=rf"the record at orders\[1\] is bad: .*({reason})"):
        collected(output, [good, bad, good])


def test_integers_of_any_length_travel() -> None:
    huge = 7**9000
    collector, _ = collected(RecordOutput(FunctionFormat(["a"], dangerous)), [b"huge"])
    assert collector.emitted["default"] == 1
    assert unpack(pack(huge)) == huge


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RecordOutput(HALVES, on_bad_record="ignore"), "choose one of 'fail', 'skip', 'dead_letter'"),
        (lambda: RecordOutput(HALVES, origin_fields=("key",)), "origin field 'key' is unknown"),
        (lambda: RecordOutput(HALVES, offered=("first",), origin_fields=("first",)), "is also a field of the format"),
        (lambda: FunctionFormat("ab", halves), "names no fields"),
        (lambda: FunctionFormat(["a"], 3), "cannot be called"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused_when_the_topology_is_built(make: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()
