"""Streams whose rows are objects of a user's NamedTuple or dataclass."""

from __future__ import annotations

import json
import pickle
from dataclasses import InitVar, dataclass
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple, Optional

import pyarrow as pa
import pytest
from pyarrow import parquet

from coordinated_bolt import BaseBatchBolt
from coordinator import CsvFiles, FixedBatchesSpout, JsonLines, ParquetFiles, RedisStreams, stream
from coordinator.sources import Inputs
from coordinator.sources.records.json_fields import JsonFields
from state import HashState, SetState, SourceError, TopologyError, UserCodeError, ValueState
from tests.support.topologies.short_forms import finished, kept


class Order(NamedTuple):
    who: str
    cents: int
    note: str | None = None


@dataclass
class Visit:
    who: str
    price: Decimal
    day: Optional[date] = None  # noqa: UP045 - what older code has

    @property
    def is_free(self) -> bool:
        return not self.price


ORDERS = [Order("ann", 300, "gift"), Order("bob", 0), Order("ann", 40, ""), Order("eve", 7)] * 5


def ordered(*batches):
    return stream(FixedBatchesSpout(batches or (ORDERS[:8], ORDERS[8:]), Order))


def paid(order: Order) -> bool:
    return order.cents > 0


def test_functions_without_of_take_the_object_of_a_row_and_others_take_values():
    seen = ordered().filter(paid).dead_letter_if(lambda order: order.who == "eve", lambda order: f"{order.cents}")
    assert seen.fields == ("who", "cents", "note")
    spent = HashState("spent")
    rows = seen.map(str.upper, of="who").sum_by("who", "cents", into=spent)
    assert finished(rows.topology("typed")).state(spent) == {"ANN": 1700}


def test_a_dataclass_is_made_for_each_row_of_csv_and_json(tmp_path):
    (tmp_path / "visits.csv").write_text("day,price,who\n" + "2026-11-28,1.50,ann\n,0,bob\n" * 3)
    (tmp_path / "visits.jsonl").write_text(
        '{"who": "ann", "price": "1.50"}\n{"who": "bob", "price": 0, "day": null}\n' * 3
    )
    for source in (CsvFiles(f"{tmp_path}/*.csv", Visit, 2), JsonLines(f"{tmp_path}/*.jsonl", Visit, 2)):
        visits = stream(source)
        assert visits.fields == ("who", "price", "day")
        whole = visits.filter(lambda visit: not visit.is_free)
        whole.sum_by("who", "price", into=HashState("spent", Decimal, scale=2))
        assert kept(whole.topology("typed"), "spent") == {"ann": Decimal("4.50")}


def test_rows_of_parquet_have_the_types_of_their_class_or_the_file_is_named(tmp_path):
    path = tmp_path / "orders.parquet"
    parquet.write_table(pa.Table.from_pylist([each._asdict() for each in ORDERS]), path)
    orders = stream(ParquetFiles(path, Order)).filter(paid).sum_by("who", "cents", into=HashState("spent"))
    assert kept(orders.topology("typed"), "spent") == {"ann": 1700, "eve": 35}
    rows = [{**each._asdict(), "cents": float(each.cents)} for each in ORDERS]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(SourceError, match=r"row 1 of input file .*'cents' is 300.0 of type float, which is not int"):
        finished(orders.topology("typed"))


def test_steps_make_records_and_further_fields_stay_beside_them():
    visits = ordered().map(lambda order: Visit(order.who, Decimal(order.cents)), to=Visit)
    twice = visits.flat_map(lambda visit: [visit, Visit(visit.who, visit.price / 2)], to=Visit)
    merged = twice.merge(visits).filter(lambda visit: not visit.is_free)
    merged.sum_by("who", "price", into=HashState("spent", Decimal, scale=1))
    keyed = visits.key_by(lambda visit: visit.who[:1], to="letter").distinct_by(
        "who", into=SetState("people"), to="new"
    )
    chosen = keyed.filter(lambda visit: not visit.is_free).filter(
        lambda letter, new: new or letter > "a", of=["letter", "new"]
    )
    chosen.map(lambda visit: visit.who.upper(), to="name").count_by(["letter", "name"], into=HashState("names"))
    found = kept(merged.topology("typed"), "spent", "names")
    assert found["spent"] == {who: cents * Decimal("2.5") for who, cents in (("ann", 1700), ("eve", 35))}
    assert found["names"] == {("a", "ANN"): 1, ("e", "EVE"): 5}
    whole = visits.key_by(lambda visit: 1).rename({"key": "one"}).drop("one").filter(lambda visit: visit.price > 100)
    assert kept(whole.count_by("who", into=HashState("whole")).topology("typed"), "whole") == {"ann": 5}
    lost = visits.rename({"who": "name"}).filter(lambda name, price, day: price > 100)
    assert kept(lost.count_by("name", into=HashState("lost")).topology("typed"), "lost") == {"ann": 5}


def test_reduce_takes_the_object_after_the_stored_value():
    ordered().reduce_by(None, lambda total, order: total + len(order.note or ""), 0, into=ValueState("notes"))
    typed = ordered()
    typed.reduce_by(None, lambda total, order: total + len(order.note or ""), 0, into=ValueState("notes"))
    typed.reduce_by(None, lambda total, cents: total + cents, 0, into=ValueState("cents"), of="cents")
    assert kept(typed.topology("typed"), "notes", "cents") == {"notes": 20, "cents": 1735}


class Doubles(BaseBatchBolt):
    output_fields = Order

    def execute(self, order: Order) -> None:
        self.collector.emit(order._replace(cents=order.cents * 2))


def test_a_bolt_that_declares_a_class_and_one_input_of_several_have_records():
    orders = stream(Inputs(web=FixedBatchesSpout([ORDERS], Order), shop=FixedBatchesSpout([ORDERS], Order)))
    web = orders.output("web").apply(Doubles()).filter(paid)
    web.merge(orders.output("shop").filter(paid)).sum_by("who", "cents", into=HashState("spent"))
    assert kept(orders.topology("typed"), "spent") == {"ann": 3 * 1700, "eve": 3 * 35}


def test_every_format_knows_its_class_and_the_origin_is_a_further_field(tmp_path):
    assert JsonFields(Order).record_class is Order
    assert stream(RedisStreams("orders", fields=Order)).fields == Order._fields
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each._asdict()) + "\n" for each in ORDERS))
    numbered = stream(JsonLines(f"{tmp_path}/*.jsonl", Order, with_origin=["line_number"]))
    late = numbered.filter(paid).filter(lambda line: line > 4, of="line_number")
    assert kept(late.count_by(None, into=ValueState("rows")).topology("typed"), "rows") == 12


def test_a_class_is_shipped_only_with_the_functions_that_take_or_make_it():
    class Local(NamedTuple):
        who: str

    for source in (CsvFiles("*.csv", Local), JsonLines("*.jsonl", Local), RedisStreams("orders", fields=Local)):
        pickle.dumps(source)
    pickle.dumps(FixedBatchesSpout([[Local("ann")]], Local))
    rows = stream(FixedBatchesSpout([[Order("ann", 3)]], Order)).map(attrgetter("who"), to="who")
    (fused,) = (each.spec for each in rows.count_by("who", into=HashState("n")).topology("n").components[1:2])
    assert {*vars(fused)["user_modules"]} == {"operator", __name__}


def test_what_is_wrong_is_named(tmp_path):
    class Unknown(NamedTuple):
        who: Missing  # type: ignore[name-defined] # noqa: F821

    class Odd(NamedTuple):
        who: list[str]

    @dataclass
    class Made:
        who: str
        rate: InitVar[int] = 1
        cents: int = 0

    with pytest.raises(TopologyError, match="takes other arguments than its fields"):
        FixedBatchesSpout([[["ann", 7]]], Made)
    for wrong, text in [
        (Unknown, "Unknown of JsonFields has no types"),
        (Odd, "field 'who' of JsonFields has the type"),
    ]:
        with pytest.raises(TopologyError, match=text):
            JsonLines("*.jsonl", wrong)
    with pytest.raises(TopologyError, match=r"declared as str \| None by"):
        ordered().sum_by("who", "note", into=HashState("notes"))
    made = ordered().map(lambda order: (order.who, 1), to=Visit)
    with pytest.raises(UserCodeError, match=r"given 'ann', 300, 'gift', returned .*; give a Visit for each row"):
        finished(made.count_by("who", into=HashState("visits")).topology("typed"))
    made = ordered().map(lambda order: Visit(order.cents, Decimal(1)), to=Visit)
    with pytest.raises(TopologyError, match="field 'price' is declared as Decimal by map"):
        made.count_by("price", into=HashState("visits"))
    with pytest.raises(UserCodeError, match=r"'who' has another type than Visit declares"):
        finished(made.count_by("who", into=HashState("visits")).topology("typed"))
    with pytest.raises(UserCodeError, match=r"in filter.*given 'bob', 0, None"):
        finished(
            ordered().filter(lambda order: 1 // order.cents).count_by("who", into=HashState("n")).topology("typed")
        )
