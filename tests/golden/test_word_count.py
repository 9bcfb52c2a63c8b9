"""Golden case G8, its last lines: Storm's word count and global count, as transactions on the local cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from tests.support.topologies.words import words_topology

pytestmark = pytest.mark.case(id="G8")


@pytest.mark.parametrize("shard_count", [1, 2, 3, 16])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(1, 1), (4, 1), (8, 4)])
def test_each_word_is_counted_and_all_of_them_in_order(seed, bounds, shard_count):
    window, group = bounds
    with LocalCluster(seed=seed) as cluster:
        options = RunOptions(max_spout_pending=window, commit_group_max=group)
        run = cluster.submit(replace(words_topology(), shard_count=shard_count), options=options)
        run.run_until_idle()
        assert run.is_done
        states = run.snapshot().states
    assert states["counts"] == {"nathan": 2, "bob": 1, "joey": 1}
    assert states["noted"] == ["nathan 1", "bob 1", "joey 1", "nathan 2"]
    assert states["total"] == [1, 2, 3, 4]
