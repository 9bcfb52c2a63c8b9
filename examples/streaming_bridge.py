"""Counts clicks per page of a Structured Streaming query, exactly once, into the Redis hash ``{clicks}:pages``.

Run it, and run it again after any crash::

    python examples/streaming_bridge.py input=clicks checkpoint=checkpoint redis_url=redis://localhost:6379

It reads JSON Lines files that are put into the folder ``clicks``, until there are no more, and ends. The query is a
plain one; txbatch is the line with `exactly_once`.
"""

import sys
from collections import defaultdict

from pyspark.sql import SparkSession

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder, exactly_once
from coordinator.sources import MicroBatches
from state import HashState


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
    """The topology: what a micro-batch does to the state."""
    tasks = int(parallelism)
    builder = TransactionalTopologyBuilder(topology_id, "rows", MicroBatches(["page", "clicks"]), parallelism=tasks)
    builder.set_committer_bolt("count", CountPages(), parallelism=tasks).fields_grouping("rows", ["page"])
    return builder.build()


def main(input, checkpoint, redis_url=None, files_per_batch=1):
    """Runs the query until it has read all files.

    Args:
        input: folder of JSON Lines files.
        checkpoint: folder of the query's checkpoint.
        redis_url: the server that holds the state; a private one by default.
        files_per_batch: most files of a micro-batch.
    """
    spark = SparkSession.builder.appName("clicks").getOrCreate()
    clicks = (
        spark.readStream.schema("page string, clicks int")
        .option("maxFilesPerTrigger", int(files_per_batch))
        .json(input)
    )
    query = (
        clicks.writeStream.foreachBatch(exactly_once(topology(), redis_url=redis_url))  # the line that is ours
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(**dict(argument.split("=", 1) for argument in sys.argv[1:]))
