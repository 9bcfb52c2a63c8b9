"""A transaction runs again from what is kept of it, and nothing is committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.sources.files.line_files import TextFiles
from coordinator.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from coordinator.trying.dry_rerun import rerun_dry, why_not
from examples.word_count import CountWords, StoreCounts
from state.errors import TopologyError
from state.records.transaction_history import KnownTransaction
from state.records.transaction_story import TransactionStory
from state.redis_admin.topology import RedisTopology
from tests.support.stores.builders import dump

LINES = [f"a b{number} c{number % 3}" for number in range(12)]


def counting(spout: Any) -> Topology:
    builder = TransactionalTopologyBuilder("words", "lines", spout)
    builder.set_bolt("count", CountWords()).shuffle_grouping("lines")
    builder.set_committer_bolt("store", StoreCounts()).fields_grouping("count", ["word"])
    return builder.build()


def files(folder: Path) -> Topology:
    (folder / "lines.txt").write_text("\n".join(LINES) + "\n")
    return counting(TextFiles(str(folder / "lines.txt"), 3))


def memory(_: Path) -> Topology:
    return counting(MemoryTransactionalSpout({0: [[line] for line in LINES]}, ["line"], 3))


@pytest.mark.parametrize("made", [files, memory], ids=["files", "memory"])
@pytest.mark.parametrize("txid", [1, 2, 4])
def test_it_emits_and_writes_what_it_did_and_changes_nothing(made: Any, txid: int, tmp_path: Path) -> None:
    topology = made(tmp_path)
    with LocalCluster() as cluster:
        run = cluster.submit(topology, options=RunOptions(max_spout_pending=3))
        run.run_until_idle()
        before = dump(cluster.client)
        stored = RedisTopology("redis://memory", "words", client=cluster.client)
        known, below, found = stored.transaction(txid), stored.transaction(txid - 1), stored.look()
        assert known is not None
        assert below is not None
        assert found is not None
        (again,) = rerun_dry(topology, known, below, found)
        emitted = {each.component_id: list(each.emitted) for each in again.components}
        assert emitted["lines"] == run.emitted("lines", txid)
        assert emitted["count"] == run.emitted("count", txid)
        assert again.writes is not None
        assert {change.field: change.value for each in again.writes for change in each.changes}["a"] == 3
        assert dump(cluster.client) == before


KNOWN = KnownTransaction(5, 9, 2, metadata={"coordinator": [1]})


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (KNOWN, ""),
        (replace(KNOWN, txid=6, committed_txid=5), ""),  # cut, and in flight
        (replace(KNOWN, txid=10, metadata={}), "txid 10 is not cut yet: the last committed one is 9"),
        (replace(KNOWN, metadata={}), "its metadata is no longer kept: the history begins at 2"),
        (replace(KNOWN, metadata={}, left_out={"coordinator": 5_000}), "5,000 bytes, was too long to be kept"),
        (replace(KNOWN, story=TransactionStory(republishes=3)), "republished what had been set aside"),
        (replace(KNOWN, story=TransactionStory(set_aside=True)), "was committed empty"),
    ],
    ids=["kept", "in flight", "not cut", "forgotten", "too long", "a replay", "set aside"],
)
def test_what_cannot_be_run_again_is_told(known: KnownTransaction, why: str, tmp_path: Path) -> None:
    said = why_not(memory(tmp_path), known)
    assert said.endswith(why) if not why else why in said


def test_an_opaque_spout_cannot_repeat(tmp_path: Path) -> None:
    topology = counting(OpaqueMemoryTransactionalSpout({0: [["a"]]}, ["line"], 3))
    with pytest.raises(TopologyError, match=r"txid 5 of topology 'words' cannot be run again: its spout, .* is opaque"):
        rerun_dry(topology, KNOWN, KNOWN, None)  # type: ignore[arg-type] # it does not get so far
