"""What shards cost: processor time of the driver, of home and of the busiest server, and the latency of a group.

Run it::

    python -m benchmarks.shards
    python -m benchmarks.shards --case 16:3 --lines 1000 --group 16

The same reports of commit tasks as in `commit_path`, committed to a home and its shards. Home has a server of its own,
so that its share is known. A case is shards:servers, with the shards divided among the servers; 1:1 is a topology in
one slot. Latency is the wall time of a commit, with calls to all shards at the same time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from typing import Any

import redis

from benchmarks.commit_path import OPERATIONS, batches, publish, reported, server_time_s
from benchmarks.corpus import Corpus
from benchmarks.durability_levels import server
from benchmarks.harness import command_line, corpus_of, in_rounds, median, table
from state.redis_owner.store import RedisStore
from state.redis_shards.sharded_store import ShardedStore

CASES = ("1:1", "4:1", "16:1", "16:3")


def measure(case: tuple[int, int], corpus: Corpus, lines: int, group: int) -> list[float]:
    """Returns milliseconds a transaction of driver, home, all servers of shards and the busiest, and ms a commit."""
    shards, servers = case
    source, groups, first_txid, made = batches(corpus, lines), [], 1, 0
    while made < OPERATIONS:
        groups.append(reported(first_txid, group, source, shards))
        first_txid += group
        made += max(1, sum(map(len, groups[-1].wires)) // 10)
    with ExitStack() as stack:
        clients = []
        for _ in range(servers + (shards > 1)):
            url = stack.enter_context(server("everysec"))
            clients.append(stack.enter_context(redis.Redis.from_url(url)))
        store = stack.enter_context(_Closing(url, clients, shards))
        publish(groups[0], store)
        before, driver_s, started_s = [*map(server_time_s, clients)], time.process_time(), time.perf_counter()
        for each in groups[1:]:
            publish(each, store)
        took_s, driver_s = time.perf_counter() - started_s, time.process_time() - driver_s
        used = [now - then for now, then in zip(map(server_time_s, clients), before, strict=True)]
    home_s, shard_s = (used[0], used[1:]) if shards > 1 else (0.0, used)
    per_ms = 1000 / (first_txid - 1 - group)
    times = [driver_s, home_s, sum(shard_s), max(shard_s)]
    return [*(each * per_ms for each in times), took_s * 1000 / (len(groups) - 1)]


class _Closing:
    """A store that owns its topology, closed at the end."""

    def __init__(self, url: str, clients: Sequence[Any], shards: int) -> None:
        if shards == 1:
            self._store = RedisStore(url, "bench", client=clients[0])
        else:
            dealt = list(islice(cycle(clients[1:]), shards))
            self._store = ShardedStore(
                url, "bench", shard_count=shards, client=clients[0], shard_clients=dealt, at_once=True
            )

    def __enter__(self) -> RedisStore:
        self._store.check_server()
        self._store.acquire(nonce="a" * 32, new_generation="b" * 32, topology="t", source_fingerprint="s")
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("shards", __doc__, rounds=5, option="--rounds", megabytes=50.0, has_json=False)
    parser.add_argument("--case", nargs="+", default=CASES, help="shards : servers for them (default %(default)s)")
    parser.add_argument("--lines", type=int, default=1000, help="lines per transaction (default %(default)s)")
    parser.add_argument("--group", type=int, default=16, help="transactions per commit (default %(default)s)")
    return parser.parse_args(arguments)


def main() -> None:
    """Measures and prints."""
    options = parse_arguments()
    corpus = corpus_of(options)
    cases = [(int(shards), int(servers)) for shards, servers in (case.split(":") for case in options.case)]
    measured = in_rounds(
        cases,
        lambda case: measure(case, corpus, options.lines, options.group),
        options.rounds,
        shown=lambda case, found: f"{case}: {found}",
    )
    cells = []
    for (shards, servers), found in measured:
        figures = [median(column) for column in zip(*found, strict=True)]
        cells.append([f"{shards} on {servers}", *(f"{figure:.3f}" for figure in figures)])
    headings = ("shards on servers", "driver ms/tx", "home ms/tx", "shards ms/tx", "busiest ms/tx", "ms a commit")
    print(table(headings, cells))


if __name__ == "__main__":
    main()
