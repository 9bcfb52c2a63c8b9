"""Tuples as objects of users' classes: bolts that take and emit NamedTuples and dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, ITaskHook
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout, MemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.trying.bolt_trial import run_bolt
from state import HashState, TopologyError, UserCodeError
from tests.support.runs.collecting import Collecting

ROWS = [["ann", "/a", 3], ["bob", "/a", 4], ["ann", "/b", 5]]


class Visit(NamedTuple):
    seconds: int
    page: str


@dataclass
class Stay:
    page: str
    seconds: float | None


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


class Sum(Collecting):
    seconds = HashState[float]("seconds")

    def execute(self, stay: Stay) -> None:
        super().execute(stay)

    def finish_batch(self) -> None:
        for stay in self.tuples:
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
        "TypeError: 'seconds' is 'four' (str) on stream 'default' of 'visits', but Visit declares int; emit that, or "
        "declare str\n"
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


class RefusingLate(Stays):
    def finish_batch(self) -> None:
        for visit in self.kept:
            self.collector.dead_letter(visit, "too late")

    def execute(self, visit: Visit) -> None:
        self.kept = [*getattr(self, "kept", []), visit]


WHOLE = [{"user": user, "page": page, "seconds": seconds} for user, page, seconds in ROWS]
PARTS = [{"seconds": seconds, "page": page} for _, page, seconds in ROWS[:2]]


@pytest.mark.parametrize(
    ("bolt", "sources", "values"),
    [
        (Refusing(), [("visits", "default")] * 3, WHOLE),
        (RefusingWhole(), [("visits", "default")] * 3, WHOLE),
        # of the last one executed the rest is known, of those before it is not
        (RefusingLate(), [("stays", ""), ("visits", "default"), ("visits", "default")], [PARTS[0], *WHOLE[1:]]),
    ],
    ids=["some fields", "all fields", "later"],
)
def test_a_record_that_is_refused_is_the_tuple_it_was_made_of_if_that_is_known(
    cluster: LocalCluster, bolt: Any, sources: list[tuple[str, str]], values: list[dict[str, Any]]
) -> None:
    run = cluster.submit(visits(bolt))
    run.run_until_idle()
    letters = run.dead_letters()
    assert [(letter.source_component, letter.stream_id) for letter in letters] == sources
    assert [dict(zip(letter.fields, letter.values, strict=True)) for letter in letters] == values


def test_a_record_that_is_refused_in_a_stretch_without_hooks_is_its_tuple() -> None:
    trial = run_bolt(Refusing(), ROWS, fields=["user", "page", "seconds"])
    assert [list(letter.values) for letter in trial.dead_letters] == ROWS


class Turned(NamedTuple):
    seconds: int
    page: str


class Swapping(Stays):
    def execute(self, visit: Visit) -> None:
        self.collector.emit(Turned(visit.seconds, visit.page))
        self.collector.emit_all([Turned(visit.seconds, visit.page), Stay(visit.page, visit.seconds), ["/z", 1]])


def test_records_are_emitted_by_name() -> None:
    trial = run_bolt(Swapping(), [["/a", 3]], fields=["page", "seconds"])
    assert trial.emitted() == [["/a", 3], ["/a", 3], ["/a", 3], ["/z", 1]]


@dataclass(kw_only=True)
class KeywordOnly:
    page: str


@dataclass
class Totalled:
    page: str
    total: int = field(default=0, init=False)


class Nothing(NamedTuple):
    pass


def taking(record: Any) -> BaseBatchBolt:
    """A bolt whose `execute` is annotated with this."""

    class Taking(BaseBatchBolt):
        def execute(self, visit: Any) -> None:
            """Ignores it."""

    Taking.execute.__annotations__["visit"] = record
    return Taking()


WIDE = ("user", "page", "seconds")


@pytest.mark.parametrize(
    ("bolt", "fields", "message"),
    [
        (
            Stays(),
            ("user", "url", "seconds"),
            r"execute of 'stays' takes Visit with \['page'\], which stream 'default'",
        ),
        (taking(KeywordOnly), WIDE, r"its fields \['page'\] are kw_only or not given"),
        (taking(Totalled), WIDE, r"its fields \['total'\] are kw_only or not given at all"),
        (taking(Nothing), WIDE, "Nothing stands for tuples and has no field; give it some"),
        (taking(Visit | Totalled), WIDE, "which is not one class for all its tuples"),
        (taking(Visit | None), WIDE, "which is not one class for all its tuples"),
        (taking("Decimal"), WIDE, "takes 'Decimal', which its module does not know when it runs"),
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
