"""Answers a web site's daily questions from its clickstream: how many visits, how many visitors, which pages?

An event is a line of JSON such as ``{"ts": 1767254405, "user": "u17", "page": "/cart"}``: a user saw a page at that
second (UTC). Make some, and read them::

    python examples/clickstream.py events
    txbatch run examples/clickstream.py:topology -p input='events/*.json.gz'

Read the answers with any client, also while it runs: ``HGETALL {clickstream}:visits`` and ``HGETALL
{clickstream}:visitors`` have a number for each day, ``ZREVRANGE {clickstream}:views:2026-01-01 0 9 WITHSCORES`` are the
top pages of one day.

A visit ends when its user has not seen a page for half an hour. Two transactions, or two runs, may each hold a part of
one visit, so the job keeps when each user was last seen.
"""

import argparse
import gzip
import json
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import HashState, JsonLines, SortedSetState, TransactionalTopologyBuilder

EVENT = {"ts": int, "user": str, "page": str}
PAUSE_S = 30 * 60
"""A user who has seen no page for longer begins another visit."""
DAY_S = 24 * 60 * 60


@lru_cache
def date_of(day):
    """Returns the date of a day that is numbered from 1970, such as 2026-01-01."""
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()


class SumPages(BaseBatchBolt):
    """Counts the views of this task's events by day and page, so that few tuples travel on."""

    output_fields = ("day", "page", "views")

    def prepare(self, conf, context, collector, attempt):
        self.collector = collector
        self.views: Counter[tuple[str, str]] = Counter()

    def execute_batch(self, batch):
        days = [date_of(ts // DAY_S) for ts in batch.column("ts")]
        self.views.update(zip(days, batch.column("page"), strict=True))

    def finish_batch(self):
        self.collector.emit_all([day, page, views] for (day, page), views in self.views.items())


class RankPages(BaseBatchBolt, ICommitter):
    """Adds the views of each transaction to the ranking of their day, a sorted set of its own."""

    views = SortedSetState("views").per("day")

    def prepare(self, conf, context, collector, attempt):
        self.days: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))

    def execute(self, tup):
        self.days[tup["day"]][tup["page"]] += tup["views"]

    def finish_batch(self):
        for day, pages in self.days.items():
            self.views[day].increment_many(pages)


class CountVisits(BaseBatchBolt, ICommitter):
    """Counts visits by the day they begin, and for each day its different users; a user is always at the same task.

    An event may be late. It belongs to a visit of its user if that has not ended by then; it never counts for an
    earlier day than its user's last one.
    """

    last_seen = HashState("last_seen", value=int)
    visits = HashState("visits", value=int)
    visitors = HashState("visitors", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.times = defaultdict(list)

    def execute_batch(self, batch):
        for user, ts in zip(batch.column("user"), batch.column("ts"), strict=True):
            self.times[user].append(ts)

    def finish_batch(self):
        visits: dict[str, int] = defaultdict(int)
        visitors: dict[str, int] = defaultdict(int)
        last_seen = self.last_seen.get_many(self.times)
        for user, times in self.times.items():
            last = last_seen[user]
            for ts in sorted(times):
                day = date_of(ts // DAY_S)
                if last is None or ts - last > PAUSE_S:
                    visits[day] += 1
                if last is None or ts // DAY_S > last // DAY_S:
                    visitors[day] += 1
                last = ts if last is None else max(ts, last)
            last_seen[user] = last
        self.last_seen.put_many(last_seen)
        self.visits.increment_many(visits)
        self.visitors.increment_many(visitors)


def topology(input, lines_per_batch=10_000, topology_id="clickstream"):
    """Returns the topology.

    Args:
        input: path or glob of files of JSON lines, plain or compressed.
        lines_per_batch: events in one transaction.
        topology_id: names the topology and its keys.
    """
    events = JsonLines(input, EVENT, lines_per_batch)
    builder = TransactionalTopologyBuilder(topology_id, "events", events)
    builder.set_bolt("sum", SumPages()).shuffle_grouping("events")
    builder.set_committer_bolt("pages", RankPages()).fields_grouping("sum", ["page"])
    builder.set_committer_bolt("visits", CountVisits()).fields_grouping("events", ["user"])
    return builder.build()


def make_data(folder, events=100_000, days=7, seed=7):
    """Writes one compressed file of events a day, each in the order of time.

    Args:
        folder: is made; holds the files afterwards.
        events: about how many there are in all.
        days: over how many days, from 2026-01-01 on.
        seed: determines them.
    """
    draw, first_day = random.Random(seed), 20_454
    clicks: list[tuple[int, str, str]] = []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for day in range(first_day, first_day + days):
        while len(clicks) < events / days:
            user, ts = f"u{draw.randrange(max(1, events // 20))}", day * DAY_S + draw.randrange(DAY_S)
            for _ in range(draw.randint(1, 9)):
                clicks.append((ts, user, f"/page/{int(200 * draw.random() ** 3)}"))
                ts += draw.randint(1, 1200)
        clicks.sort()
        today = [click for click in clicks if click[0] < (day + 1) * DAY_S]
        del clicks[: len(today)]  # what is left are visits that continue after midnight
        with gzip.open(Path(folder, f"{date_of(day)}.json.gz"), "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(dict(zip(EVENT, click, strict=True))) + "\n" for click in today)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes sample events.")
    parser.add_argument("folder")
    parser.add_argument("--events", type=int, default=100_000)
    make_data(**vars(parser.parse_args()))
