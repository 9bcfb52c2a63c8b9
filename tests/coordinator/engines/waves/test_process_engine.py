"""Runs without Spark: the same state, the same checks, and what only Spark can do is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder, run, start
from coordinator.engines.waves.process_engine import KeptStages
from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.transactional.options import RunOptions
from examples import word_count
from state.errors import FailedException, TopologyError
from state.kinds.hash_state import HashState
from state.redis_server.embedded import EmbeddedServer
from tests.support.case_names import shown
from tests.support.scenarios.on_servers import assert_folds_are_left
from tests.support.spark.mishaps import InStore, fail
from tests.support.spark.partitioned import Ranges
from tests.support.topologies.example_topologies import EXAMPLES

ROOT = Path(__file__).parents[4]
NOWHERE = "redis://localhost:1"


class Sum(BaseBatchBolt, ICommitter):
    """Sums numbers, and fails on 13 while a file is there."""

    total = HashState("total", value=int)

    def __init__(self, fault):
        self.fault = fault

    def prepare(self, conf, context, collector, attempt):
        self.numbers = []

    def execute(self, tup):
        self.numbers.append(tup["number"])

    def finish_batch(self):
        if 13 in self.numbers and self.fault.exists():
            raise FailedException("thirteen")
        self.total.increment("all", sum(self.numbers))


def sums(fault, batches=((1, 2), (13,), (20,)), spout=None):
    given = spout or FixedBatchesSpout([[[number] for number in batch] for batch in batches], ["number"])
    builder = TransactionalTopologyBuilder("sums", "numbers", given)
    builder.set_committer_bolt("sum", Sum(fault), parallelism=2).fields_grouping("numbers", ["number"])
    return builder.build()


def ran(topology, backend, options=None, **more: Any):
    return run(topology, redis_url=backend.url, engine="local", options=options, **more)


@pytest.mark.redis
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.nightly) for first in range(20, 100, 20))]
)
def test_random_topologies_leave_the_state_of_the_fold(redis_backend, tmp_path, first):
    def run_locally(topology, **options):
        return ran(topology, redis_backend, RunOptions(**options))

    assert_folds_are_left(run_locally, redis_backend.client(), tmp_path, range(first, first + 20))


@pytest.mark.redis
def test_poison_is_quarantined_and_republished(redis_backend, tmp_path):
    fault = tmp_path / "fault"
    fault.touch()
    statistics = ran(sums(fault), redis_backend, RunOptions(on_poison="quarantine", max_attempts=2))
    assert statistics.quarantined == [2]
    assert redis_backend.client().hgetall("{sums}:total") == {b"all": b"23"}

    fault.unlink()
    assert ran(sums(fault), redis_backend, republish="all").republished == {2: 4}
    assert redis_backend.client().hgetall("{sums}:total") == {b"all": b"36"}


@pytest.mark.redis
def test_a_run_that_is_drained_is_continued(redis_backend, tmp_path):
    topology = sums(tmp_path / "none", [[number] for number in range(60)])
    coordinators: list[Any] = []
    drained = ran(
        topology,
        redis_backend,
        RunOptions(max_spout_pending=4),
        on_start=coordinators.append,
        on_progress=lambda _: coordinators[0].drain(),
    )
    assert drained.is_interrupted
    assert 0 < drained.committed < 60
    with start(topology, redis_url=redis_backend.url, engine="local") as background:
        assert background.result(60).last_txid == 60
    assert redis_backend.client().hgetall("{sums}:total") == {b"all": b"%d" % sum(range(60))}


@pytest.mark.redis
def test_a_commit_phase_after_shares_reads_the_ranges_that_the_processing_phase_cut(
    redis_backend, tmp_path, monkeypatch
):
    """Their frames are not kept, so it begins at the input again; on Spark with one slot as well."""
    monkeypatch.setattr(KeptStages, "has_task_partitions", True)
    builder = TransactionalTopologyBuilder("ranges", "ranges", Ranges(tmp_path / "cuts"), parallelism=2)
    store = InStore(fail, 4, tmp_path / "failed")
    builder.set_committer_bolt("store", store, parallelism=2).fields_grouping("ranges", ["number"])
    failures: list[str] = []
    statistics = ran(builder.build(), redis_backend, observers=[lambda seen: failures.append(repr(seen))])
    assert statistics.failed_attempts
    assert "did not read what the processing phase sent" not in "".join(failures)


def test_a_machine_without_java_and_without_a_path_counts_words(tmp_path):
    (tmp_path / "input.txt").write_text("to be or\nnot to be\n", encoding="utf-8")
    target, given = f"{ROOT}/examples/word_count.py:topology", f"input={tmp_path}/input.txt"
    command = [sys.executable, "-m", "coordinator.operating.cli", "run", target, "-p", given, "--engine", "local"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": ""}
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "data")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, "in this process, without Spark: " in done.stderr) == (0, True), done.stderr
    topology = word_count.topology(f"{tmp_path}/input.txt")
    with EmbeddedServer(tmp_path / "data") as server:
        assert run(topology, redis_url=server.url, engine="local").committed == 0  # all is committed


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"master": "spark://here:7077"}, "master"),
        ({"conf": {"spark.driver.memory": "1g"}}, "conf"),
        ({"spark": object()}, "spark"),
        ({"options": RunOptions(slots=2)}, "slots"),
        ({"options": RunOptions(executors_timeout_s=5)}, "executors_timeout"),
    ],
    ids=shown,
)
def test_what_is_for_spark_is_refused(tmp_path, given, named):
    with pytest.raises(TopologyError, match=f"engine local uses no Spark, but {named} was given") as refused:
        run(sums(tmp_path), redis_url=NOWHERE, engine="local", **given)
    assert len(str(refused.value)) < 120


def test_a_spout_that_spark_reads_is_refused(tmp_path):
    spout = DataFrameBatches(lambda spark: spark, ["number"], ColumnRanges("number", 5))
    with pytest.raises(TopologyError, match="engine local uses no Spark, but spout 'numbers' is read by Spark"):
        run(sums(tmp_path, spout=spout), redis_url=NOWHERE, engine="local")


def test_an_engine_that_does_not_exist_and_a_plain_topology_are_refused(tmp_path):
    with pytest.raises(TopologyError, match="engine is 'lokal'; give one of spark, local"):
        run(sums(tmp_path), redis_url=NOWHERE, engine="lokal")
    with pytest.raises(TopologyError, match="engine 'local' was given, but a plain topology runs on Spark only"):
        start(cast(Any, EXAMPLES["plain_word_count"]()), engine="local")
