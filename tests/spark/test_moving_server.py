"""A run on Spark, whose committers read, while the slot of its topology moves and its primary dies."""

from __future__ import annotations

import threading

import pytest

from benchmarks import transfers as ledger
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from state.redis_client.connection import RedisConnection, connect, texts_by_name
from state.redis_server.program import find_server_program
from tests.support.stores.moving_servers import ClusteredServers
from tests.support.topologies.ledger_balances import balances_of_a_plain_loop

pytestmark = [pytest.mark.nightly, pytest.mark.spark, pytest.mark.redis, pytest.mark.chaos]

TRANSFERS, ACCOUNTS, SEED = 3_000, 12, 3
KEY = "{ledger}:balances"


def test_the_ledger_is_exact_while_its_slot_moves_and_its_primary_dies(contexts):
    topology = ledger.topology(transfers=TRANSFERS, accounts=ACCOUNTS, transfers_per_batch=20, seed=SEED, parallelism=2)
    errors: list[BaseException] = []

    with ClusteredServers(find_server_program()) as servers:

        def strike() -> None:
            try:
                servers.move_slot(KEY, pause_s=0.05)
                servers.fail_over(KEY, by_kill=True)
                servers.restart_dead()  # as a service does; without a replica nothing can be confirmed
            except BaseException as error:  # noqa: BLE001 - raised below, where the test sees it
                errors.append(error)

        striking = threading.Thread(target=strike)

        def on_start(coordinator: object) -> None:
            striking.start()

        before = servers.owner(KEY)
        options = RunOptions(commit_group_max=4, max_spout_pending=16, durability="replica")
        statistics = run(topology, redis_url=servers.url, spark=contexts.open(), options=options, on_start=on_start)
        striking.join()
        assert not errors, errors
        with connect(servers.url, key=KEY) as client:
            found = texts_by_name(RedisConnection(client, "there", timeout_s=30.0).call("HGETALL", KEY))
        assert servers.owner(KEY) is not before
    assert {name: int(text) for name, text in found.items()} == balances_of_a_plain_loop(TRANSFERS, ACCOUNTS, SEED)[0]
    assert statistics.committed == TRANSFERS // 20
