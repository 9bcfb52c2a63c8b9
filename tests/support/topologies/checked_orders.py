"""Adds up orders by customer, ``{"order": "a1", "customer": "ann", "cents": 250}`` a line, and refuses some of them.

Refused are, each in another place: lines that are not such an object, by the source; orders of nothing, by a bolt;
orders that would take a customer's total above a limit, by the committer, which has to read it.
"""

from collections import defaultdict

from committers import ICommitter
from coordinated_bolt import BaseBasicBolt, BaseBatchBolt
from coordinator import TransactionalTopologyBuilder
from coordinator.sources import JsonLines
from state import HashState

LIMIT_CENTS = 100_000


class Check(BaseBasicBolt):
    """Passes on the orders of something."""

    output_fields = ("order", "customer", "cents")

    def execute(self, tup, collector):
        if tup["cents"] <= 0:
            collector.dead_letter(tup, f"an order of {tup['cents']} cents")
        else:
            collector.emit(list(tup))


class AddUp(BaseBatchBolt, ICommitter):
    """Adds each order to its customer's total, as long as that stays within the limit."""

    cents = HashState("cents", value=int)

    def __init__(self, limit):
        self.limit = limit

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.orders = defaultdict(list)

    def execute(self, tup):
        self.orders[tup["customer"]].append(tup)

    def finish_batch(self):
        totals = self.cents.get_many(self.orders)
        for customer, orders in self.orders.items():
            total = totals[customer] or 0
            for order in orders:
                if total + order["cents"] > self.limit:
                    self.collector.dead_letter(order, f"{customer} would owe {total + order['cents']} cents")
                else:
                    total += order["cents"]
            self.cents.put(customer, total)


def topology(input, lines_per_batch=1000, limit=LIMIT_CENTS, topology_id="checked_orders", parallelism=2):
    """Returns the topology.

    Args:
        input: path or glob of files of JSON lines.
        lines_per_batch: lines in one transaction.
        limit: most cents a customer may owe.
        topology_id: names the topology and its keys.
        parallelism: tasks of every component.
    """
    tasks = int(parallelism)
    orders = JsonLines(
        input, {"order": str, "customer": str, "cents": int}, int(lines_per_batch), on_bad_record="dead_letter"
    )
    builder = TransactionalTopologyBuilder(topology_id, "orders", orders, parallelism=tasks)
    builder.set_bolt("check", Check(), parallelism=tasks).shuffle_grouping("orders")
    builder.set_bolt("add", AddUp(int(limit)), parallelism=tasks).fields_grouping("check", ["customer"])
    builder.set_dead_letters(total=1_000_000)
    return builder.build()
