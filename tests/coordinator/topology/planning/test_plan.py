"""From a topology to stages: levels, the commit phase, and a way for every frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.transport.edges import DRIVER
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.planning.plan import make_plan
from state.errors import TopologyError
from tests.support.topologies.components import Commit, Lines, Pass, Sink, build, layout, plan


def stage_of(made, task_id):
    """Index of the stage a task runs in."""
    return next(index for index, stage in enumerate(made.stages) if task_id in stage.tasks)


def committing(made):
    return sorted({made.wirings[task].component_id for task in made.commit_tasks})


def test_word_count_is_three_stages():
    made = plan(build(("count", Pass(), ["lines"], 2), ("store", Commit(), ["count"], 2), spout_tasks=2))
    assert layout(made) == [["lines", "lines"], ["count", "count"], [ACKER_COMPONENT, "store", "store"]]
    assert made.meeting_stage == 2
    assert made.emitter_tasks == (1, 2)
    assert made.acker_tasks == (7,)
    assert made.commit_tasks == {5, 6}
    assert made.component_order == ("lines", "count", "store")
    assert made.topology_id == "test"


LAYOUTS = {
    "longest path": ("b1:lines b2:b1 b3:lines,b2", "lines | b1 | b2 | b3 | acker", ""),
    "committer fed early": ("b1:lines b2:b1 c1:lines", "lines | b1 | b2 | acker c1", "c1"),
    "committer on the spout": ("c1:lines", "lines | acker c1", "c1"),
    "bolt fed by both": ("b1:lines c1:b1 b2:b1,c1", "lines | b1 | acker c1 | b2", "b2 c1"),
    "bolt fed by spout and committer": ("c1:lines b1:lines,c1 b2:b1", "lines | acker c1 | b1 | b2", "b1 b2 c1"),
    "committers in a row": ("c1:lines c2:c1 c3:lines,c2", "lines | acker c1 | c2 | c3", "c1 c2 c3"),
    "bolt beside": ("c1:lines b1:lines", "lines | b1 | acker c1", "c1"),
    "deep bolt beside": (
        "b1:lines c1:b1 b2:b1 b3:b2,c1 b4:b3,b2",
        "lines | b1 | b2 | acker c1 | b3 | b4",
        "b3 b4 c1",
    ),
    "committer fed by committer and spout": ("c1:lines c2:c1,lines", "lines | acker c1 | c2", "c1 c2"),
    "committer fed by each phase": (
        "c1:lines b1:lines b2:c1 c2:b1,b2",
        "lines | b1 | acker c1 | b2 | c2",
        "b2 c1 c2",
    ),
    "committers that do not hear each other, and one below both": (
        "b1:lines c1:lines c2:b1 c3:c1,c2",
        "lines | b1 | acker c1 c2 | c3",
        "c1 c2 c3",
    ),
    "deep in both phases, with short cuts": (
        "b1:lines b2:b1 b3:b2 c1:b3 b4:c1 c2:b4 b5:c2 b6:b5,lines,b1,c1",
        "lines | b1 | b2 | b3 | acker c1 | b4 | c2 | b5 | b6",
        "b4 b5 b6 c1 c2",
    ),
    "committer above a long chain that does not pass through it": (
        "c1:lines b1:lines b2:b1 b3:b2 b4:b3,c1",
        "lines | b1 | b2 | b3 | acker c1 | b4",
        "b4 c1",
    ),
}
"""Components with those they hear, c… committers and b… bolts; the stages; the commit phase."""


@pytest.mark.case(id="P-04")
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_mix_of_bolts_and_committers_has_its_phases_and_levels(name):
    components, stages, commit_phase = LAYOUTS[name]
    parts = [component.split(":") for component in components.split()]
    made = plan(build(*((each, Commit() if each[0] == "c" else Pass(), heard.split(",")) for each, heard in parts)))
    shown = " | ".join(" ".join(stage) for stage in layout(made)).replace(ACKER_COMPONENT, "acker")
    assert (shown, " ".join(committing(made))) == (stages, commit_phase)
    needs_id = sorted(w.component_id for w in made.wirings.values() if w.needs_id)
    assert needs_id == [each for each in commit_phase.split() if each[0] == "c"]


def test_a_commit_phase_is_flat_if_nothing_stands_below_its_committers():
    committer = ("commit", Commit(), ["lines"])
    assert plan(build(committer, ("other", Commit(), ["lines"]))).has_flat_commit_phase()
    assert not plan(build(committer, ("below", Pass(), ["commit"]))).has_flat_commit_phase()
    assert not plan(build(("pass", Pass(), ["lines"]))).has_flat_commit_phase()


def test_several_ackers_share_the_attempts_by_txid():
    made = plan(build(("store", Commit(), ["lines"]), ackers=3))
    assert layout(made)[1] == [ACKER_COMPONENT] * 3 + ["store"]
    assert [made.acker_of(txid) for txid in range(1, 8)] == [4, 5, 3, 4, 5, 3, 4]
    assert made.acker_partitions() == [0, 1, 2]
    assert made.commit_partitions() == [3]


def test_acker_and_committers_are_told_which_tasks_report():
    made = plan(build(("a", Pass(), ["lines"], 2), ("store", Commit(), ["a"], 2), ("below", Pass(), ["store"])))
    assert made.processing_tasks() == {1: ("lines", 0), 2: ("a", 0), 3: ("a", 1)}
    assert made.commit_tasks == {4, 5, 6}


def test_a_frame_for_the_next_stage_goes_to_its_slot_and_deeper_ones_are_carried():
    made = plan(
        build(
            ("a", Pass(), ["lines"], 2),
            ("store", Commit(), ["a", "lines"], 2),
            ("below", Pass(), ["store", "lines"], 2),
        )
    )
    assert [stage.tasks for stage in made.stages] == [(1,), (2, 3), (8, 4, 5), (6, 7)]
    assert made.chain.routes_into(1) == {2: 0, 3: 1, 8: 0, 4: 0, 5: 1, 6: 0, 7: 1, DRIVER: 0}
    assert made.chain.routes_into(2) == {8: 0, 4: 1, 5: 2, 6: 1, 7: 2, DRIVER: 1}
    assert made.chain.routes_into(3) == {6: 0, 7: 1, DRIVER: 0}
    assert made.chain.routes_into(4) == {DRIVER: 0}
    assert [stage_of(made, task) for task in (1, 3, 8, 4, 7)] == [0, 1, 2, 2, 3]


def test_ackers_carry_nothing():
    """Their partitions do not run in the commit phase, so a frame left there would be lost."""
    made = plan(build(("store", Commit(), ["lines"]), ("below", Pass(), ["store", "lines"]), ackers=4))
    assert made.stages[1].tasks == (4, 5, 6, 7, 2)
    assert made.chain.routes_into(1) == {4: 0, 5: 1, 6: 2, 7: 3, 2: 4, 3: 4, DRIVER: 4}


class Two(Pass):
    def declare_output_fields(self, declarer):
        declarer.declare(("a",))
        declarer.declare_stream("more", ("b", "c"))


def test_wiring_names_every_stream_and_subscriber_of_both_sides():
    builder = TransactionalTopologyBuilder("test", "lines", Lines())
    builder.set_bolt("two", Two()).shuffle_grouping("lines")
    builder.set_bolt("sink", Sink(), 2).shuffle_grouping("two").shuffle_grouping("two", "more")
    builder.set_bolt("more", Sink()).all_grouping("two", "more")
    made = plan(builder.build({"key": "value"}))
    two, sink = made.wirings[2], made.wirings[3]
    assert two.targets == (3, 4, 5)
    assert [(s.index, s.spec.stream_id, [sub.tasks for sub in s.subscribers]) for s in two.streams.values()] == [
        (0, "default", [(3, 4)]),
        (1, "more", [(3, 4), (5,)]),
    ]
    assert {task: source.component_id for task, source in sink.upstream.items()} == {2: "two"}
    assert [stream.stream_id for stream in sink.upstream[2].streams] == ["default", "more"]
    assert (sink.targets, sink.conf) == ((), {"key": "value"})


def test_a_spec_that_cannot_be_shipped_is_refused_while_planning():
    def refuse(component_id, spec):
        raise TopologyError(f"component {component_id!r} cannot be shipped")

    with pytest.raises(TopologyError, match="component 'lines' cannot be shipped"):
        make_plan(build(("a", Pass(), ["lines"])), refuse)


@st.composite
def topologies(draw):
    """A random graph: each bolt hears some of what came before it."""
    heard_by, kinds = {}, {}
    names = ["lines"]
    for number in range(draw(st.integers(1, 6))):
        name = f"b{number}"
        heard_by[name] = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        kinds[name] = draw(st.booleans())
        names.append(name)
    tasks = {name: draw(st.integers(1, 3)) for name in names}
    bolts = [(name, Commit() if kinds[name] else Pass(), heard, tasks[name]) for name, heard in heard_by.items()]
    return build(*bolts, spout_tasks=tasks["lines"], ackers=draw(st.integers(1, 3)))


@given(topologies(), st.sampled_from([None, 1, 2, 3]))
def test_every_frame_finds_its_way_and_nothing_hears_what_runs_later(topology, slot_count):
    made = plan(topology).in_slots(slot_count)
    placed = [task for stage in made.stages for task in stage.tasks]
    assert sorted(placed) == sorted([*made.wirings, *made.acker_tasks])
    below = {topology.spout.component_id: False}
    for component in topology.components[1:]:
        above = any(below[s.upstream_id] for s in component.subscriptions)
        below[component.component_id] = above or component.kind.value == "committer"
    for task, wiring in made.wirings.items():
        assert (task in made.commit_tasks) == below[wiring.component_id]
        assert (stage_of(made, task) >= made.meeting_stage) == (task in made.commit_tasks)
        assert stage_of(made, task) == 0 or task not in made.emitter_tasks
        for target in [*wiring.targets, *([made.acker_of(1)] if task not in made.commit_tasks else [])]:
            index, carriers = stage_of(made, task), []
            assert index < stage_of(made, target)
            while index < stage_of(made, target):
                index += 1
                partition = made.chain.routes_into(index)[target]
                carriers.append(made.stages[index].partitions[partition])
            assert target in carriers[-1]
            assert not set(sum(carriers[:-1], ())) & set(made.acker_tasks)
    assert set(made.acker_tasks) <= set(made.stages[made.meeting_stage].tasks)
