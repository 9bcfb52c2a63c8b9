"""Word counts that each make one mistake, but for `CountWords`, `StoreCounts` and `SplitLines`, which make none."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import FixedBatchesSpout, SpoutCoordinator, SpoutEmitter, Topology, TransactionalTopologyBuilder
from state import HashState

LINES = [
    [["to be"], ["or not"], ["a b c"]],
    [["to be"], ["be to"]],
    [["d e f"], ["a to be"]],
    [["or or not"], ["x y z"]],
]
SEEN_WORDS: set[str] = set()
EFFECTS = Path("effects.txt")


class CountWords(BaseBatchBolt):
    """Makes no mistake."""

    output_fields = ("word", "count")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.words = Counter[str]()

    def execute(self, tup):
        self.words.update(tup["line"].split())

    def finish_batch(self):
        self.collector.emit_all(self.words.items())


class StoreCounts(BaseBatchBolt, ICommitter):
    """Makes no mistake."""

    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.total = Counter[str]()

    def execute(self, tup):
        self.total[tup["word"]] += tup["count"]

    def finish_batch(self):
        self.counts.increment_many(self.total)


class DrawsNumbers(CountWords):
    """Samples its input."""

    def finish_batch(self):
        self.collector.emit_all(item for item in self.words.items() if random.random() < 0.5)  # draws


class ReadsClock(CountWords):
    """Stamps what it emits."""

    def finish_batch(self):
        self.collector.emit_all((word, time.time_ns() % 1_000) for word in self.words)  # reads the clock


class ReadsDate(CountWords):
    """Stamps what it emits with a time that is the same for a day."""

    def finish_batch(self):
        today = time.time_ns() // 10**9 // 86_400  # another one tomorrow
        self.collector.emit_all((f"{word} {today}", count) for word, count in self.words.items())


class ReadsSeconds(CountWords):
    """Stamps what it emits with a time that is the same for a second."""

    def finish_batch(self):
        self.collector.emit_all((word, int(time.time())) for word in self.words)  # another one in a second


DAYS_LATER: list[int] = []


class ReadsSlowClock(CountWords):
    """Stamps what it emits with a time that a test moves."""

    def finish_batch(self):
        started_s, day = time.perf_counter(), int(time.time() * 0) + len(DAYS_LATER)  # two clocks
        self.collector.emit_all((f"{word} {day}", count) for word, count in self.words.items())
        assert started_s > 0


class CutsByChance(FixedBatchesSpout):
    """Cuts otherwise each time, which is no mistake: what a coordinator cuts is stored."""

    def get_coordinator(self, conf, context):
        return ChanceCoordinator()

    def get_emitter(self, conf, context):
        return ChanceEmitter()


class ChanceCoordinator(SpoutCoordinator):
    def is_ready(self):
        return self.run_so_far.last_txid < 2

    def is_exhausted(self):
        return not self.is_ready()

    def initialize_transaction(self, txid, previous):
        return random.getrandbits(64)


class ChanceEmitter(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        collector.emit([f"{metadata}"])


class KeepsInClass(CountWords):
    """Emits each word once."""

    known: set[str] = set()  # outlasts the batch

    def finish_batch(self):
        self.collector.emit_all((word, 1) for word in self.words if word not in self.known)
        self.known.update(self.words)


class KeepsInModule(CountWords):
    """The same, in a module."""

    def finish_batch(self):
        self.collector.emit_all((word, 1) for word in self.words if word not in SEEN_WORDS)
        SEEN_WORDS.update(self.words)


class ChangesEmitted(CountWords):
    """Uses one list for all that it emits."""

    def finish_batch(self):
        row: list[Any] = ["", 0]
        for row[0], row[1] in self.words.items():
            self.collector.emit(row)  # and changes it


class SplitLines(BaseBatchBolt):
    """Makes no mistake, and leaves counting to the committer."""

    output_fields = ("word", "count")

    def execute(self, tup):
        self.collector.emit_all((word, 1) for word in tup["line"].split())


class KeepsLast(StoreCounts):
    """Takes the last tuple to arrive for the last word."""

    last = HashState("last", value=str)

    def execute(self, tup):
        super().execute(tup)
        self.word = tup["word"]

    def finish_batch(self):
        super().finish_batch()
        self.last.put("word", self.word)


class CountsTasks(CountWords):
    """Emits one tuple of its own in each task."""

    def finish_batch(self):
        super().finish_batch()
        self.collector.emit(["batches", 1])


class ReadsForeign(StoreCounts):
    """Adds the size of a sum that another task keeps."""

    def finish_batch(self):
        everything = self.counts.get("everything") or 0  # written by whichever task comes last
        self.counts.put_many({"everything": everything + self.total.total(), **self.total})


class HasEffects(CountWords):
    """Writes to a file."""

    def finish_batch(self):
        with EFFECTS.open("a") as file:  # happens again and again
            file.write("a batch\n")
        super().finish_batch()


class CountsAttempts(StoreCounts):
    """Says which attempt it was, which is another one after every failure."""

    attempts = HashState("attempts", value=str)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.attempt_id = str(attempt.attempt_id)

    def finish_batch(self):
        super().finish_batch()
        self.attempts.put("last", self.attempt_id)


def words(
    bolt: BaseBatchBolt | None = None, committer: Any = None, *, tasks: int = 2, in_one_task: bool = False
) -> Topology:
    """A word count with another bolt, another committer, or one committing task."""
    spout = FixedBatchesSpout(LINES, ["line"])
    builder = TransactionalTopologyBuilder("words", "lines", spout, parallelism=tasks)
    builder.set_bolt("count", bolt or CountWords(), parallelism=tasks).shuffle_grouping("lines")
    store = builder.set_committer_bolt("store", committer or StoreCounts(), parallelism=1 if in_one_task else tasks)
    if in_one_task:
        store.global_grouping("count")
    else:
        store.fields_grouping("count", ["word"])
    return builder.build()
