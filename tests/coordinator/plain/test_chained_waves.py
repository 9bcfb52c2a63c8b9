"""A plain topology does the same whether its bolts are chained or not."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinator.plain.plain_plan import PlainPlan
from coordinator.plain.plain_topology_builder import TopologyBuilder
from state.errors import FailedException, UserCodeError
from tests.support.runs.in_process_plain_engine import InProcessPlainEngine
from tests.support.topologies.plain_jobs import Diary, Raising, Scripted, Summing, Told, coordinator_of, planned

NUMBERS = 8
BOLTS = ("a", "b", "c", "d")
GROUPINGS = ("shuffle", "none", "local_or_shuffle", "fields", "all", "global")


class Nested(BaseRichBolt):
    """Passes on what it is given, on two streams, and spoils its own afterwards; acks or fails as the script says.

    Attributes:
        script: (component, number) -> what happens to the tuple instead of an ack.
        executed: (component, values as they arrived) -> how often.
    """

    output_fields = ("number", "things")
    script: ClassVar[dict[tuple[str, int], str]] = {}
    executed: ClassVar[Counter[tuple[str, str]]] = Counter()

    def declare_output_fields(self, declarer):
        super().declare_output_fields(declarer)
        declarer.declare_stream("aside", ("number", "things"))

    def execute(self, tup):
        who, number = self.context.component_id, tup["number"]
        Nested.executed[who, repr(tup.values)] += 1
        things = tup.values[1] if len(tup.values) > 1 else [(1, 2), {"k": {3}}, dt.date(2026, 1, 1)]
        self.collector.emit([number, [*things, who]], tup)
        self.collector.emit([number, things], tup, "aside")
        things.append("spoilt")
        match Nested.script.get((who, number)):
            case "fail":
                self.collector.fail(tup)
            case "raise":
                raise FailedException("as the script says")
            case "leave":
                return
            case _:
                self.collector.ack(tup)


Hearing = tuple[int, str, bool]
"""Which of the components above is heard, by which grouping, on the stream aside."""

SHAPES = st.tuples(
    *(
        st.tuples(
            st.integers(1, 2),
            st.booleans(),
            st.lists(
                st.tuples(st.integers(0, place), st.sampled_from(GROUPINGS), st.booleans()), min_size=1, max_size=2
            ),
        )
        for place in range(len(BOLTS))
    )
)


def topology_of(shape: Any, *, is_chained: bool) -> PlainPlan:
    """The bolts of a shape under one spout task; a spout has one stream, the others two."""
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told(range(NUMBERS), replays=False))
    for name, (tasks, may_chain, hearings) in zip(BOLTS, shape, strict=True):
        declarer = builder.set_bolt(name, Nested(), tasks)
        if not (may_chain and is_chained):
            declarer.disable_chaining()
        for above, grouping, is_aside in {(heard[0], heard[2] and heard[0] > 0): heard for heard in hearings}.values():
            upstream = ("numbers", *BOLTS)[above]
            stream = "aside" if is_aside and above else "default"
            fields = [["number"]] if grouping == "fields" else []
            getattr(declarer, f"{grouping}_grouping")(upstream, *fields, stream)
    builder.set_max_spout_pending(3)
    return planned(builder.build())


def run_of(plan: PlainPlan) -> tuple[Any, ...]:
    """What is seen of a run: what the spout was told, what was executed, and what was counted."""
    Diary.take()
    Nested.executed = Counter()
    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()
    counted = {name: done.to_dict() for name, done in statistics.components.items()}
    for figures in counted.values():
        del figures["execute_ns"], figures["ack_ns"]
    return Diary.take(), Nested.executed, counted, statistics.acked, statistics.failed


CHAIN = ((2, True, [(0, "shuffle", False)]), *((2, True, [(place, "none", True)]) for place in (1, 2, 3)))
FAN = ((1, True, [(0, "all", False)]), *((1, True, [(1, "fields", False), (1, "all", True)]) for _ in range(3)))


@settings(max_examples=25)
@example(shape=CHAIN, script={("d", 3): "leave", ("b", 1): "fail"})
@example(shape=FAN, script={("c", 5): "raise"})
@given(
    shape=SHAPES,
    script=st.dictionaries(
        st.tuples(st.sampled_from(BOLTS), st.integers(0, NUMBERS - 1)),
        st.sampled_from(["fail", "raise", "leave"]),
        max_size=4,
    ),
)
def test_chained_bolts_are_given_the_same_values_and_end_the_same_messages_as_bolts_apart(shape, script):
    Nested.script = script

    chained, apart = (run_of(topology_of(shape, is_chained=how)) for how in (True, False))

    assert chained == apart


def test_a_chain_takes_one_stage():
    Nested.script = {}
    plan, apart = (topology_of(CHAIN, is_chained=how) for how in (True, False))

    assert [len(stage.tasks) for stage in plan.stages] == [2]
    assert [len(stage.tasks) for stage in apart.stages] == [2, 2, 2, 2]
    assert plan.chained_to(2) == (4, 6, 8)


def test_a_failure_in_a_chain_names_the_bolt_and_the_tuple():
    Scripted.reset()
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told(range(4)))
    builder.set_bolt("pass", Scripted()).shuffle_grouping("numbers")
    builder.set_bolt("work", Raising()).shuffle_grouping("pass")
    plan = planned(builder.build())
    assert len(plan.stages) == 1

    with pytest.raises(UserCodeError) as caught:
        coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    error = caught.value
    assert (error.component_id, error.task_index) == ("work", 0)
    assert error.tuple_text == "Tuple(pass/default: number=2)"


def test_what_a_bolt_emits_in_its_cleanup_reaches_the_bolts_chained_to_it():
    Diary.take()
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told(range(5)))
    builder.set_bolt("first", Summing()).shuffle_grouping("numbers")
    builder.set_bolt("second", Summing()).shuffle_grouping("first")
    plan = planned(builder.build())

    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()

    assert (statistics.waves, statistics.acked, statistics.failed) == (1, 5, 0)
    told = [event for event in Diary.take() if event[0] in ("first", "second")]
    assert told == [("first", [0, 1, 2, 3, 4]), ("second", [10])]
