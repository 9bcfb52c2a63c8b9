"""One pass over a large text, from a cold start to its counts in the server: txbatch and Spark's own ways.

    python -m benchmarks.one_pass --megabytes 500 --repeat 3

txbatch, with row bolts and with column batches, cuts it into transactions of 10,000 lines, each visible as a whole.
Each component has one task, so waves are dealt to the cores by batch and nothing is shuffled.
`foreach_batch` is Structured Streaming with ten files a micro-batch, counted in the JVM and written by one MULTI each.
`rdd` and `sql` are a single job whose counts are written at the end: they show nothing before it, and after a crash
between two writes nobody knows what was counted. Each is measured as a whole; see `whole_job`.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import SUPPRESS
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from benchmarks.control_settings import BEST, PLAIN
from benchmarks.corpus import build_corpus, copy_passes, count_first_lines_of_passes
from benchmarks.guarded_sink import COUNTS_KEY, GuardedSink
from benchmarks.harness import command_line
from benchmarks.txbatch_side import read_counts
from benchmarks.whole_job import Side, compare
from state.redis_server.embedded import EmbeddedServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 10_000
"""Of a transaction."""
CORPUS_MB = 50.0
"""Size of the text that is repeated."""
FILES_A_BATCH = 10
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
TASKS = 2
KEYS = {"rdd": "counts", "sql": "counts", "foreach_batch": COUNTS_KEY}
"""Where the controls count."""
EXAMPLES = {"txbatch": "word_count", "txbatch_columns": "word_count_batches"}


def txbatch_command(example: str, pattern: str, data_dir: Path) -> list[str]:
    """The command of a txbatch side."""
    parameters = ["-p", f"input={pattern}", "-p", f"lines_per_batch={LINES}"]
    run = ["run", f"examples.{example}:topology", *parameters, "--master", "local[2]", "--data-dir", str(data_dir)]
    return ["-m", "coordinator.operating.cli", *run]


def control_command(side: str, pattern: str, data_dir: Path) -> list[str]:
    """The command of a control."""
    return ["-m", "benchmarks.one_pass", "--control", side, "--input", pattern, "--data-dir", str(data_dir)]


def by_job(side: str, spark: SparkSession, pattern: str, url: str) -> None:
    """Counts in one job, with Python functions or in the JVM, and writes once."""
    from benchmarks.suite.sides import spark_batch

    count = spark_batch.by_rdd if side == "rdd" else spark_batch.by_sql
    with redis.Redis.from_url(url, protocol=2) as client:
        spark_batch.write(client, count(spark, TASKS)([pattern]))


def by_foreach_batch(spark: SparkSession, pattern: str, url: str) -> None:
    """Counts in the JVM and writes each micro-batch with its id."""
    from benchmarks.control_side import count_in_jvm

    lines = spark.readStream.format("text").option("lineSep", "\n").option("maxFilesPerTrigger", FILES_A_BATCH)
    sink = GuardedSink(url)
    with tempfile.TemporaryDirectory(prefix="txbatch-checkpoint-") as checkpoint:
        counted = lines.load(pattern).writeStream.foreachBatch(
            lambda batch, batch_id: sink.write(count_in_jvm(batch), batch_id)
        )
        counted.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    sink.close()


CONTROLS: dict[str, Callable[[SparkSession, str, str], None]] = {
    "rdd": partial(by_job, "rdd"),
    "sql": partial(by_job, "sql"),
    "foreach_batch": by_foreach_batch,
}


def control_job(side: str, pattern: str, data_dir: Path) -> None:
    """Runs a control to its end, on two cores and with all of Java's compilers."""
    from benchmarks.control_side import session

    settings = {**BEST, **PLAIN} if side == "foreach_batch" else PLAIN
    spark = session("local[2]", {key: value for key, value in settings.items() if key != JAVA_OPTIONS})
    with EmbeddedServer(data_dir) as server:
        CONTROLS[side](spark, pattern, server.url)
    spark.stop()


def is_stored(key: str, answer: Counter[str], data_dir: Path) -> bool:
    """Whether the server of a folder holds these counts."""
    with EmbeddedServer(data_dir) as server:
        return read_counts(server.url, key) == answer


def sides(pattern: str, answer: Counter[str]) -> dict[str, Side]:
    """Returns all that are compared."""
    found = {
        name: Side(partial(txbatch_command, example, pattern), partial(is_stored, f"{{{example}}}:counts", answer))
        for name, example in EXAMPLES.items()
    }
    for name, key in KEYS.items():
        found[name] = Side(partial(control_command, name, pattern), partial(is_stored, key, answer))
    return found


def main() -> int:
    """The command."""
    parser = command_line("one_pass", __doc__, rounds=3, megabytes=500.0)
    parser.add_argument("--control", choices=CONTROLS, help=SUPPRESS)
    parser.add_argument("--input", help=SUPPRESS)
    parser.add_argument("--data-dir", type=Path, help=SUPPRESS)
    options = parser.parse_args()
    if options.control:
        control_job(options.control, options.input, options.data_dir)
        return 0
    passes = max(1, round(options.megabytes / CORPUS_MB))
    size = min(CORPUS_MB, options.megabytes)
    corpus = build_corpus(options.work_dir / f"corpus-{size:g}mb", size)
    with tempfile.TemporaryDirectory(prefix="txbatch-pass-") as temporary:
        pattern = copy_passes(corpus, Path(temporary) / "input", passes)
        answer = count_first_lines_of_passes(corpus, passes * corpus.line_count)
        print(
            f"{passes * corpus.byte_count / 1e6:,.0f} MB, {passes * corpus.line_count:,} lines, {len(answer):,} words"
        )
        return compare(sides(pattern, answer), rounds=options.rounds, results=options.json)


if __name__ == "__main__":
    sys.exit(main())
