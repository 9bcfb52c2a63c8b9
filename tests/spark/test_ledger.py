"""The ledger's balances equal those of a plain loop over the same transfers."""

from __future__ import annotations

import pytest

from benchmarks import transfers as ledger
from state.errors import TopologyError
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.topologies.ledger_balances import balances_of_a_plain_loop

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TRANSFERS, ACCOUNTS, SEED = 900, 12, 3


@EITHER_ENGINE
@pytest.mark.parametrize(
    ("parallelism", "commit_group_max"),
    [
        pytest.param(1, 64, marks=pytest.mark.nightly),
        (3, 64),
        pytest.param(2, 7, marks=pytest.mark.every_spark),
        (2, 1),
    ],
)
def test_the_ledger_equals_a_plain_loop_over_its_transfers(cluster, parallelism, commit_group_max):
    topology = ledger.topology(
        transfers=TRANSFERS, accounts=ACCOUNTS, transfers_per_batch=40, seed=SEED, parallelism=parallelism
    )
    statistics = cluster.run(topology, commit_group_max=commit_group_max)

    balances, refused = balances_of_a_plain_loop(TRANSFERS, ACCOUNTS, SEED)
    assert cluster.hash("{ledger}:balances") == balances
    assert statistics.counters == {"refused": refused}
    assert (statistics.committed, statistics.tuples) == (-(-TRANSFERS // 40), TRANSFERS)
    assert refused > 0
    assert sum(balances.values()) == ACCOUNTS * ledger.OPENING_BALANCE


def test_a_ledger_of_one_account_is_refused():
    with pytest.raises(TopologyError, match="ledger needs at least 2 accounts, got 1"):
        ledger.topology(accounts=1)
