"""A topology's picture from what is stored of it is the picture of the topology itself, as far as that is stored."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from coordinated_bolt.streams.groupings import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from coordinator.topology.building.grouping_words import grouping_in_words
from coordinator.topology.building.topology_description import described
from coordinator.topology.pictures.picture_maker import picture_of, picture_of_description
from tests.support.dashboard.stored import DESCRIPTION
from tests.support.topologies.example_topologies import EXAMPLES


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.startswith("plain")])
def test_it_is_the_picture_of_the_topology(name: str) -> None:
    topology = EXAMPLES[name]()
    found, whole = picture_of_description(topology.topology_id, described(topology)), picture_of(topology)
    assert found is not None
    stripped = {replace(node, class_name="", note="", states=()) for node in whole.nodes}
    assert {replace(node, states=()) for node in found.nodes} == stripped
    assert {(e.source, e.target, e.stream_id, e.grouping) for e in found.edges} == {
        (e.source, e.target, e.stream_id, e.grouping) for e in whole.edges
    }
    order = [node.component_id for node in found.nodes]
    assert all(order.index(edge.source) < order.index(edge.target) for edge in found.edges)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        '{"components": {}, "states": {}}',
        '{"components": {"a": {"kind": "teapot", "tasks": 1, "inputs": []}}, "states": {}}',
        '{"components": {"a": {"kind": "bolt", "tasks": 1, "inputs": ["a/default: X()"]}}, "states": {}}',
        '{"components": {"a": {"kind": "bolt", "tasks": 1, "inputs": ["gone"]}}, "states": {}}',
        '{"components": {"a": {"kind": "bolt", "tasks": 1, "inputs": ["a/b: AllGrouping(names=(?))"]}}, "states": {}}',
    ],
    ids=["empty", "text", "list", "none", "other kind", "circle", "other form", "no names"],
)
def test_what_cannot_be_read_is_no_picture(text: str) -> None:
    assert picture_of_description("words", text) is None


def test_states_are_shown_at_their_owner() -> None:
    picture = picture_of_description("words", DESCRIPTION)
    assert picture is not None
    assert [(node.component_id, [state.name for state in node.states]) for node in picture.nodes] == [
        ("lines", []),
        ("count", []),
        ("store", ["counts"]),
    ]
    with_parts = json.loads(DESCRIPTION)
    with_parts["states"]["counts"]["parts"] = "str"
    picture = picture_of_description("words", json.dumps(with_parts))
    assert picture is not None
    assert picture.nodes[2].states[0].key == "{words}:counts:…"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FieldsGrouping(names=('day', 'word'))", "fields day, word"),
        (repr(FieldsGrouping(("day", "it's"))), "fields day, it's"),
        (repr(PartialKeyGrouping(("word",))), "partial key word"),
        (repr(AllGrouping()), "all"),
        (repr(DirectGrouping()), "direct"),
        (repr(GlobalGrouping()), "global"),
        (repr(LocalOrShuffleGrouping()), "local or shuffle"),
        (repr(NoneGrouping()), "none"),
        (repr(ShuffleGrouping()), "shuffle"),
        ("LocalOrShuffleGrouping(local_positions=())", "local or shuffle"),
        ("ByHand(3)", "ByHand(3)"),
        ("FieldsGrouping(names=(?))", "FieldsGrouping(names=(?))"),  # damaged, or a user's own of that name
        ("x" * 100, f"{'x' * 64}… (36 more)"),
    ],
)
def test_groupings_in_words(text: str, said: str) -> None:
    assert grouping_in_words(text) == said
