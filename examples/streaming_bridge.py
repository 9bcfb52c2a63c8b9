"""Counts clicks per page of a Structured Streaming query, exactly once, into the Redis hash ``{clicks}:pages``.

A row is a line of JSON such as ``{"page": "/cart", "clicks": 3}``. Make 12 files of them, each of which becomes a
micro-batch, and count them::

    python examples/streaming_bridge.py clicks --make-data 12

Kill it, and run it again without ``--make-data``: the query and the state continue together. It ends when it has read
all files. With ``--redis redis://localhost:6379`` the state is on your own server.

The query is a plain one; txbatch is the line with `exactly_once`.
"""

import argparse
import json
import random
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import HashState, TransactionalTopologyBuilder, exactly_once
from coordinator.sources import MicroBatches


class CountPages(BaseBatchBolt, ICommitter):
    """Adds the clicks of each micro-batch to the stored ones."""

    pages = HashState("pages", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.clicks = defaultdict(int)

    def execute(self, tup):
        self.clicks[tup["page"]] += tup["clicks"]

    def finish_batch(self):
        self.pages.increment_many(self.clicks)


def topology(topology_id="clicks", parallelism=2):
    """The topology: what a micro-batch does to the state; as there is one at a time, several tasks share it."""
    tasks = int(parallelism)
    builder = TransactionalTopologyBuilder(topology_id, "rows", MicroBatches(["page", "clicks"]), parallelism=tasks)
    builder.set_committer_bolt("count", CountPages(), parallelism=tasks).fields_grouping("rows", ["page"])
    return builder.build()


def run_query(folder, checkpoint, redis_url=None, files_per_batch=1):
    """Runs the query until it has read all files.

    Args:
        folder: holds files of JSON lines.
        checkpoint: folder of the query's checkpoint.
        redis_url: the server that holds the state; a private one by default.
        files_per_batch: most files of a micro-batch.
    """
    spark = SparkSession.builder.appName("clicks").getOrCreate()
    clicks = (
        spark.readStream.schema("page string, clicks int").option("maxFilesPerTrigger", files_per_batch).json(folder)
    )
    with closing(exactly_once(topology(), redis_url=redis_url)) as sink:
        query = (
            clicks.writeStream.foreachBatch(sink)  # the line that is ours
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        done = sink.statistics
    print(f"{done.committed if done else 0} micro-batches committed")


def make_data(folder, files, seed=7):
    """Writes files of clicks, of which each becomes a micro-batch.

    Args:
        folder: is made; holds the files afterwards.
        files: how many, each of 100 lines.
        seed: determines them.
    """
    draw = random.Random(seed)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(files):
        rows = [{"page": f"/page/{draw.randrange(20)}", "clicks": draw.randint(1, 9)} for _ in range(100)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        Path(folder, f"{number:04}.json").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Counts the clicks of a folder's files.")
    parser.add_argument("folder")
    parser.add_argument("--make-data", type=int, default=0, metavar="FILES", help="first write this many files there")
    parser.add_argument("--checkpoint", default="checkpoint", help="folder of the query's checkpoint")
    parser.add_argument("--redis", metavar="URL", help="the server that holds the state; a private one by default")
    options = parser.parse_args()
    make_data(options.folder, options.make_data)
    run_query(options.folder, options.checkpoint, options.redis)
