"""Executors are dealt to workers, and local-or-shuffle stays on the emitter's, in both kinds of topology."""

from __future__ import annotations

import pytest

from coordinated_bolt import BaseBasicBolt
from coordinator import FeederSpout, FixedBatchesSpout, LocalCluster, TopologyBuilder, TransactionalTopologyBuilder
from state import HashState
from tests.support.runs.collecting import Collecting

ROWS = [[number] for number in range(12)]


class Places(Collecting):
    """Counts tuples by "<emitting task> <executing task>", each the index among its component's."""

    places = HashState("places")

    def finish_batch(self):
        first = self.context.component_tasks("numbers")[0]
        for tup in self.tuples:
            self.places.increment(f"{tup.source_task - first} {self.context.task_index}")


def places(worker_count):
    builder = TransactionalTopologyBuilder("test", "numbers", FixedBatchesSpout([ROWS], ["number"]), parallelism=2)
    builder.set_bolt("places", Places(), parallelism=4).local_or_shuffle_grouping("numbers")
    with LocalCluster(worker_count=worker_count) as cluster:
        run = cluster.submit(builder.build())
        run.run_until_idle()
        return run.state("places")


def test_with_two_workers_tuples_stay_where_they_are():
    # executors in order: numbers 0 and 1, places 0 to 3; dealt to workers 0 1 0 1 0 1
    assert places(2) == {"0 0": 3, "0 2": 3, "1 1": 3, "1 3": 3}


def test_with_one_worker_everything_is_local_and_evenly_spread():
    found = places(1)
    assert sum(found.values()) == 12
    assert len(found) > 4


def test_where_no_task_is_local_all_of_them_are_chosen_from():
    found = places(6)
    assert {place.split()[1] for place in found} == {"0", "1", "2", "3"}


class Where(BaseBasicBolt):
    output_fields = ("index",)

    def execute(self, tup, collector):
        collector.emit([self.context.task_index])


def test_a_plain_topology_has_workers_too():
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", FeederSpout(["number"]))
    builder.set_bolt("where", Where(), parallelism=4).local_or_shuffle_grouping("numbers")
    with LocalCluster(worker_count=2) as cluster:
        run = cluster.submit(builder.build())
        for row in ROWS:
            run.feed("numbers", row)
        run.run_until_idle()
        assert {values[0] for _, values in run.emitted("where")} == {1, 3}


def test_no_worker_is_refused():
    with pytest.raises(ValueError, match="worker count is 0; give an integer of at least 1"):
        LocalCluster(worker_count=0)
