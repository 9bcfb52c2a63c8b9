"""Both rankings are those of a plain loop, at every number of tasks and however transactions are grouped."""

from __future__ import annotations

import pytest

from benchmarks.task_counts import with_tasks
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from examples.top_k import make_data, topology
from tests.support.examples.answers import top_k


@pytest.mark.parametrize(("tasks", "group"), [(1, 1), (3, 64)])
def test_products_and_orders_are_ranked(tmp_path, tasks, group):
    make_data(tmp_path, 1000)
    answer = top_k(tmp_path)
    with LocalCluster(seed=tasks) as cluster:
        options = RunOptions(max_spout_pending=8, commit_group_max=group)
        run = cluster.submit(with_tasks(topology(f"{tmp_path}/*.csv", 150), tasks), options=options)
        run.run_until_idle()
        assert run.is_done
        assert {name: run.state(name) for name in answer} == answer
    assert len(answer["largest_orders"]) == 10
