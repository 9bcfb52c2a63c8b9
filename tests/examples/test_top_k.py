"""The ranking is that of a plain count, at every number of tasks."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator.local.cluster import LocalCluster
from examples.top_k import make_data, topology
from tests.support.examples.answers import top_k


@pytest.mark.parametrize("parallelism", [1, 3])
def test_products_are_ranked_by_the_units_sold(tmp_path, parallelism):
    make_data(tmp_path, 1000)
    units = Counter(top_k(tmp_path)["best_sellers"])
    with LocalCluster(seed=parallelism) as cluster:
        run = cluster.submit(topology(f"{tmp_path}/*.csv", 150, parallelism=parallelism))
        run.run_until_idle()
        assert run.is_done
        assert run.state("best_sellers") == units
        top = cluster.client.zrevrange("{top_k}:best_sellers", 0, 9, withscores=True)
        assert [score for _, score in top] == [count for _, count in units.most_common(10)]
