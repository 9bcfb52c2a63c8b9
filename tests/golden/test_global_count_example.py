"""Golden case G12 by the example people read, on the local cluster: each total is there when its batch is committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from examples import global_count

pytestmark = pytest.mark.case(id="G12")

COUNTED = {1: 9, 2: 16, 3: 19, 4: 19}


@pytest.mark.parametrize("shard_count", [1, 2, 3, 16])
@pytest.mark.parametrize("seed", range(5))
def test_the_running_totals_are_9_16_19_19(seed, shard_count):
    totals, txids = {}, {}
    with LocalCluster(seed=seed) as cluster:
        options = RunOptions(max_spout_pending=3, commit_group_max=1)
        run = cluster.submit(replace(global_count.topology(), shard_count=shard_count), options=options)
        while run.tick():
            if (txid := run.statistics.last_txid) not in totals and txid:
                totals[txid], txids[txid] = run.state("total"), run.state("txid")
        statistics = run.statistics
    assert totals == COUNTED
    assert txids == {txid: txid for txid in COUNTED}
    assert (statistics.committed, statistics.tuples) == (4, 19)


@pytest.mark.parametrize("shard_count", [1, 2, 3, 16])
@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize(("words", "empty", "transactions"), [(1, 0, 9), (3, 2, 5), (100, 0, 1)])
def test_the_total_is_19_however_it_is_cut_and_committed(words, empty, transactions, group, shard_count):
    with LocalCluster() as cluster:
        options = RunOptions(max_spout_pending=4, commit_group_max=group)
        topology = global_count.topology(words_per_partition=words, empty_batches=empty)
        run = cluster.submit(replace(topology, shard_count=shard_count), options=options)
        assert run.run_until_idle().committed == transactions
        assert run.snapshot().states == {"total": 19, "txid": transactions}
