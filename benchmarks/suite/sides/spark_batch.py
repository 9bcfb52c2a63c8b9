"""Measures plain Spark jobs, by RDD or by SQL: ``python -m benchmarks.suite.sides.spark_batch ASSIGNMENT``.

A transaction is a job over its files, whose counts the driver collects and adds with one pipeline. Nothing tells a
second attempt from a first one. The session stays warm; few different transactions take turns as input.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from operator import add
from pathlib import Path

import redis
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its customary name

from benchmarks.control_settings import PLAIN
from benchmarks.control_side import WHITESPACE, cut_batches, session, work_folders
from benchmarks.corpus import count_words, load_corpus, read_lines
from benchmarks.suite.cells import Assignment, Measurement
from benchmarks.suite.text_input import repeated_corpus
from benchmarks.suite.timing import MeasuredSpan, processor_now
from benchmarks.txbatch_side import read_counts
from state.redis_server.embedded import EmbeddedServer

KEY = "counts"
INPUTS = 3
"""Different transactions, taken evenly from the corpus."""

Count = Callable[[list[str]], list[tuple[str, int]]]


def by_rdd(spark: SparkSession, tasks: int) -> Count:
    """Returns the counting with Python functions."""
    context = spark.sparkContext

    def count(paths: list[str]) -> list[tuple[str, int]]:
        lines = context.textFile(",".join(paths), tasks)
        return lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(add, tasks).collect()

    return count


def by_sql(spark: SparkSession, tasks: int) -> Count:
    """Returns the counting in the JVM."""

    def count(paths: list[str]) -> list[tuple[str, int]]:
        words = spark.read.text(paths).select(F.explode(F.split("value", WHITESPACE)).alias("word"))
        return [(row[0], row[1]) for row in words.where("word <> ''").groupBy("word").count().collect()]

    return count


def measure(assignment: Assignment) -> Measurement:
    """Runs jobs for a while and compares what the server holds with an independent count."""
    cell = assignment.cell
    name = f"{Path(assignment.corpus).name}-{cell.tuples}"
    with work_folders("spark-", assignment.work_dir) as (folder, in_memory):
        corpus = repeated_corpus(load_corpus(assignment.corpus), Path(assignment.work_dir) / name, cell.tuples)
        cut_batches(corpus, in_memory / "input", lines=cell.tuples, files=cell.tasks, batch_counts=(INPUTS,))
        paths = sorted(map(str, (in_memory / "input").iterdir()))
        inputs = [paths[start : start + cell.tasks] for start in range(0, len(paths), cell.tasks)]
        with EmbeddedServer(folder / "data") as server:
            return _jobs(assignment, server.url, inputs)


def _jobs(assignment: Assignment, url: str, inputs: list[list[str]]) -> Measurement:
    cell = assignment.cell
    spark = session(f"local[{cell.tasks}]", {**PLAIN, "spark.sql.shuffle.partitions": str(cell.tasks)})
    span = MeasuredSpan(assignment.warm_up_s, assignment.seconds, processor_now)
    used = [0] * len(inputs)
    try:
        count = (by_rdd if cell.side == "spark_rdd" else by_sql)(spark, cell.tasks)
        with redis.Redis.from_url(url, protocol=2) as client:
            while span.end is None:
                span.note(time.monotonic(), sum(used), sum(used) * cell.tuples)
                number = sum(used) % len(inputs)
                write(client, count(inputs[number]))
                used[number] += 1
    finally:
        spark.stop()
    return span.measurement(is_exact=read_counts(url, KEY) == expected(inputs, used))


def write(client: redis.Redis, counts: list[tuple[str, int]]) -> None:
    """Adds the counts of one job."""
    with client.pipeline(transaction=False) as pipeline:
        for word, count in counts:
            pipeline.hincrby(KEY, word, count)
        pipeline.execute()


def expected(inputs: list[list[str]], used: list[int]) -> Counter[str]:
    """Returns the independent count of inputs that were each used so often."""
    total: Counter[str] = Counter()
    for paths, times in zip(inputs, used, strict=True):
        for word, count in count_words(read_lines(map(Path, paths))).items():
            total[word] += times * count
    return total


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1])).to_json())
