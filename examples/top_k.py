"""Ranks products by how many have been sold, and keeps the ten largest orders: two kinds of top k, both exact.

An order is a row of CSV with the columns ``order``, ``product``, ``units`` and ``cents``. Make some, and rank them::

    python examples/top_k.py orders
    txbatch run examples/top_k.py:topology -p input='orders/*.csv'

Read the ten best sellers with any client: ``ZREVRANGE {top_k}:best_sellers 0 9 WITHSCORES``. The ten largest orders are
all of ``{top_k}:largest_orders``. A reader never sees half a transaction.
"""

import argparse
import csv
import random
from collections import defaultdict
from heapq import nlargest
from pathlib import Path

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import CsvFiles, SortedSetState, TransactionalTopologyBuilder

ORDER = {"order": str, "product": str, "units": int, "cents": int}
K = 10


class Preselect(BaseBatchBolt):
    """Sums up the units of each product, and keeps this task's largest orders, so that few tuples travel on."""

    def declare_output_fields(self, declarer):
        declarer.declare(("product", "units"))
        declarer.declare_stream("largest", ("order", "cents"))

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.units, self.orders = collector, defaultdict(int), []

    def execute(self, tup):
        order, product, units, cents = tup.values
        self.units[product] += units
        self.orders.append((cents, order))

    def finish_batch(self):
        self.collector.emit_all(self.units.items())
        self.collector.emit_all([[order, cents] for cents, order in nlargest(K, self.orders)], "largest")


class RankProducts(BaseBatchBolt, ICommitter):
    """Adds the units of each transaction to the ranking.

    It holds every product: scores that are added to must be complete, and what is far down today may sell tomorrow.
    """

    best_sellers = SortedSetState("best_sellers")

    def prepare(self, conf, context, collector, attempt):
        self.units = defaultdict(int)

    def execute(self, tup):
        self.units[tup["product"]] += tup["units"]

    def finish_batch(self):
        self.best_sellers.increment_many(self.units)


class KeepLargest(BaseBatchBolt, ICommitter):
    """Puts each transaction's largest orders among those of all; the commit cuts off what does not stay."""

    largest_orders = SortedSetState("largest_orders", keep_highest=K)

    def prepare(self, conf, context, collector, attempt):
        self.orders = {}

    def execute(self, tup):
        self.orders[tup["order"]] = tup["cents"]

    def finish_batch(self):
        self.largest_orders.put_many(self.orders)


def topology(input, rows_per_batch=1000, topology_id="top_k"):
    """Returns the topology.

    Args:
        input: path or glob of CSV files with a row of column names.
        rows_per_batch: rows in one transaction.
        topology_id: names the topology and its keys.
    """
    orders = CsvFiles(input, ORDER, rows_per_batch)
    builder = TransactionalTopologyBuilder(topology_id, "orders", orders)
    builder.set_bolt("preselect", Preselect()).shuffle_grouping("orders")
    products = builder.set_committer_bolt("products", RankProducts())
    products.fields_grouping("preselect", ["product"])
    builder.set_committer_bolt("largest", KeepLargest()).global_grouping("preselect", "largest")
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
    for part in range(4):
        with Path(folder, f"{part}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(ORDER)
            for number in range(part * orders // 4, (part + 1) * orders // 4):
                product, units = int(draw.paretovariate(0.7)) % 500, draw.randint(1, 5)
                rows.writerow([f"o{number}", f"product-{product:03}", units, units * draw.randint(100, 99_999)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes sample orders.")
    parser.add_argument("folder")
    parser.add_argument("--orders", type=int, default=100_000)
    make_data(**vars(parser.parse_args()))
