"""Structured Streaming through the bridge, on the real engine: every micro-batch counts once, whatever is repeated."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.exactly_once import exactly_once
from coordinator.sources.micro_batches import MicroBatches
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from examples.streaming_bridge import topology
from state import HashState
from state.errors import TopologyError
from tests.support.runs.collecting import Collecting
from tests.support.spark.bolts import Store

pytestmark = [pytest.mark.spark, pytest.mark.redis]

PAGES = "{clicks}:pages"
EPOCH_S = 1_700_000_000


class Clicks:
    """A folder of JSON Lines files and a query over it, a file a micro-batch.

    Args:
        cluster: where it runs.
    """

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.folder, self.checkpoint = cluster.notes / "clicks", cluster.notes / "checkpoint"
        self.folder.mkdir()
        self.counted: Counter[str] = Counter()

    def add(self, *rows: tuple[str, int]) -> None:
        """Puts a further file into the folder."""
        for page, clicks in rows:
            self.counted[page] += clicks
        lines = "".join(json.dumps({"page": page, "clicks": clicks}) + "\n" for page, clicks in rows)
        number = len(list(self.folder.iterdir()))
        path = self.folder / f"{number:03}.json"
        path.write_text(lines)
        os.utime(path, (EPOCH_S + number, EPOCH_S + number))  # Spark takes files in this order

    def sink(self, **more):
        return exactly_once(topology(), redis_url=self.cluster.redis_url, **more)

    def run(self, sink, checkpoint: Path | None = None):
        """Runs the query over all files there are, and returns it."""
        session = SparkSession(self.cluster.context)
        rows = session.readStream.schema("page string, clicks int").option("maxFilesPerTrigger", 1)
        query = (
            rows.json(str(self.folder))
            .writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(checkpoint or self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def forget(self, log: str, batch_id: int) -> None:
        """Deletes one entry of the checkpoint, with its checksum."""
        (self.checkpoint / log / str(batch_id)).unlink()
        (self.checkpoint / log / f".{batch_id}.crc").unlink(missing_ok=True)

    def stored(self) -> dict[str, int]:
        found: dict[str, int] = self.cluster.hash(PAGES)
        return found


@pytest.fixture
def clicks(cluster):
    made = Clicks(cluster)
    made.add(("a", 1), ("b", 2), ("a", 3))
    made.add(("b", 5), ("c", 7))
    made.add(("a", 11))
    return made


@pytest.fixture
def sinks():
    """Bridges to be closed with the test."""
    made: list[Any] = []
    yield made
    for sink in made:
        sink.close()


@pytest.mark.every_spark
def test_a_batch_whose_end_the_checkpoint_has_lost_counts_once_with_the_bridge_and_twice_without(clicks, sinks):
    def plain(rows, _batch_id):
        for row in rows.collect():
            clicks.cluster.client.hincrby("plain", row["page"], row["clicks"])

    sinks.append(clicks.sink())
    clicks.run(sinks[-1])
    assert clicks.stored() == clicks.counted
    without = clicks.cluster.notes / "plain"
    clicks.run(plain, without)
    assert clicks.cluster.hash("plain") == clicks.counted

    sinks[-1].close()
    clicks.forget("commits", 2)
    (without / "commits" / "2").unlink()
    (without / "commits" / ".2.crc").unlink()
    sinks.append(clicks.sink())
    clicks.run(sinks[-1])
    clicks.run(plain, without)

    assert clicks.stored() == clicks.counted
    assert clicks.cluster.hash("plain") == {**clicks.counted, "a": clicks.counted["a"] + 11}


@pytest.mark.nightly
def test_a_repeated_batch_that_the_server_has_lost_is_not_taken_for_committed(clicks, sinks):
    sinks.append(clicks.sink())
    clicks.run(sinks[-1])
    clicks.forget("commits", 2)
    clicks.cluster.client.delete(*clicks.cluster.client.keys("{clicks}:*"))

    with pytest.raises(Exception, match="has lost"):
        clicks.run(sinks[-1])


def test_a_query_that_is_started_again_continues_with_the_next_batch(clicks, sinks):
    sinks.append(clicks.sink())
    clicks.run(sinks[-1])
    clicks.add(("d", 13))
    clicks.run(sinks[-1])

    assert clicks.stored() == clicks.counted
    assert sinks[-1].statistics.last_txid == 4


def test_a_new_checkpoint_is_refused_with_both_queries_and_the_remedy(clicks, sinks):
    sinks.append(clicks.sink())
    first = clicks.run(sinks[-1])
    counted = clicks.stored()

    with pytest.raises(Exception, match="was started on another input") as caught:
        clicks.run(sinks[-1], clicks.cluster.notes / "other")

    told = str(caught.value)
    assert f"stored fingerprint 'structured streaming query {first.id}'" in told
    assert "--adopt=skip,again" in told
    assert "`txbatch drop clicks`" in told
    assert clicks.stored() == counted


@pytest.mark.nightly
def test_a_checkpoint_that_plans_the_last_batch_anew_is_refused(clicks, sinks):
    sinks.append(clicks.sink())
    clicks.run(sinks[-1])
    for log in ("offsets", "commits", "sources/0"):
        clicks.forget(log, 2)
    clicks.add(("a", 17))

    with pytest.raises(Exception, match="it was planned again"):
        clicks.run(sinks[-1])

    assert clicks.stored() == Counter(a=15, b=7, c=7)


def test_a_column_that_the_rows_lack_is_named(clicks, sinks):
    builder = TransactionalTopologyBuilder("clicks", "rows", MicroBatches(["page", "user"]))
    builder.set_committer_bolt("store", Store()).fields_grouping("rows", ["page"])
    sinks.append(exactly_once(builder.build(), redis_url=clicks.cluster.redis_url))

    with pytest.raises(
        Exception, match=r"the DataFrame has columns \['page', 'clicks'\], and the spout wants \['user'\] too"
    ):
        clicks.run(sinks[-1])


class Totals(Collecting):
    """Keeps what the query has added up."""

    totals = HashState("totals", value=int)

    def finish_batch(self):
        for tup in self.tuples:
            self.totals.put(tup["page"], tup["clicks"])


@pytest.mark.nightly
def test_a_query_that_adds_up_by_itself_goes_through_the_bridge_too(clicks, sinks):
    builder = TransactionalTopologyBuilder("totals", "rows", MicroBatches(["page", "clicks"]), parallelism=2)
    builder.set_committer_bolt("keep", Totals(), parallelism=2).fields_grouping("rows", ["page"])
    sinks.append(exactly_once(builder.build(), redis_url=clicks.cluster.redis_url))
    session = SparkSession(clicks.cluster.context)
    session.conf.set("spark.sql.shuffle.partitions", "3")
    rows = session.readStream.schema("page string, clicks int").option("maxFilesPerTrigger", 1)
    totals = rows.json(str(clicks.folder)).groupBy("page").agg({"clicks": "sum"}).toDF("page", "clicks")
    query = totals.writeStream.foreachBatch(sinks[-1]).outputMode("update").trigger(availableNow=True)
    query.option("checkpointLocation", str(clicks.checkpoint)).start().awaitTermination()

    assert clicks.cluster.hash("{totals}:totals") == clicks.counted


@pytest.mark.nightly
def test_values_arrive_as_plain_python_with_timestamps_in_utc(cluster, sinks):
    seen = cluster.notes / "seen"

    class Note(BaseBatchBolt):
        def execute(self, tup):
            seen.write_text(repr(list(tup)))

    builder = TransactionalTopologyBuilder("typed", "rows", MicroBatches(["at", "raw", "tags", "who", "n", "price"]))
    builder.set_bolt("note", Note()).shuffle_grouping("rows")
    sinks.append(exactly_once(builder.build(), redis_url=cluster.redis_url))
    session = SparkSession(cluster.context)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    rows = rate.selectExpr(
        "timestamp '2024-03-01 12:00:00+02:00' at",
        "cast('ab' as binary) raw",
        "map('k', array(timestamp '2024-01-01 00:00:00Z')) tags",
        "named_struct('name', 'Ann', 'age', 7) who",
        "cast(null as int) n",
        "cast(1.50 as decimal(4,2)) price",
    )
    query = rows.writeStream.foreachBatch(sinks[-1]).option("checkpointLocation", str(cluster.notes / "cp")).start()
    while not seen.exists() and query.isActive:
        query.awaitTermination(1)
    query.stop()

    utc = "tzinfo=datetime.timezone.utc)"
    assert seen.read_text() == (
        f"[datetime.datetime(2024, 3, 1, 10, 0, {utc}, b'ab', {{'k': [datetime.datetime(2024, 1, 1, 0, 0, {utc}]}}, "
        "{'name': 'Ann', 'age': 7}, None, Decimal('1.50')]"
    )


def test_outside_a_streaming_query_the_bridge_says_what_to_do(cluster, sinks):
    sinks.append(exactly_once(topology(), redis_url=cluster.redis_url))
    with pytest.raises(TopologyError, match="hand it to writeStream"):
        sinks[-1](SparkSession(cluster.context).range(1), 0)
