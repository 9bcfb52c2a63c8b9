"""Sums views and revenue of pages, and keeps the visitors, over files of events in any format.

    txbatch run tests.support.topologies.page_sums:topology -p input='events/*.json.gz'

Its answers are the hashes ``{page_sums}:views`` and ``{page_sums}:revenue_cents`` and the set ``{page_sums}:users``.
"""

from collections import Counter
from decimal import Decimal

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder
from coordinator.sources import CsvFiles, Follow, JsonLines, ParquetFiles
from state import HashState, SetState

TOPOLOGY_ID = "page_sums"
FIELDS = {"user": str, "page": str, "price": Decimal | None}


class SumPages(BaseBatchBolt):
    """Sums up the events of this task, so that few tuples travel on."""

    def declare_output_fields(self, declarer):
        declarer.declare(("page", "views", "cents"))
        declarer.declare_stream("users", ("user",))

    def prepare(self, conf, context, collector, attempt):
        self.collector = collector
        self.views: Counter[str] = Counter()
        self.cents: Counter[str] = Counter()
        self.users: dict[str, bool] = {}  # and not a set: it keeps the order, as a replay has to

    def execute(self, tup):
        user, page, price = tup.values
        self.views[page] += 1
        self.users[user] = True
        if price:
            self.cents[page] += int(price * 100)

    def finish_batch(self):
        self.collector.emit_all([page, views, self.cents[page]] for page, views in self.views.items())
        self.collector.emit_all(([user] for user in self.users), "users")


class StorePages(BaseBatchBolt, ICommitter):
    """Adds views and revenue to what is stored."""

    views = HashState("views", value=int)
    revenue_cents = HashState("revenue_cents", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.seen: Counter[str] = Counter()
        self.cents: Counter[str] = Counter()

    def execute(self, tup):
        page, views, cents = tup.values
        self.seen[page] += views
        self.cents[page] += cents

    def finish_batch(self):
        self.views.increment_many(self.seen)
        self.revenue_cents.increment_many(self.cents)


class StoreUsers(BaseBatchBolt, ICommitter):
    """Keeps the set of visitors."""

    users = SetState("users")

    def prepare(self, conf, context, collector, attempt):
        self.mine: dict[str, bool] = {}

    def execute(self, tup):
        self.mine[tup["user"]] = True

    def finish_batch(self):
        for user in self.mine:
            self.users.add(user)


def source(input, form, rows, follow):
    """Files of events in one of three formats."""
    following = Follow(complete="rename", poll_s=0.2) if follow == "yes" else False
    if form == "csv":
        return CsvFiles(input, FIELDS, rows, follow=following)
    if form == "parquet":
        return ParquetFiles(input, list(FIELDS), rows, follow=following)
    return JsonLines(input, FIELDS, rows, follow=following)


def topology(input, form="json", rows=10_000, follow="no", parallelism=2):
    """The topology.

    Args:
        input: path or glob of the files.
        form: json, csv or parquet.
        rows: events of one transaction.
        follow: yes to wait for new files, which writers give their names when they are complete.
        parallelism: tasks of every component.
    """
    tasks = int(parallelism)
    events = source(input, form, rows, follow)
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "events", events, parallelism=tasks)
    builder.set_bolt("sum", SumPages(), parallelism=tasks).shuffle_grouping("events")
    builder.set_committer_bolt("pages", StorePages(), parallelism=tasks).fields_grouping("sum", ["page"])
    users = builder.set_committer_bolt("users", StoreUsers(), parallelism=tasks)
    users.fields_grouping("sum", ["user"], "users")
    return builder.build()
