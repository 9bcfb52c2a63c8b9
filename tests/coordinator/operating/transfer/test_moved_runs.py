"""A topology that is exported and put into another server at any moment of its life continues as if it had stayed."""

from __future__ import annotations

import io
from itertools import count

import pytest

from coordinator.operating.transfer.exporting import export_state
from coordinator.operating.transfer.importing import checked_export, import_state
from state.redis_admin.topology import RedisTopology
from state.redis_server.in_memory import in_memory_client
from tests.support.runs.quarantine_world import POISON, SPOUTS, TOPOLOGY_ID, QuarantineWorld, fold, topology

BATCHES = [["a", "b", "c", "d"], ["a", POISON, "c", "e"], ["b", "b", "b", "f"], ["a", "c", "c", POISON]]
kinds = pytest.mark.parametrize("kind", SPOUTS)


def poisoned(kind, **more):
    return topology(SPOUTS[kind](BATCHES), **more)


def move(world):
    """The topology is exported, and the world has another server from now on, into which it is put."""
    out = io.BytesIO()
    there = RedisTopology("redis://given", TOPOLOGY_ID, client=world.server)
    export_state(there.records(), out)
    world.server = in_memory_client()
    here = RedisTopology("redis://given", TOPOLOGY_ID, client=world.server)
    export = checked_export(io.BytesIO(out.getvalue()))
    import_state(here.importer(), export, io.BytesIO(out.getvalue()), generation="d" * 32, replaces=False)


@kinds
def test_a_quarantined_batch_is_replayed_where_it_was_put(kind):
    world = QuarantineWorld()
    world.run(poisoned(kind))
    move(world)
    assert world.quarantined() == [2, 4]
    statistics = world.run(poisoned(kind, is_fixed=True), republish=[4])
    assert statistics.republished == {4: 5}
    move(world)
    world.run(poisoned(kind, is_fixed=True), republish="all")
    assert world.counts() == fold(BATCHES)
    assert world.quarantined() == []


@kinds
def test_a_run_that_died_anywhere_is_continued_where_its_topology_was_put(kind):
    for dies_at in count(2):  # before the second call nothing is stored
        world = QuarantineWorld(dies_at)
        has_died = world.dies(poisoned(kind), dies_at, applied=bool(dies_at % 2), commit_group_max=1)
        if not world.server.exists(f"{{{TOPOLOGY_ID}}}:txbatch:control"):
            continue
        move(world)
        world.run(poisoned(kind))
        assert world.counts() == fold(BATCHES, without=[2, 4])
        assert world.quarantined() == [2, 4]
        if not has_died:
            break
    assert dies_at > 5


@kinds
def test_a_replay_that_died_anywhere_is_repeated_where_its_topology_was_put(kind):
    for dies_at in count(1):
        world = QuarantineWorld(dies_at)
        world.run(poisoned(kind))
        fixed = poisoned(kind, is_fixed=True)
        has_died = world.dies(fixed, dies_at, applied=bool(dies_at % 2), republish="all")
        move(world)
        assert world.counts() == fold(BATCHES, without=world.quarantined())
        if world.quarantined():
            world.run(fixed, republish="all")
        world.run(fixed)
        assert world.counts() == fold(BATCHES)
        if not has_died:
            break
    assert dies_at > 3
