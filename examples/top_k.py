"""Ranks products by how many have been sold: the best sellers of a shop, whose top anybody can read at any moment.

An order is a row of CSV with the columns ``product`` and ``units``. Make some, and rank the products::

    python examples/top_k.py orders
    txbatch run examples/top_k.py:topology -p input='orders/*.csv'

Read the ten best sellers with any client: ``ZREVRANGE {top_k}:best_sellers 0 9 WITHSCORES``. A reader never sees half
a transaction, so at every moment the scores add up to the units sold in a whole number of transactions.
"""

import argparse
import csv
import random
from collections import defaultdict
from pathlib import Path

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder
from coordinator.sources import CsvFiles
from state import SortedSetState


class SumUnits(BaseBatchBolt):
    """Sums up the orders of this task, so that one tuple for each product travels on instead of one for each order."""

    output_fields = ("product", "units")

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.units = collector, defaultdict(int)

    def execute(self, tup):
        self.units[tup["product"]] += tup["units"]

    def finish_batch(self):
        self.collector.emit_all(self.units.items())


class Rank(BaseBatchBolt, ICommitter):
    """Adds the units of each transaction to the ranking.

    The ranking holds every product, since one outside today's top may be in tomorrow's.
    """

    best_sellers = SortedSetState("best_sellers")

    def prepare(self, conf, context, collector, attempt):
        self.units = defaultdict(int)

    def execute(self, tup):
        self.units[tup["product"]] += tup["units"]

    def finish_batch(self):
        self.best_sellers.increment_many(self.units)


def topology(input, rows_per_batch=1000, topology_id="top_k", parallelism=2):
    """Returns the topology.

    Args:
        input: path or glob of CSV files with a row of column names.
        rows_per_batch: rows in one transaction.
        topology_id: names the topology and its keys.
        parallelism: tasks of every component.
    """
    orders = CsvFiles(input, {"product": str, "units": int}, rows_per_batch)
    builder = TransactionalTopologyBuilder(topology_id, "orders", orders, parallelism=parallelism)
    builder.set_bolt("sum", SumUnits(), parallelism=parallelism).shuffle_grouping("orders")
    builder.set_committer_bolt("rank", Rank(), parallelism=parallelism).fields_grouping("sum", ["product"])
    return builder.build()


def make_data(folder, orders=100_000, seed=7):
    """Writes files of orders for 500 products, of which a few sell far more than the others.

    Args:
        folder: is made; holds the files afterwards.
        orders: how many.
        seed: determines them.
    """
    draw = random.Random(seed)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(4):
        with Path(folder, f"{number}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["product", "units"])
            for _ in range(number * orders // 4, (number + 1) * orders // 4):
                rows.writerow([f"product-{int(draw.paretovariate(0.7)) % 500:03}", draw.randint(1, 5)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes sample orders.")
    parser.add_argument("folder")
    parser.add_argument("--orders", type=int, default=100_000)
    make_data(**vars(parser.parse_args()))
