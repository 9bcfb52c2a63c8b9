"""Moves money between accounts, refuses what may not be moved, and keeps each refusal with its reason.

A transfer is a line of JSON such as ``{"number": 17, "source": "ann", "target": "bob", "cents": 250}``. Make some, a
few of them wrong, and enter them into the ledger::

    python examples/ledger.py transfers
    txbatch run examples/ledger.py:topology -p input='transfers/*.jsonl'

Read the balances with any client: ``HGETALL {ledger}:balances``. Money enters by transfers from the account ``bank``,
the only one that may owe, so whenever you look, all balances add up to 0. The refusals are dead letters::

    txbatch dead-letters list ledger

Refused are, each in another place: lines that are not a transfer, by the source; transfers of nothing, or of an account
to itself, by a bolt; transfers of more than the account has, by the committer, which has to read the balance. Every
line is either in the balances or among the dead letters, exactly once, whatever crashes.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

from committers import ICommitter
from coordinated_bolt import BaseBasicBolt, BaseBatchBolt
from coordinator import HashState, JsonLines, TransactionalTopologyBuilder

TRANSFER = {"number": int, "source": str, "target": str, "cents": int}
BANK = "bank"


class Check(BaseBasicBolt):
    """Passes on the transfers that make sense, whatever the balances are."""

    output_fields = tuple(TRANSFER)

    def execute(self, tup, collector):
        if tup["cents"] <= 0:
            collector.dead_letter(tup, f"a transfer of {tup['cents']} cents")
        elif tup["source"] == tup["target"]:
            collector.dead_letter(tup, f"a transfer from {tup['source']} to itself")
        else:
            collector.emit(tup.values)


class KeepBalances(BaseBatchBolt, ICommitter):
    """Makes the transfers of each transaction, in the order of their numbers.

    A transfer touches two accounts, and no grouping could bring both to the same task, so one task keeps them all.
    """

    balances = HashState("balances", value=int).prefetch("source")

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.transfers = collector, []

    def execute(self, tup):
        self.transfers.append(tup)

    def finish_batch(self):
        balances = self.balances.get_many(transfer["source"] for transfer in self.transfers)
        changes: dict[str, int] = defaultdict(int)
        for transfer in sorted(self.transfers, key=lambda transfer: transfer["number"]):
            _, source, target, cents = transfer.values
            has = (balances[source] or 0) + changes[source]
            if source != BANK and has < cents:
                self.collector.dead_letter(transfer, f"{source} has {has} cents")
            else:
                changes[source] -= cents
                changes[target] += cents
        self.balances.increment_many(changes)


def topology(input, lines_per_batch=1000, topology_id="ledger", parallelism=None):
    """Returns the topology.

    Args:
        input: path or glob of files of JSON lines.
        lines_per_batch: lines in one transaction.
        topology_id: names the topology and its keys.
        parallelism: tasks that read and check the transfers of a batch; one task keeps the balances, whatever this is.
    """
    transfers = JsonLines(input, TRANSFER, lines_per_batch, on_bad_record="dead_letter")
    builder = TransactionalTopologyBuilder(topology_id, "transfers", transfers, parallelism=parallelism)
    builder.set_bolt("check", Check(), parallelism=parallelism).shuffle_grouping("transfers")
    builder.set_committer_bolt("balances", KeepBalances()).global_grouping("check")
    return builder.build()


def make_data(folder, transfers=50_000, accounts=100, seed=7):
    """Writes a file of transfers: first the bank pays into every account, then they pay each other.

    Args:
        folder: is made; holds the file afterwards.
        transfers: how many between accounts; about two in a hundred lines are wrong.
        accounts: how many.
        seed: determines them.
    """
    draw, names = random.Random(seed), [f"a{number}" for number in range(accounts)]
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Path(folder, "transfers.jsonl").open("w", encoding="utf-8") as file:
        for number in range(accounts + transfers):
            if number < accounts:
                source, target, cents = BANK, names[number], 10_000
            else:
                (source, target), cents = draw.sample(names, 2), draw.randint(1, 2_000)
            transfer = {"number": number, "source": source, "target": target, "cents": cents}
            line = json.dumps(transfer)
            if draw.random() < 0.02:
                nothing, to_itself = transfer | {"cents": 0}, transfer | {"target": source}
                line = draw.choice([json.dumps(nothing), json.dumps(to_itself), line[:20]])
            file.write(line + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes sample transfers.")
    parser.add_argument("folder")
    parser.add_argument("--transfers", type=int, default=50_000)
    make_data(**vars(parser.parse_args()))
