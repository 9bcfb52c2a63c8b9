"""Tuples as objects of users' classes: bolts that take and emit NamedTuples and dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.task_hook import ITaskHook
from coordinator.engines.local.cluster import LocalCluster
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout, MemoryTransactionalSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import TopologyError, UserCodeError

if TYPE_CHECKING:
    from decimal import Decimal

ROWS = [["ann", "/a", 3], ["bob", "/a", 4], ["ann", "/b", 5]]


class Visit(NamedTuple):
    seconds: int
    page: str


@dataclass
class Stay:
    page: str
    seconds: float | None
    again: bool = field(default=False, init=False)


class Stays(BaseBatchBolt):
    """Takes NamedTuples and emits objects of a dataclass, one by one and many at once."""

    output_fields = Stay

    def prepare(self, *arguments: Any) -> None:
        super().prepare(*arguments)
        self.stays: list[Stay] = []

    def execute(self, visit: Visit) -> None:
        assert type(visit) is Visit
        if visit.page == "/a":
            self.collector.emit(Stay(visit.page, visit.seconds))
        else:
            self.stays.append(Stay(visit.page, visit.seconds))

    def finish_batch(self) -> None:
        self.collector.emit_all(self.stays)


class BasicStays(BaseBasicBolt):
    output_fields = Stay

    def execute(self, visit: Visit, collector: Any) -> None:
        collector.emit(Stay(visit.page, visit.seconds))


class Sum(BaseBatchBolt, ICommitter):
    seconds = HashState[float]("seconds")

    def prepare(self, *arguments: Any) -> None:
        super().prepare(*arguments)
        self.stays: list[Stay] = []

    def execute(self, stay: Stay) -> None:
        self.stays.append(stay)

    def finish_batch(self) -> None:
        for stay in self.stays:
            assert not stay.again
            self.seconds.increment(stay.page, stay.seconds or 0.0)


def visits(bolt: Any, rows: Any = ROWS, *, fields: Any = ("user", "page", "seconds"), hook: Any = None) -> Topology:
    builder = TransactionalTopologyBuilder("visits", "visits", MemoryTransactionalSpout([rows], fields, take=2))
    builder.set_bolt("stays", bolt).shuffle_grouping("visits")
    builder.set_committer_bolt("sum", Sum()).fields_grouping("stays", ["page"])
    if hook is not None:
        builder.add_task_hook(hook)
    return builder.build()


@pytest.mark.parametrize("bolt", [Stays(), BasicStays()], ids=["batch bolt", "basic bolt"])
def test_bolts_take_and_emit_objects_of_the_classes_they_are_annotated_with(cluster: LocalCluster, bolt: Any) -> None:
    run = cluster.submit(visits(bolt))
    run.run_until_idle()
    assert run.state("seconds") == {"/a": 7.0, "/b": 5.0}
    assert [values for _, values in run.emitted("stays")] == [["/a", 3], ["/a", 4], ["/b", 5]]


class Heard(ITaskHook):
    """Counts what is executed, as tuples."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context

    def execute(self, info: Any) -> None:
        self.context.count(f"executed {info.tup.source_component}", 1)


def test_a_hook_hears_of_tuples(cluster: LocalCluster) -> None:
    run = cluster.submit(visits(Stays(), hook=Heard()))
    assert run.run_until_idle().counters == {"executed visits": 3, "executed stays": 3}
    assert run.state("seconds") == {"/a": 7.0, "/b": 5.0}


def test_a_value_of_another_type_is_named_with_its_stream_and_what_was_declared(cluster: LocalCluster) -> None:
    run = cluster.submit(visits(Stays(), [["ann", "/a", 3], ["bob", "/a", "four"]]))
    with pytest.raises(UserCodeError) as caught:
        run.run_until_idle()
    assert caught.value.traceback_text == (
        "TypeError: 'seconds' is 'four' (str) on stream 'default' of 'visits', but Visit declares bool or int; emit "
        "that, or declare str\n"
    )


class Refusing(Stays):
    def execute(self, visit: Visit) -> None:
        self.collector.dead_letter(visit, "too short")


class Whole(NamedTuple):
    user: str
    page: str
    seconds: int


class RefusingWhole(BaseBatchBolt):
    output_fields = Stay

    def execute(self, visit: Whole) -> None:
        self.collector.dead_letter(visit, "too short")


@pytest.mark.parametrize(
    ("bolt", "source", "values"),
    [
        (Refusing(), ("stays", ""), {"seconds": 3, "page": "/a"}),
        (RefusingWhole(), ("visits", "default"), {"user": "ann", "page": "/a", "seconds": 3}),
    ],
    ids=["some fields", "all fields"],
)
def test_a_record_that_is_refused_is_the_tuple_it_was_made_of_if_it_has_all_of_it(
    cluster: LocalCluster, bolt: Any, source: tuple[str, str], values: dict[str, Any]
) -> None:
    run = cluster.submit(visits(bolt, ROWS[:1]))
    run.run_until_idle()
    (letter,) = run.dead_letters()
    assert (letter.source_component, letter.stream_id) == source
    assert dict(zip(letter.fields, letter.values, strict=True)) == values


@dataclass(kw_only=True)
class KeywordOnly:
    page: str


class TakesKeywordOnly(BaseBatchBolt):
    def execute(self, visit: KeywordOnly) -> None:
        pass


class TakesUnknown(BaseBatchBolt):
    def execute(self, visit: Decimal) -> None:
        pass


@pytest.mark.parametrize(
    ("bolt", "fields", "message"),
    [
        (
            Stays(),
            ("user", "url", "seconds"),
            r"execute of 'stays' takes Visit with \['page'\], which stream 'default'",
        ),
        (TakesKeywordOnly(), ("user", "page", "seconds"), "a dataclass with kw_only fields; make them positional"),
        (TakesUnknown(), ("user", "page", "seconds"), "takes 'Decimal', which its module does not know when it runs"),
    ],
)
def test_what_a_bolt_cannot_be_given_is_refused_when_the_topology_is_built(
    bolt: Any, fields: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TopologyError, match=message):
        visits(bolt, fields=fields)


def test_a_plain_topology_gives_tuples_which_can_be_acked() -> None:
    builder = TopologyBuilder("plain")
    builder.set_spout("visits", FeederSpout(["seconds", "page"]))
    builder.set_bolt("stays", BasicStays()).shuffle_grouping("visits")
    with pytest.raises(TopologyError, match="takes Visit, but a plain topology gives its bolts a Tuple"):
        builder.build()


def test_an_object_of_another_dataclass_is_refused_as_a_row(cluster: LocalCluster) -> None:
    run = cluster.submit(visits(Emitting(KeywordOnly(page="/a"))))
    with pytest.raises(UserCodeError, match=r"emitted KeywordOnly.*which takes a list of 2 values: 'page', 'seconds'"):
        run.run_until_idle()


class Emitting(Stays):
    def __init__(self, value: Any) -> None:
        self.value = value

    def execute(self, visit: Visit) -> None:
        self.collector.emit(self.value)
