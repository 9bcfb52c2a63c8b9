"""Stages of a wave: bolts by their longest path, and a way for what is meant for further down."""

from __future__ import annotations

import pytest

from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.planning.stages import Stage
from tests.support.topologies.plain_components import Identity
from tests.support.topologies.plain_jobs import planned


def jump(ackers=1):
    """spout(1, 2) -> a(3, 4) -> b(5) -> c(6, 7); spout and a feed c as well. Ackers from 8."""
    builder = TopologyBuilder("test")
    builder.set_spout("spout", FeederSpout(("value",)), 2)
    builder.set_bolt("c", Identity(), 2).shuffle_grouping("spout").shuffle_grouping("a").shuffle_grouping("b")
    builder.set_bolt("a", Identity(), 2).shuffle_grouping("spout")
    builder.set_bolt("b", Identity(), 1).shuffle_grouping("a")
    builder.set_acker_count(ackers)
    return planned(builder.build())


@pytest.mark.parametrize("ackers", [0, 1, 2])
def test_a_bolt_is_on_the_level_of_its_longest_path_and_ackers_have_no_stage(ackers):
    plan = jump(ackers)
    assert plan.stages == (Stage((3, 4)), Stage((5,)), Stage((6, 7)))
    assert plan.is_tracked == (ackers > 0)
