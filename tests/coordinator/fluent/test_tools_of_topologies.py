"""What looks at topologies, or runs them otherwise, needs to know nothing of the short form."""

from __future__ import annotations

import re

from coordinator import FixedBatchesSpout, LocalCluster, TransactionalTopologyBuilder, plan, run_bolt, stream
from coordinator.fluent.fused_bolt import FusedBolt
from coordinator.trying.dry_run import dry_run
from state import HashState
from tests.support.runs.quarantine_world import TOPOLOGY_ID, QuarantineWorld

LINES = [[["to be"], ["or not"]], [["to 7"]], [["to be"]]]


def spelled(word):
    if word.isdigit():
        raise ValueError(f"{word} is no word")
    return word


def topology(is_fixed=False):
    words = stream(FixedBatchesSpout(LINES, ["line"]), "lines").flat_map(str.split, to="word")
    return words.map(str if is_fixed else spelled).count_by("word", into=HashState("counts")).topology(TOPOLOGY_ID)


def test_a_plan_shows_components_groupings_and_the_state():
    shown = str(plan(topology()))
    assert "chain lines+split-spelled" in shown
    for written_by_us in ("split-spelled", "counts"):
        assert re.search(rf"{written_by_us} +\w+ +test_tools_of_topologies\.py:\d+ ", shown)
    assert "<- split-spelled by fields word" in shown
    assert "counts (hash str -> int)" in shown


def test_a_dry_run_shows_what_would_be_written():
    (batch,) = dry_run(topology())
    emitted = [(each.component_id, len(each.emitted)) for each in batch.components]
    assert emitted == [("lines", 2), ("split-spelled", 4), ("counts", 0)]
    assert batch.writes is not None
    assert {change.field: change.value for change in batch.writes[0].changes} == {"to": 1, "be": 1, "or": 1, "not": 1}


def test_its_picture_is_that_of_its_components():
    html = topology()._repr_html_()
    assert all(name in html for name in ("lines", "split-spelled", "counts"))


def test_a_poison_batch_is_set_aside_with_its_reason_and_published_when_its_function_is_fixed():
    world = QuarantineWorld()
    world.run(topology())
    assert world.counts() == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert world.quarantined() == [2]
    world.run(topology(is_fixed=True), republish="all")
    assert world.counts() == {"to": 3, "be": 2, "or": 1, "not": 1, "7": 1}


def test_a_bolt_of_it_takes_tuples_from_a_bolt_by_hand_and_can_be_tried_alone():
    fused = topology().component("split-spelled").spec
    assert isinstance(fused, FusedBolt)
    emitted = run_bolt(fused, *LINES[:1], fields=["line"]).emitted()
    assert sorted(emitted) == [[word, 1] for word in ("be", "not", "or", "to")]
    builder = TransactionalTopologyBuilder("by_hand", "lines", FixedBatchesSpout(LINES[:1], ["line"]))
    builder.set_bolt("words", fused).shuffle_grouping("lines")
    with LocalCluster() as cluster:
        run = cluster.submit(builder.build())
        run.run_until_idle()
        assert len(run.emitted("words", 1)) == 4
