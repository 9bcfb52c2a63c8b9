"""Measures the control once, in a process of its own: ``python -m benchmarks.control_side CASE``.

Structured Streaming reads the same text in micro-batches of the same rows and passes them to foreachBatch,
which counts their words and writes the counts to the same kind of server. Words are counted in the JVM, with or
without a shuffle, or in the driver's Python: the warm-up tries all three in turn, and the fastest is measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its customary name

from benchmarks.control_settings import TUNINGS
from benchmarks.corpus import Corpus, count_words, load_corpus, read_lines
from benchmarks.guarded_sink import COUNTS_KEY, GuardedSink
from benchmarks.harness import median, percentile
from benchmarks.measurement import ControlCase, Result
from benchmarks.txbatch_side import read_counts
from state.redis_server.embedded import EmbeddedServer

Counting = Callable[[DataFrame], Iterable[tuple[str, int]]]

MEMORY_FOLDER = Path("/dev/shm")
FIRST_TIME_S = 1_600_000_000
WHITESPACE = "[" + "".join(f"\\x{{{code:x}}}" for code in range(0x3001) if chr(code).isspace()) + "]+"
"""The separator of `str.split` as a Java regular expression."""


def count_in_driver(batch: DataFrame) -> Iterable[tuple[str, int]]:
    """Collects the lines and counts them in Python."""
    counts: Counter[str] = Counter()
    for (line,) in batch.collect():
        counts.update(line.split())
    return counts.items()


def count_in_jvm(batch: DataFrame) -> Iterable[tuple[str, int]]:
    """Lets Spark split, count and aggregate, in one partition per file."""
    return _aggregated(batch)


def count_in_jvm_unshuffled(batch: DataFrame) -> Iterable[tuple[str, int]]:
    """Does the same in one partition, which avoids the shuffle."""
    return _aggregated(batch.coalesce(1))


def _aggregated(batch: DataFrame) -> Iterable[tuple[str, int]]:
    words = batch.select(F.explode(F.split("value", WHITESPACE)).alias("word")).where("word <> ''")
    return [(row[0], row[1]) for row in words.groupBy("word").count().collect()]


COUNTINGS: tuple[Counting, ...] = (count_in_driver, count_in_jvm, count_in_jvm_unshuffled)


class BatchHandler:
    """The function that foreachBatch calls.

    Args:
        sink: writes the counts.
        warm_up: number of micro-batches in which the ways of counting are compared.

    Attributes:
        ends: when each micro-batch was committed; the next one begins at once.
    """

    def __init__(self, sink: GuardedSink, warm_up: int) -> None:
        self._sink = sink
        self._warm_up = warm_up
        self.ends: list[float] = []

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        self._sink.write(self._counting()(batch), batch_id)
        self.ends.append(time.perf_counter())

    def chosen(self) -> Counting:
        """Returns the fastest way of counting in the second half of the warm-up."""
        took: dict[Counting, list[float]] = {counting: [] for counting in COUNTINGS}
        for number in range(max(1, self._warm_up // 2), self._warm_up):
            took[COUNTINGS[number % len(COUNTINGS)]].append(self.ends[number] - self.ends[number - 1])
        return min(COUNTINGS, key=lambda counting: median(took[counting]))

    def _counting(self) -> Counting:
        number = len(self.ends)
        return COUNTINGS[number % len(COUNTINGS)] if number < self._warm_up else self.chosen()


def measure(case: ControlCase) -> Result:
    """Runs the micro-batches and compares what the server holds with the independent count."""
    with work_folders("control-", case.work_dir) as (folder, in_memory):
        expected, words = cut_batches(
            load_corpus(case.corpus),
            in_memory / "input",
            lines=case.lines,
            files=case.files,
            batch_counts=(case.warm_up, case.batches),
        )
        with EmbeddedServer(folder / "data") as server:
            sink = GuardedSink(server.url)
            handler = BatchHandler(sink, case.warm_up)
            _stream(case, in_memory, handler)
            sink.close()
            stored = read_counts(server.url, COUNTS_KEY)
    first = case.warm_up - 1
    cycles = [end - start for start, end in zip(handler.ends[first:], handler.ends[first + 1 :], strict=False)]
    commits = sink.durations[case.warm_up :]
    return Result(
        transactions=len(cycles),
        tuples=case.lines * len(cycles),
        words=sum(words[case.warm_up :]),
        seconds=handler.ends[-1] - handler.ends[first],
        latency_p50_ms=1000 * percentile(cycles, 50),
        latency_p99_ms=1000 * percentile(cycles, 99),
        commit_p50_ms=1000 * percentile(commits, 50),
        commit_p99_ms=1000 * percentile(commits, 99),
        is_exact=stored == expected,
        details={"counting": handler.chosen().__name__},
    )


@contextmanager
def work_folders(prefix: str, work_dir: str) -> Iterator[tuple[Path, Path]]:
    """Yields a folder on disk, and one in memory where there is such a place; both are gone after the block."""
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=work_dir) as folder,
        tempfile.TemporaryDirectory(
            prefix=prefix, dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else folder, ignore_cleanup_errors=True
        ) as in_memory,
    ):
        yield Path(folder), Path(in_memory)


def session(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Returns a new Spark session with these settings."""
    return SparkSession.builder.master(master).appName("control").config(map=dict(settings)).getOrCreate()


def _stream(case: ControlCase, folder: Path, handler: BatchHandler) -> None:
    """Reads all files, `case.files` per micro-batch, and ends."""
    spark = session(case.master, TUNINGS[case.tuning])
    try:
        lines = (
            spark.readStream.format("text")
            .option("lineSep", "\n")
            .option("maxFilesPerTrigger", case.files)
            .load(str(folder / "input"))
        )
        query = (
            lines.writeStream.foreachBatch(handler)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        spark.stop()


def cut_batches(
    corpus: Corpus, folder: Path, *, lines: int, files: int, batch_counts: Sequence[int]
) -> tuple[Counter[str], list[int]]:
    """Writes files with ascending times, the order in which Spark reads them; a micro-batch is one or a few.

    The control gets fewer batches than the corpus has, so they are taken evenly from the whole corpus: the text at its
    beginning differs from the rest and has fewer words per line.

    Args:
        corpus: the text.
        folder: where to write; must not exist.
        lines: lines per micro-batch.
        files: files per micro-batch.
        batch_counts: micro-batches in each phase of a measurement; each phase spans the corpus.

    Returns:
        The independent count of everything written, and the number of words in each micro-batch.
    """
    folder.mkdir(parents=True)
    places = _places(corpus.line_count // lines, batch_counts)
    counts: Counter[str] = Counter()
    words = [0] * sum(batch_counts)
    source = read_lines(corpus.files)
    for index in range(max(places) + 1):
        batch = list(islice(source, lines))
        for number in places.get(index, ()):
            found = count_words(batch)
            counts.update(found)
            words[number] = found.total()
            _write(folder, batch, number, files)
    return counts, words


def _places(available: int, batch_counts: Sequence[int]) -> dict[int, list[int]]:
    """Returns position in the corpus -> micro-batches, evenly spread for each phase."""
    if not available:
        raise ValueError("the corpus has fewer lines than one micro-batch; make a larger corpus")
    places: dict[int, list[int]] = {}
    number = 0
    for batch_count in batch_counts:
        for step in range(batch_count):
            places.setdefault(step * available // batch_count, []).append(number)
            number += 1
    return places


def _write(folder: Path, batch: list[str], number: int, files: int) -> None:
    for part in range(files):
        share = batch[len(batch) * part // files : len(batch) * (part + 1) // files]
        position = number * files + part
        path = folder / f"{position:07d}.txt"
        path.write_bytes("".join(share).encode())
        os.utime(path, (FIRST_TIME_S + position, FIRST_TIME_S + position))


if __name__ == "__main__":
    print(measure(ControlCase.from_json(sys.argv[1])).to_json())
