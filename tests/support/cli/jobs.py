"""Jobs for the command line's tests, written into a folder as a user would write them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

JOB = """
from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TextFiles, TransactionalTopologyBuilder
from state import HashState


class Store(BaseBatchBolt, ICommitter):
    lines = HashState("lines", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.count = 0

    def execute(self, tup):
        self.count += 1

    def finish_batch(self):
        self.lines.increment("all", self.count)


def _stored_by(store, input="input.txt", lines_per_batch=10, topology_id="lines", each=None, tasks=1):
    builder = TransactionalTopologyBuilder(topology_id, "lines", TextFiles(input, lines_per_batch))
    if each is not None:
        builder.set_bolt("each", each, tasks).shuffle_grouping("lines")
    builder.set_committer_bolt("store", store).global_grouping("lines" if each is None else "each")
    return builder.build()


def topology(input="input.txt", lines_per_batch: int = 10, topology_id="lines"):
    return _stored_by(Store(), input, lines_per_batch, topology_id)
"""

PLAIN_JOB = """
from coordinated_bolt import BaseBasicBolt, BaseSpout
from coordinator import TopologyBuilder


class Lines(BaseSpout):
    output_fields = ("line",)

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.waiting = [f"line {number}" for number in range(20)]

    def next_tuple(self):
        if self.waiting:
            line = self.waiting.pop()
            self.collector.emit([line], line)


class Sink(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def topology(topology_id="lines"):
    builder = TopologyBuilder(topology_id)
    builder.set_spout("lines", Lines())
    builder.set_bolt("sink", Sink(), 2).shuffle_grouping("lines")
    return builder.build()
"""


@dataclass(frozen=True)
class JobFolder:
    """A user's folder."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        """Writes a file."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def write_job(self, name: str = "job_of_lines.py", more: str = "") -> Path:
        """Writes a module with a sound topology, `more` factories, and its input."""
        self.write("input.txt", "one\ntwo\nthree\n")
        return self.write(name, JOB + more)
