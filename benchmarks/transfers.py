"""Moves money between accounts, exactly once, by transfers that it draws itself: no input, as many as one likes.

    txbatch run benchmarks.transfers:topology -p transfers=20000 -p accounts=100

The Redis hash ``{<topology_id>}:balances`` has the balance of each account.
No money is made or lost: at any moment the balances, read with one command such as ``HVALS {ledger}:balances``,
add up to ``accounts * 1000``. No account is ever overdrawn: a transfer is refused if its source has too little money,
so a balance must be read before it is written.
"""
# mypy: disallow-untyped-defs=False

import random

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import ITransactionalSpout, SpoutCoordinator, SpoutEmitter, TransactionalTopologyBuilder
from state import HashState, TopologyError

OPENING_BALANCE = 1000
LARGEST_AMOUNT = 500


def transfer(number, accounts, seed):
    """Returns the transfer of that number as (source, target, amount); the same on every call."""
    draw = random.Random(f"{seed} {number}")
    source, target = draw.sample(range(accounts), 2)
    return source, target, draw.randint(1, LARGEST_AMOUNT)


class Transfers(ITransactionalSpout):
    """Emits transfers 0, 1, 2, …; a transaction is a range of numbers, so a replay repeats the same transfers."""

    output_fields = ("number", "source", "target", "amount")

    def __init__(self, transfers, accounts, transfers_per_batch, seed):
        self.transfers, self.accounts = transfers, accounts
        self.transfers_per_batch, self.seed = transfers_per_batch, seed

    def get_coordinator(self, conf, context):
        return TransferCutter(self.transfers, self.transfers_per_batch)

    def get_emitter(self, conf, context):
        return TransferEmitter(self.accounts, self.seed, context)

    def fingerprint(self):
        return f"{self.transfers} transfers between {self.accounts} accounts, seed {self.seed}"


class TransferCutter(SpoutCoordinator):
    """Cuts the numbers into ranges (driver); a transaction's metadata is (first number, count)."""

    def __init__(self, transfers, transfers_per_batch):
        self.transfers, self.transfers_per_batch = transfers, transfers_per_batch
        self.next_number = 0

    def resume(self):
        self.next_number = sum(self.run_so_far.last) if self.run_so_far.last else 0

    def is_ready(self):
        return self.next_number < self.transfers

    def initialize_transaction(self, txid, previous):
        start = self.next_number
        self.next_number = min(start + self.transfers_per_batch, self.transfers)
        return start, self.next_number - start

    def is_exhausted(self):
        return self.next_number >= self.transfers


class TransferEmitter(SpoutEmitter):
    """Emits every n-th transfer of a range, where n is the number of emitters (executor)."""

    def __init__(self, accounts, seed, context):
        self.accounts, self.seed, self.context = accounts, seed, context

    def emit_batch(self, attempt, metadata, collector):
        start, count = metadata
        for number in range(start + self.context.task_index, start + count, self.context.task_count):
            collector.emit([number, *transfer(number, self.accounts, self.seed)])


class KeepBalances(BaseBatchBolt, ICommitter):
    """Makes the transfers of each transaction, in the order of their numbers.

    A transfer touches two accounts, and no grouping by account could bring both to the same task, so one task
    keeps them all.
    """

    balances = HashState("balances", value=int, field=int)

    def __init__(self, accounts):
        self.accounts = accounts

    def prepare(self, conf, context, collector, attempt):
        self.context, self.attempt = context, attempt
        self.transfers = []

    def execute(self, tup):
        self.transfers.append(tup.values)

    def finish_batch(self):
        if self.attempt.txid == 1:
            for account in range(self.accounts):
                self.balances.put(account, OPENING_BALANCE)
        touched = {account for _, source, target, _ in self.transfers for account in (source, target)}
        balance = {account: held or 0 for account, held in self.balances.get_many(touched).items()}
        for _, source, target, amount in sorted(self.transfers):
            if balance[source] < amount:
                self.context.count("refused")
                continue
            balance[source] -= amount
            balance[target] += amount
        for account, money in balance.items():
            self.balances.put(account, money)


def topology(*, transfers=20_000, accounts=100, transfers_per_batch=100, topology_id="ledger", seed=7, parallelism=2):
    """Returns the topology.

    Args:
        transfers: number of transfers.
        accounts: number of accounts, at least 2.
        transfers_per_batch: transfers in one transaction.
        topology_id: names the topology and its keys.
        seed: determines the transfers.
        parallelism: tasks that emit transfers; one task keeps the balances.
    """
    if accounts < 2:
        raise TopologyError(f"ledger needs at least 2 accounts, got {accounts}")
    if transfers_per_batch < 1:
        raise TopologyError(f"transfers_per_batch must be at least 1, got {transfers_per_batch}")
    spout = Transfers(transfers, accounts, transfers_per_batch, seed)
    builder = TransactionalTopologyBuilder(topology_id, "transfers", spout, parallelism=parallelism)
    builder.set_committer_bolt("balances", KeepBalances(accounts)).global_grouping("transfers")
    return builder.build()
