"""Refuses orders in three places while the driver is killed again and again; each is kept exactly once.

Then the limit is raised and the letters of the committer are replayed, under fire too: each is published exactly once.

python -m tests.support.chaos.kill_dead_letters --orders 40000 --kills 10
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from state.commits.dead_letters import DEAD_LETTERS_STATE, DeadLetter, letter_of
from state.keys import Keys
from state.redis_server.embedded import EmbeddedServer
from state.redis_topology.topology import RedisTopology
from tests.support.chaos.jobs import Kill, Site, await_true, kill_at_random_moments, print_summary
from tests.support.topologies.orders import Answer, refused_in, write_orders

TOPOLOGY_ID = "checked_orders"
LINES = 100
UNLIMITED = 10**9


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        kills: of drivers that read.
        replay_kills: of drivers that replayed, by the last committed txid.
        difference: what was refused too seldom or too often, and totals that are wrong.
        said: by the last run.
        leftovers: processes that still run.
    """

    kills: list[Kill] = field(default_factory=list)
    replay_kills: list[int] = field(default_factory=list)
    difference: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    leftovers: list[int] = field(default_factory=list)

    def is_good(self) -> bool:
        return not self.difference and not self.leftovers


def kill_orders(folder: Path, *, orders: int, kills: int, seed: int, timeout_s: float) -> Outcome:
    """Writes orders, has them added up under fire, and compares with a plain loop over them."""
    limit = orders // 8  # within reach of most customers
    unlimited = write_orders(folder / "orders.jsonl", orders, seed=seed, limit=UNLIMITED)
    answer = write_orders(folder / "orders.jsonl", orders, seed=seed, limit=limit)
    site = Site(folder, TOPOLOGY_ID, [*_arguments(folder, limit), "--max-pending", "16"], timeout_s)
    outcome = Outcome()
    try:
        total = -(-orders // LINES)
        outcome.kills = kill_at_random_moments(site, kills=kills, total=total, draw=random.Random(seed))
        outcome.said = site.finish()
        await_true(lambda: not site.leftovers(), 30.0)
        outcome.leftovers = site.leftovers()
        outcome.difference = _compared(site.data_dir, answer)
        if kills and not outcome.difference:
            _replay(site, folder, outcome, kills=kills, draw=random.Random(seed))
            outcome.difference = _compared(site.data_dir, unlimited)
    finally:
        site.close()
    return outcome


def _arguments(folder: Path, limit: int) -> list[str]:
    given = {"input": folder / "orders.jsonl", "lines_per_batch": LINES, "limit": limit, "parallelism": 1}
    parameters = [part for name, value in given.items() for part in ("-p", f"{name}={value}")]
    return ["tests.support.topologies.checked_orders:topology", *parameters]


def _replay(read: Site, folder: Path, outcome: Outcome, *, kills: int, draw: random.Random) -> None:
    """Replays what the committer refused; kills a replay shortly after some of its commits, then lets one finish."""
    arguments = [*_arguments(folder, UNLIMITED), "--component", "add"]
    site = Site(folder, TOPOLOGY_ID, arguments, read.timeout_s, command=("dead-letters", "replay"))
    committed = int(outcome.said["last_txid"])
    try:
        for _ in range(kills):
            job, target = site.start(), committed + draw.randint(0, 3)
            await_true(lambda: not job.is_running() or (site.committed() or 0) > target, site.timeout_s)  # noqa: B023
            await_true(lambda: not job.is_running(), draw.uniform(0.0, 0.3))  # noqa: B023 - called before the next turn
            if not job.is_running():
                raise AssertionError(f"the replay had ended before it was killed:\n{job.complaint()}")
            committed = max(committed, site.committed() or 0)
            job.kill()
            outcome.replay_kills.append(committed)
        outcome.said["replayed_letters"] = site.finish()["replayed_letters"]
        await_true(lambda: not site.leftovers(), 30.0)
        outcome.leftovers += site.leftovers()
    finally:
        site.close()


def _compared(data_dir: Path, answer: Answer) -> dict[str, Any]:
    with EmbeddedServer(data_dir) as server:
        store = RedisTopology(server.url, TOPOLOGY_ID)
        try:
            letters = list(store.dead_letters.all())
            client: Any = store._connection.client
            cents = {
                name.decode(): int(value) for name, value in client.hgetall(Keys(TOPOLOGY_ID).state("cents")).items()
            }
            stored = _members(client)
        finally:
            store.close()
    found = refused_in(letters)
    wrong = {name: (cents.get(name), answer.cents.get(name)) for name in cents.keys() | answer.cents.keys()}
    differences = {
        "lost": dict(answer.refused - found),
        "doubled": dict(found - answer.refused),
        "totals": {name: pair for name, pair in wrong.items() if pair[0] != pair[1]},
        "unread": len(stored) - len(letters),
        "misnumbered": _misnumbered(letters),
    }
    return {name: what for name, what in differences.items() if what}


def _members(client: Any) -> list[DeadLetter]:
    """The letters as any client reads them."""
    held = client.zrange(Keys(TOPOLOGY_ID).state(DEAD_LETTERS_STATE), 0, -1, withscores=True)
    return [letter_of(int(score), member) for member, score in held]


def _misnumbered(letters: list[DeadLetter]) -> list[int]:
    """Transactions whose letters are not numbered from 0 without a gap."""
    counts = Counter(letter.txid for letter in letters)
    return [
        txid
        for txid, count in counts.items()
        if [letter.number for letter in letters if letter.txid == txid] != list(range(count))
    ]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--orders", type=int, default=40_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout-s", type=float, default=300.0)
    options = parser.parse_args()
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="txbatch-chaos-") as temporary:
        outcome = kill_orders(
            Path(temporary), orders=options.orders, kills=options.kills, seed=options.seed, timeout_s=options.timeout_s
        )
    print_summary(
        f"dead letters, seed {options.seed}",
        {
            **{f"kill {number}": kill for number, kill in enumerate(outcome.kills, 1)},
            "last run": {name: outcome.said.get(name) for name in ("last_txid", "committed", "dead_letters")},
            "replays killed at": outcome.replay_kills,
            "published by the last replay": outcome.said.get("replayed_letters"),
            "letters and totals": outcome.difference or "exactly those of a plain loop",
            "processes left": outcome.leftovers or "none",
            "seconds": round(time.monotonic() - started_s, 1),
        },
    )
    return 0 if outcome.is_good() else 1


if __name__ == "__main__":
    sys.exit(main())
