"""A session of the user's own outlives many runs: each commits what its topology's module says at that moment."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches
from coordinator.spouts.memory import FixedBatchesSpout

pytestmark = [pytest.mark.spark, pytest.mark.redis]

MODULE = "job_that_is_edited"
SOURCE = """\
from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder
from state import HashState


class Weigh(BaseBatchBolt):
    output_fields = ("weight",)

    def execute(self, tup):
        self.collector.emit([WEIGHT * tup[0]])


class Store(BaseBatchBolt, ICommitter):
    total = HashState("total", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.weights = []

    def execute(self, tup):
        self.weights.append(tup["weight"])

    def finish_batch(self):
        self.total.increment("all", sum(self.weights))


def topology(topology_id, spout):
    builder = TransactionalTopologyBuilder(topology_id, "ones", spout, parallelism=2)
    builder.set_bolt("weigh", Weigh(), parallelism=2).shuffle_grouping("ones")
    builder.set_committer_bolt("store", Store()).global_grouping("weigh")
    return builder.build()
"""


class Edited:
    """A module in a folder on the path, written again and reloaded as in a notebook."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{MODULE}.py"
        self._module: ModuleType | None = None

    def edit(self, weight: int) -> ModuleType:
        """Returns the module with another weight in it."""
        self._path.write_text(f"{SOURCE}\n\nWEIGHT = {weight}\n{'#' * weight}\n")
        importlib.invalidate_caches()
        known = self._module
        self._module = importlib.import_module(MODULE) if known is None else importlib.reload(known)
        return self._module


@pytest.fixture
def edited(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield Edited(tmp_path)
    sys.modules.pop(MODULE, None)


def fixed_batches(context):
    return FixedBatchesSpout([[[1], [1], [1]]], fields=("one",))


def data_frame(context):
    return DataFrameBatches(SparkSession(context).range(1, 3, 1, 2), ["id"], ColumnRanges("id", 128))


@pytest.mark.parametrize(
    "spout", [fixed_batches, pytest.param(data_frame, marks=[pytest.mark.every_spark, pytest.mark.nightly])]
)
@pytest.mark.nightly
def test_every_run_on_one_session_commits_what_its_module_says_after_an_edit(cluster, edited, spout):
    path_before = list(sys.path)
    for number, weight in enumerate([1, 100, 1, 7]):
        module = edited.edit(weight)
        cluster.run(module.topology(f"edited{number}", spout(cluster.context)), factory_module=MODULE)
        assert cluster.hash(f"{{edited{number}}}:total") == {"all": 3 * weight}
        assert module.__file__ is not None
        assert module.__file__.endswith(f"{MODULE}.py")
        assert ".zip" not in module.__file__
    assert sys.path == path_before
