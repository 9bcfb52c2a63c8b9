"""Sums the ledger by one atomic read at a time while transactions commit and the driver is killed.

    python -m tests.support.chaos.ledger_reader --kills 3

The reader is an ordinary client that asks HVALS over and over; the total is never off. In the end the balances
are those of a plain loop over the same transfers.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from benchmarks import transfers as ledger
from state.keys import Keys
from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import Kill, Site, await_true, kill_at_random_moments, print_summary

TOPOLOGY_ID = "ledger"
PAUSE_S = 0.002
RECONNECT_S = 0.02
LEFTOVER_TIMEOUT_S = 30.0


@dataclass
class Reader:
    """Reads all balances by one command, over and over, until it is stopped.

    Attributes:
        site: where the server is, if it is there.
        expected: what every sum has to be.
        reads: how many sums were taken.
        wrong: the sums that were off.
        states: how many different states were seen.
        absences: how often nobody answered.
    """

    site: Site
    expected: int
    reads: int = 0
    wrong: list[int] = field(default_factory=list)
    states: int = 0
    absences: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _last: Any = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="ledger-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        key = Keys(TOPOLOGY_ID).state("balances")
        while not self._stop.wait(RECONNECT_S):
            try:
                with self.site.client() as client:
                    while not self._stop.wait(PAUSE_S):
                        self._take(client.hvals(key))
            except redis.RedisError:
                self.absences += 1

    def _take(self, values: Any) -> None:
        if not values:
            return  # nothing is committed yet
        self.reads += 1
        total = sum(map(int, values))
        if total != self.expected:
            self.wrong.append(total)
        if values != self._last:
            self.states += 1
            self._last = values


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        kills: every kill.
        reader: what was read meanwhile.
        is_exact: whether the final balances are those of a plain loop.
        said: the last run's JSON.
        leftovers: processes that were still there in the end.
    """

    kills: list[Kill]
    reader: Reader
    is_exact: bool
    said: dict[str, Any]
    leftovers: list[int]


def balances_of_a_plain_loop(transfers: int, accounts: int, seed: int) -> dict[int, int]:
    """Account -> balance after all transfers."""
    balances = [ledger.OPENING_BALANCE] * accounts
    for number in range(transfers):
        source, target, amount = ledger.transfer(number, accounts, seed)
        if balances[source] >= amount:
            balances[source] -= amount
            balances[target] += amount
    return dict(enumerate(balances))


def watch_ledger(
    folder: Path, *, transfers: int, accounts: int, transfers_per_batch: int, kills: int, seed: int, timeout_s: float
) -> Outcome:
    """Runs the ledger in the folder under fire, with a reader next to it."""
    parameters = {"transfers": transfers, "accounts": accounts, "transfers_per_batch": transfers_per_batch}
    given = [part for name, value in {**parameters, "seed": seed}.items() for part in ("-p", f"{name}={value}")]
    arguments = ["benchmarks.transfers:topology", *given, "--max-pending", "16"]
    site = Site(folder, TOPOLOGY_ID, arguments, timeout_s)
    reader = Reader(site, accounts * ledger.OPENING_BALANCE)
    reader.start()
    try:
        total = -(-transfers // transfers_per_batch)
        done = kill_at_random_moments(site, kills=kills, total=total, draw=random.Random(seed))
        said = site.finish()
        with EmbeddedServer(site.data_dir), site.client() as client:
            found: Any = client.hgetall(Keys(TOPOLOGY_ID).state("balances"))
        balances = {int(account): int(money) for account, money in found.items()}
        await_true(lambda: not site.leftovers(), LEFTOVER_TIMEOUT_S)
        is_exact = balances == balances_of_a_plain_loop(transfers, accounts, seed)
        return Outcome(done, reader, is_exact, said, site.leftovers())
    finally:
        reader.stop()
        site.close()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--transfers", type=int, default=100_000)
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--transfers-per-batch", type=int, default=100)
    parser.add_argument("--timeout-s", type=float, default=1800.0)
    options = parser.parse_args()
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="txbatch-chaos-") as temporary:
        outcome = watch_ledger(
            Path(temporary),
            transfers=options.transfers,
            accounts=options.accounts,
            transfers_per_batch=options.transfers_per_batch,
            kills=options.kills,
            seed=options.seed,
            timeout_s=options.timeout_s,
        )
    reader = outcome.reader
    reads = f"{reader.reads:,}, of {reader.states:,} different states; server away {reader.absences:,} times"
    print_summary(
        f"ledger, driver killed {len(outcome.kills)} times (seed {options.seed})",
        {
            "transfers": f"{options.transfers:,} between {options.accounts} accounts",
            **{f"kill {number}": kill for number, kill in enumerate(outcome.kills, 1)},
            "atomic reads": reads,
            "wrong totals": reader.wrong[:10] or f"none, always {reader.expected:,}",
            "last run": outcome.said,
            "final balances": "exactly those of a plain loop" if outcome.is_exact else "WRONG",
            "processes left": outcome.leftovers or "none",
            "seconds": round(time.monotonic() - started_s, 1),
        },
    )
    return 0 if outcome.is_exact and not reader.wrong and reader.reads and not outcome.leftovers else 1


if __name__ == "__main__":
    sys.exit(main())
