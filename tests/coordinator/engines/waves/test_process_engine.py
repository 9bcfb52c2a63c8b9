"""Runs without Spark: the same state, the same checks, and what only Spark can do is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator import TransactionalTopologyBuilder, run, start
from coordinator.engines.waves.process_engine import InProcessStages
from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches
from coordinator.transactional.options import RunOptions
from examples import word_count
from state.errors import TopologyError
from state.redis_server.embedded import EmbeddedServer
from tests.support.case_names import shown
from tests.support.scenarios.on_servers import assert_folds_are_left
from tests.support.spark.bolts import numbers_topology
from tests.support.spark.mishaps import InStore, fail
from tests.support.spark.partitioned import Ranges
from tests.support.topologies.components import Commit, collecting
from tests.support.topologies.example_topologies import EXAMPLES

ROOT = Path(__file__).parents[4]
NOWHERE = "redis://localhost:1"


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
def test_a_commit_phase_after_shares_reads_the_ranges_that_the_processing_phase_cut(
    redis_backend, tmp_path, monkeypatch
):
    """Their frames are not kept, so it begins at the input again; on Spark with one slot as well."""
    monkeypatch.setattr(InProcessStages, "has_task_partitions", True)
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
    ("given", "message"),
    [
        ({"master": "spark://here:7077"}, "engine local uses no Spark, but master was given"),
        ({"conf": {"spark.driver.memory": "1g"}}, "engine local uses no Spark, but conf was given"),
        ({"spark": object()}, "engine local uses no Spark, but spark was given"),
        ({"options": RunOptions(slots=2)}, "engine local uses no Spark, but slots was given"),
        ({"options": RunOptions(executors_timeout_s=5)}, "engine local uses no Spark, but executors_timeout was given"),
        ({"engine": "lokal"}, "engine is 'lokal'; give one of spark, local"),
    ],
    ids=shown,
)
def test_what_is_for_spark_is_refused(given, message):
    with pytest.raises(TopologyError, match=message) as refused:
        run(numbers_topology(1), **{"redis_url": NOWHERE, "engine": "local", **given})
    assert len(str(refused.value)) < 120


def test_a_spout_that_spark_reads_and_a_plain_topology_are_refused():
    spout = DataFrameBatches(lambda spark: spark, ["number"], ColumnRanges("number", 5))
    with pytest.raises(TopologyError, match="engine local uses no Spark, but spout 'numbers' is read by Spark"):
        run(collecting("rows", spout, Commit(), source="numbers"), redis_url=NOWHERE, engine="local")
    with pytest.raises(TopologyError, match="engine 'local' was given, but a plain topology runs on Spark only"):
        start(cast(Any, EXAMPLES["plain_word_count"]()), engine="local")
