"""Moves money between accounts, exactly once: Redis hash ``{<topology_id>}:balances``, account -> balance.

Run it::

    txbatch run examples.ledger:topology -p transfers=20000 -p accounts=100

No money is made or lost: whoever adds up the balances, by one command such as ``HVALS {ledger}:balances``
and at any moment, gets ``accounts * 1000``. And no account is ever overdrawn: a transfer is refused when its
source has too little, so a balance has to be read before it is written.
"""

import random

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import ITransactionalSpout, SpoutCoordinator, SpoutEmitter, TransactionalTopologyBuilder
from state import HashState, TopologyError

OPENING_BALANCE = 1000
LARGEST_AMOUNT = 500


def transfer(number, accounts, seed):
    """The transfer of that number as (source, target, amount), the same whenever it is asked for."""
    draw = random.Random(f"{seed} {number}")
    source, target = draw.sample(range(accounts), 2)
    return source, target, draw.randint(1, LARGEST_AMOUNT)


class Transfers(ITransactionalSpout):
    """Transfers 0, 1, 2, …; a transaction is a range of numbers, so a replay is the same transfers again."""

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
    """Cuts the numbers into ranges (driver); a transaction's metadata is (first number, how many)."""

    def __init__(self, transfers, transfers_per_batch):
        self.transfers, self.transfers_per_batch = transfers, transfers_per_batch
        self.next_number = 0

    def resume(self, last_txid, last):
        self.next_number = sum(last) if last else 0

    def is_ready(self):
        return self.next_number < self.transfers

    def initialize_transaction(self, txid, previous):
        start = self.next_number
        self.next_number = min(start + self.transfers_per_batch, self.transfers)
        return start, self.next_number - start

    def is_exhausted(self, last):
        return self.next_number >= self.transfers


class TransferEmitter(SpoutEmitter):
    """Emits every n-th transfer of a range, n emitters together all of them (executor)."""

    def __init__(self, accounts, seed, context):
        self.accounts, self.seed, self.context = accounts, seed, context

    def emit_batch(self, attempt, metadata, collector):
        start, count = metadata
        for number in range(start + self.context.task_index, start + count, self.context.task_count):
            collector.emit([number, *transfer(number, self.accounts, self.seed)])


class KeepBalances(BaseBatchBolt, ICommitter):
    """Makes the transfers of each transaction, in the order of their numbers.

    A transfer touches two accounts, so no grouping by account brings both to the same task: it takes one
    task that has them all.
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
        balance = self.balances.get_many(touched)
        for _, source, target, amount in sorted(self.transfers):
            if balance[source] < amount:
                self.context.count("refused")
                continue
            balance[source] -= amount
            balance[target] += amount
        for account, money in balance.items():
            self.balances.put(account, money)


def topology(*, transfers=20_000, accounts=100, transfers_per_batch=100, topology_id="ledger", seed=7, parallelism=2):
    """The topology.

    Args:
        transfers: how many there are.
        accounts: between how many accounts, 2 at least.
        transfers_per_batch: transfers of one transaction.
        topology_id: names the topology and its keys.
        seed: another seed, other transfers.
        parallelism: tasks that emit transfers; the balances are kept by one.
    """
    if accounts < 2 or transfers_per_batch < 1:
        raise TopologyError(f"{accounts} accounts, {transfers_per_batch} transfers_per_batch: take 2 and 1 at least")
    spout = Transfers(transfers, accounts, transfers_per_batch, seed)
    builder = TransactionalTopologyBuilder(topology_id, "transfers", spout, parallelism=parallelism)
    builder.set_committer_bolt("balances", KeepBalances(accounts)).global_grouping("transfers")
    return builder.build()
