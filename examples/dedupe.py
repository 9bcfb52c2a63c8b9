"""Adds up payments that are delivered more than once, and counts each of them exactly once.

A payment is a line of JSON such as ``{"id": "p17", "customer": "c4", "cents": 1250}``. Its sender repeats it until it
is acknowledged, so one payment may be on several lines, in one file or in several. Make some, and add them up::

    python examples/dedupe.py payments
    txbatch run examples/dedupe.py:topology -p input='payments/*.jsonl'

Read the answer with any client: ``HGETALL {dedupe}:cents`` is what each customer has paid, ``HGETALL
{dedupe}:deliveries`` how many deliveries were the first of their payment and how many repeated one.
"""

import argparse
import json
import random
from pathlib import Path

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import HashState, JsonLines, SetState, TransactionalTopologyBuilder

PAYMENT = {"id": str, "customer": str, "cents": int}


class AddOnce(BaseBatchBolt, ICommitter):
    """Adds each payment to its customer's total the first time its id arrives; equal ids arrive at the same task."""

    seen = SetState("seen").prefetch("id")
    cents = HashState("cents", value=int)
    deliveries = HashState("deliveries", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.payments, self.delivered = {}, 0

    def execute(self, tup):
        payment_id, customer, cents = tup.values
        self.payments[payment_id] = customer, cents
        self.delivered += 1

    def finish_batch(self):
        known = self.seen.contains_many(self.payments)
        new = [payment_id for payment_id, is_known in known.items() if not is_known]
        self.seen.add_many(new)
        for payment_id in new:
            self.cents.increment(*self.payments[payment_id])
        self.deliveries.increment("first", len(new))
        self.deliveries.increment("repeated", self.delivered - len(new))


def topology(input, lines_per_batch=1000, topology_id="dedupe", parallelism=2):
    """Returns the topology.

    Args:
        input: path or glob of files of JSON lines.
        lines_per_batch: lines in one transaction.
        topology_id: names the topology and its keys.
        parallelism: tasks of every component. The committer reads what it has seen, which several tasks do at a time.
    """
    payments = JsonLines(input, PAYMENT, lines_per_batch)
    builder = TransactionalTopologyBuilder(topology_id, "payments", payments, parallelism=parallelism)
    builder.set_committer_bolt("add", AddOnce(), parallelism=parallelism).fields_grouping("payments", ["id"])
    return builder.build()


def make_data(folder, payments=100_000, seed=7):
    """Writes files of payments, of which every fifth is delivered twice or more, soon or much later.

    Args:
        folder: is made; holds the files afterwards.
        payments: how many different ones.
        seed: determines them.
    """
    draw, deliveries = random.Random(seed), []
    for number in range(payments):
        payment = {"id": f"p{number}", "customer": f"c{draw.randrange(50)}", "cents": draw.randint(100, 10_000)}
        line = json.dumps(payment) + "\n"
        deliveries.append((number, line))
        while draw.random() < 0.2:
            longest_delay = draw.choice([1, 100, payments])
            deliveries.append((number + draw.random() * longest_delay, line))
    deliveries.sort()
    lines_per_file = -(-len(deliveries) // 4)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(4):
        part = deliveries[number * lines_per_file : (number + 1) * lines_per_file]
        Path(folder, f"{number}.jsonl").write_text("".join(line for _, line in part), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes sample payments.")
    parser.add_argument("folder")
    parser.add_argument("--payments", type=int, default=100_000)
    make_data(**vars(parser.parse_args()))
