"""A topology that is dropped while Spark runs it, with committers that only write and with one that reads."""

from __future__ import annotations

import pytest

from state import HashState
from state.errors import FencedError
from state.redis_owner.store import RedisStore
from tests.support.spark.bolts import Store, numbers_topology
from tests.support.stores.admin import admin_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]


class ReadingStore(Store):
    """Reads what it has counted, so that an executor learns of the drop first."""

    seen = HashState("seen", value=int)

    def finish_batch(self):
        super().finish_batch()
        self.seen.put("batches", (self.seen.get("batches") or 0) + 1)


@pytest.mark.parametrize("store", [Store, ReadingStore])
def test_a_run_whose_topology_is_dropped_says_so_and_leaves_nothing(cluster, store):
    connected: list[int] = []
    topology = numbers_topology(40, store=store())

    def drop_it(statistics):
        if statistics.committed >= 4 and not connected:
            dropping = RedisStore(cluster.redis_url, topology.topology_id)
            connected.append(admin_of(dropping).connected_runs())
            admin_of(dropping).drop()
            dropping.close()

    with pytest.raises(FencedError, match=f"topology '{topology.topology_id}' was dropped during this run"):
        cluster.run(topology, max_spout_pending=4, on_progress=drop_it)

    assert connected == [1]
    assert cluster.client.keys() == []
