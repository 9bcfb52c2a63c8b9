"""The first random topologies on Spark: the same state as the fold says, and so as the local cluster's.

The stages themselves run many more of them without Spark. TXBATCH_SPARK_SCENARIOS sets how many there are.
"""

from __future__ import annotations

import os

import pytest

from tests.support.scenarios.on_servers import assert_folds_are_left

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

SCENARIOS, CHUNK = int(os.environ.get("TXBATCH_SPARK_SCENARIOS", "25")), 5


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.nightly) for first in range(CHUNK, SCENARIOS, CHUNK))]
)
def test_random_topologies_leave_the_state_of_the_fold(cluster, first):
    assert_folds_are_left(cluster.run, cluster.client, cluster.notes, range(first, first + CHUNK))
