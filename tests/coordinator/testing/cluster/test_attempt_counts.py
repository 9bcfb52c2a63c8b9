"""Of the attempts that were issued, no more can fail than there were."""

from __future__ import annotations

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import FixedBatchesSpout, RunOptions, TransactionalTopologyBuilder
from state.errors import FailedException, ReplayLimitError

TRANSACTIONS = 40


class FailsAt(BaseBatchBolt):
    """Fails one transaction, always or the first few times."""

    def __init__(self, txid):
        self.txid = txid

    def execute(self, tup):
        if tup["x"] == self.txid:
            raise FailedException("not now")


@pytest.mark.parametrize("window", [1, 7, 64])
@pytest.mark.parametrize("txid", [1, 20])
def test_attempts_that_never_left_the_window_are_not_said_to_have_failed(cluster, window, txid):
    batches = [[[number]] for number in range(1, TRANSACTIONS + 1)]
    builder = TransactionalTopologyBuilder("fails", "in", FixedBatchesSpout(batches, ["x"]))
    builder.set_bolt("work", FailsAt(txid)).shuffle_grouping("in")
    run = cluster.submit(builder.build(), options=RunOptions(max_spout_pending=window))
    with pytest.raises(ReplayLimitError):
        run.run_until_idle()
    done = run.statistics

    assert done.committed == txid - 1
    assert done.failed_attempts == done.attempts - done.committed
