"""On Spark, too: faults at a spout's edges are named, and another input is only adopted as the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.sources.files.line_files import TextFiles
from coordinator.spouts.memory import MemoryTransactionalSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import FailedException, SourceError, StateRefusedError, UserCodeError

pytestmark = [pytest.mark.spark, pytest.mark.redis]
ROWS = [["a"], ["b"]]


class Store(BaseBatchBolt, ICommitter):
    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.lines: list[str] = []

    def execute(self, tup):
        self.lines.append(tup["line"])

    def finish_batch(self):
        for line in self.lines:
            self.counts.increment(line, 1)


class FaultyEdges(MemoryTransactionalSpout):
    """Answers one of its edges as the test wants."""

    def __init__(self, method, answer):
        super().__init__([ROWS], ["line"], 1)
        self.method, self.answer = method, answer

    def get_coordinator(self, conf, context):
        made = super().get_coordinator(conf, context)
        if self.method == "number_of_partitions":
            made.number_of_partitions = lambda: self.answer  # type: ignore[method-assign] # what the test wants
        return self._answer("get_coordinator", made)

    def get_emitter(self, conf, context):
        return self._answer("get_emitter", super().get_emitter(conf, context))

    def fingerprint(self):
        return self._answer("fingerprint", super().fingerprint())

    def _answer(self, method, otherwise):
        if method != self.method:
            return otherwise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def topology(spout, topology_id="edges"):
    builder = TransactionalTopologyBuilder(topology_id, "lines", spout)
    builder.set_committer_bolt("store", Store()).global_grouping("lines")
    return builder.build()


EDGES = [
    ("get_coordinator", None, "get_coordinator returned None; return"),
    ("get_emitter", None, "get_emitter returned None; return an instance of a subclass of PartitionedEmitter"),
    ("get_emitter", ZeroDivisionError("mine"), "ZeroDivisionError: mine"),
    ("number_of_partitions", "2", "number_of_partitions returned '2'; return a whole number from 0"),
    ("fingerprint", None, "fingerprint returned None; return"),
]


@pytest.mark.parametrize(("method", "answer", "story"), EDGES, ids=lambda part: str(part).partition(" ")[0])
def test_a_fault_at_an_edge_is_the_users_and_named(cluster, method, answer, story):
    with pytest.raises(UserCodeError) as caught:
        cluster.run(topology(FaultyEdges(method, answer)))
    assert "component 'lines'" in str(caught.value)
    assert story in str(caught.value)


def test_a_start_that_fails_again_and_again_names_the_last_reason(cluster):
    spout = FaultyEdges("fingerprint", FailedException("the broker is away"))
    with pytest.raises(SourceError, match=r"fingerprint of component 'lines' failed 2 times.*the broker is away"):
        cluster.run(topology(spout), max_attempts=2)


def test_a_file_before_the_position_is_not_skipped_in_silence(cluster, tmp_path: Path):
    for name, lines in (("b", 30), ("c", 20)):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n" * lines, encoding="utf-8")
    pattern = str(tmp_path / "*.txt")
    cluster.run(topology(TextFiles(pattern, 10)))
    (tmp_path / "a.txt").write_text("a\n" * 10, encoding="utf-8")
    with pytest.raises(StateRefusedError, match=r"a\.txt' \(20 bytes\) lies before the position.*--adopt=skip"):
        cluster.run(topology(TextFiles(pattern, 10)), adopt=True)
    (tmp_path / "a.txt").rename(tmp_path / "d.txt")
    assert cluster.run(topology(TextFiles(pattern, 10)), adopt=True).committed == 1
    assert cluster.hash("{edges}:counts") == {"a": 10, "b": 30, "c": 20}
