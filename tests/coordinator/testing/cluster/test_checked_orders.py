"""Orders that are refused in three places, and those that are not, are those of a plain loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator import LocalCluster, RunOptions
from tests.support.topologies import checked_orders
from tests.support.topologies.orders import refused_in, write_orders

LIMIT = 60


@pytest.mark.parametrize(("lines", "window", "group"), [(1, 8, 8), (7, 1, 1), (7, 8, 3), (50, 4, 64), (1000, 2, 2)])
def test_every_order_is_in_a_total_or_among_the_dead_letters(
    tmp_path: Path, lines: int, window: int, group: int
) -> None:
    answer = write_orders(tmp_path / "orders.jsonl", 300, seed=5, limit=LIMIT)
    with LocalCluster(seed=lines) as cluster:
        # one task of each, so that orders reach the committer in the order of the file, which decides what is refused
        topology = checked_orders.topology(str(tmp_path / "*.jsonl"), lines, limit=LIMIT, parallelism=1)
        run = cluster.submit(topology, options=RunOptions(max_spout_pending=window, commit_group_max=group))
        run.run_until_idle()
        assert run.state("cents") == answer.cents
        assert refused_in(run.dead_letters()) == answer.refused
        assert run.statistics.dead_letters == answer.refused.total() > 80
    assert {component for component, _ in answer.refused} == {"orders", "check", "add"}
