"""Measures Pathway, one process: ``python -m benchmarks.suite.sides.pathway_flow ASSIGNMENT``.

Each transaction is a commit of the source. Pathway's engine, which is Rust, groups and counts its words, a Python
function splits the lines, and the sink puts the counts that have changed with one pipeline whenever a time is complete.
Up to `WINDOW` transactions are in flight, as with txbatch. Without a persistence backend nothing survives a crash.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pathway as pw
import redis

from benchmarks.corpus import load_corpus
from benchmarks.suite.cells import Assignment, Measurement
from benchmarks.suite.text_input import Lines
from benchmarks.suite.timing import MeasuredSpan, processor_now
from benchmarks.txbatch_side import read_counts
from state.redis_server.embedded import EmbeddedServer

KEY = "counts"
WINDOW = 64
NUMBER = ""
"""Stands in place of a word for the number of the last transaction, which a word never is."""


class Line(pw.Schema):  # type: ignore[misc] # not installed everywhere
    """What the source gives."""

    number: int
    line: str


class Transactions(pw.io.python.ConnectorSubject):  # type: ignore[misc] # likewise
    """The source: emits transactions until the time is up, at most `WINDOW` ahead of the sink.

    Args:
        text: what they are made of.
        size: lines of each.
        span: what is measured.
    """

    def __init__(self, text: Lines, size: int, span: MeasuredSpan) -> None:
        super().__init__()
        self._text, self._size, self._span = text, size, span
        self.room = threading.Semaphore(WINDOW)
        self.given = 0

    def run(self) -> None:
        while self._span.end is None:
            if not self.room.acquire(timeout=0.1):
                continue
            for line in self._text.batch(self.given, self._size):
                self.next(number=self.given, line=line)
            self.commit()
            self.given += 1


class Writes:
    """The sink: puts what has changed up to a time.

    Args:
        client: of the server.
        source: may emit one more transaction for each that is written.
        span: what is measured.
        size: lines of a transaction.
    """

    def __init__(self, client: redis.Redis, source: Transactions, span: MeasuredSpan, size: int) -> None:
        self._client, self._source, self._span, self._size = client, source, span, size
        self._changed: dict[Any, Any] = {}
        self._written = 0

    def changed(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        """Takes in one change of a count; the old count goes as well, and is not needed."""
        if is_addition:
            self._changed[row["word"]] = row["count"]

    def complete(self, time_of_engine: int) -> None:
        """Writes: no more changes come for this time."""
        number = self._changed.pop(NUMBER, None)
        if self._changed:
            self._client.hset(KEY, mapping=self._changed)
            self._changed = {}
        if number is not None:
            self._source.room.release(number + 1 - self._written)
            self._written = number + 1
            self._span.note(time.monotonic(), self._written, self._written * self._size)


def measure(assignment: Assignment) -> Measurement:
    """Runs the dataflow for a while and compares what the server holds with an independent count."""
    size = assignment.cell.tuples
    text = Lines.of(load_corpus(assignment.corpus))
    span = MeasuredSpan(assignment.warm_up_s, assignment.seconds, processor_now)
    with (
        tempfile.TemporaryDirectory(prefix="pathway-", dir=assignment.work_dir) as folder,
        EmbeddedServer(Path(folder) / "data") as server,
        redis.Redis.from_url(server.url, protocol=2) as client,
    ):
        source = Transactions(text, size, span)
        writes = Writes(client, source, span, size)
        lines = pw.io.python.read(source, schema=Line, autocommit_duration_ms=None)
        words = lines.select(word=pw.apply_with_type(str.split, list[str], pw.this.line)).flatten(pw.this.word)
        counts = words.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count())
        last = lines.reduce(word=NUMBER, count=pw.reducers.max(pw.this.number))
        pw.io.subscribe(counts.concat_reindex(last), on_change=writes.changed, on_time_end=writes.complete)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        stored = read_counts(server.url, KEY)
    expected: Counter[str] = Counter()
    for number in range(source.given):
        for line in text.batch(number, size):
            expected.update(line.split())
    return span.measurement(is_exact=stored == expected)


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1])).to_json())
