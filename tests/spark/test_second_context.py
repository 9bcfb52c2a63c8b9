"""A process has one Spark context: a run that would start a second one is refused."""

from __future__ import annotations

import pytest

from coordinator.run import run
from state.errors import TopologyError
from tests.support.spark.bolts import exact_counts, numbers_topology

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def test_a_second_context_in_one_process_is_refused_and_the_first_one_goes_on(cluster):
    with pytest.raises(TopologyError, match="pass it to both runs as spark="):
        run(numbers_topology(1), redis_url=cluster.redis_url, master="local[1]")
    assert cluster.client.keys("*") == []

    cluster.run(numbers_topology(1))
    assert cluster.hash("{numbers}:counts") == exact_counts(1)
