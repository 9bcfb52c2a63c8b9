"""Moves money between accounts: reads every balance it changes, and refuses what would overdraw one."""

from __future__ import annotations

from collections.abc import Iterable

import redis
from redis.client import Pipeline

from benchmarks.transfers import OPENING_BALANCE, transfer
from benchmarks.transfers import topology as ledger
from coordinator.topology.building.topology import Topology

TOPOLOGY_ID = "ledger"
KEY = f"{{{TOPOLOGY_ID}}}:balances"
ACCOUNTS = 1000
SEED = 7
MOST_TRANSFERS = 1_000_000_000
"""More than any run makes."""


def topology(pattern: str, tuples: int, tasks: int) -> Topology:
    """Returns the topology: it makes its own input and needs no text."""
    built: Topology = ledger(
        transfers=MOST_TRANSFERS,
        accounts=ACCOUNTS,
        transfers_per_batch=tuples,
        topology_id=TOPOLOGY_ID,
        seed=SEED,
        parallelism=tasks,
    )
    return built


def write(client: redis.Redis, pipeline: Pipeline, numbers: Iterable[int]) -> None:
    """Makes the transfers of one batch (control): reads in one round trip, writes in a second one."""
    transfers = [transfer(number, ACCOUNTS, SEED) for number in numbers]
    touched = sorted({account for source, target, _ in transfers for account in (source, target)})
    found = client.hmget(KEY, [str(account) for account in touched])
    balances = {
        account: OPENING_BALANCE if balance is None else int(balance)
        for account, balance in zip(touched, found, strict=True)
    }
    _move(balances, transfers)
    pipeline.hset(KEY, mapping=balances)
    pipeline.execute()


def expected(numbers: Iterable[int]) -> object:
    """Returns the balances that differ from the opening one after these transfers."""
    balances = dict.fromkeys(range(ACCOUNTS), OPENING_BALANCE)
    _move(balances, (transfer(number, ACCOUNTS, SEED) for number in numbers))
    return _changed(balances)


def stored(client: redis.Redis) -> object:
    """Returns the balances that changed: the topology opens all accounts at once, the control each when it is used."""
    return _changed({int(account): int(balance) for account, balance in client.hgetall(KEY).items()})


def _changed(balances: dict[int, int]) -> dict[int, int]:
    return {account: balance for account, balance in balances.items() if balance != OPENING_BALANCE}


def _move(balances: dict[int, int], transfers: Iterable[tuple[int, int, int]]) -> None:
    for source, target, amount in transfers:
        if balances[source] >= amount:
            balances[source] -= amount
            balances[target] += amount
