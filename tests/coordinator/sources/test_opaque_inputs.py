"""An opaque source among several inputs is cut again in every attempt, the others are not, and each row counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.context import TopologyContext
from coordinator import run
from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.verifier import Verifier
from coordinator.operating.inspection.wording import words_of_spout
from coordinator.proving.prove import prove
from coordinator.sources import Follow, Inputs, TextFiles
from coordinator.spouts.committing import ICommitterTransactionalSpout
from coordinator.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.partition_cut import positions_of
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import HashState, ListState
from state.attempt import TransactionAttempt
from state.errors import TopologyError
from state.redis_admin.topology import RedisTopology
from tests.conftest import Backend
from tests.support.cli.processes import killed_and_ended
from tests.support.runs.quarantine_world import TOPOLOGY_ID, QuarantineWorld

ROWS = {partition: [f"{partition}-{number}" for number in range(5 + partition)] for partition in range(3)}
LINES = [f"line {number}" for number in range(8)]


class Seen(BaseBatchBolt, ICommitter):
    """Counts every row."""

    counts = HashState[int]("counts")

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, attempt)
        self.seen: list[tuple[str, str]] = []

    def execute(self, tup: Any) -> None:
        self.seen.append((tup.stream_id, tup[0]))

    def finish_batch(self) -> None:
        for stream, row in self.seen:
            self.counts.increment(f"{stream} {row}")


class Ordered(Seen):
    """Keeps from which sources each transaction has read, too, in order."""

    order = ListState[str]("order")

    def finish_batch(self) -> None:
        super().finish_batch()
        self.order.append(" ".join(dict.fromkeys(stream for stream, _ in self.seen)))


class Refuses(Seen):
    """Fails on one row."""

    bad = "line 3"

    def execute(self, tup: Any) -> None:
        if tup[0] == self.bad:
            raise ValueError(f"mine: {self.bad}")
        super().execute(tup)


def away_at_first(attempt: TransactionAttempt) -> list[int]:
    """The first attempt of each transaction finds a partition away, so a replay is cut differently."""
    return [1] if attempt.attempt_id % 2 == 0 else [attempt.txid % 3]


def rows(**more: Any) -> OpaqueMemoryTransactionalSpout:
    given = {partition: [[row] for row in ROWS[partition]] for partition in ROWS}
    return OpaqueMemoryTransactionalSpout(given, ["row"], 2, **more)


def lines(folder: Path, **more: Any) -> TextFiles:
    return TextFiles(str(folder / "*.txt"), lines_per_batch=1, **more)


def counted(inputs: Inputs, committer: Seen | None = None, tasks: int = 2) -> Topology:
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "inputs", inputs, parallelism=tasks)
    seen = builder.set_committer_bolt("seen", committer or Seen())
    for name in inputs.sources:
        seen.global_grouping("inputs", name)
    return builder.build()


def once(**read: list[str]) -> dict[str, int]:
    return {f"{source} {row}": 1 for source, found in read.items() for row in found}


EVERYTHING = once(lines=LINES, rows=[row for found in ROWS.values() for row in found])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(seed=1) as made:
        yield made


def test_a_source_is_fixed_before_it_is_read_unless_it_is_opaque(folder: Path) -> None:
    exact, mixed = SpoutKind(Inputs(lines=lines(folder))), SpoutKind(Inputs(lines=lines(folder), rows=rows()))
    assert (exact.is_opaque, exact.has_partitions, mixed.is_opaque, mixed.cuts_anew) == (False, False, True, False)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_attempts_that_fail_are_cut_again_and_every_row_counts_once(
    cluster: LocalCluster, folder: Path, tasks: int
) -> None:
    inputs = Inputs(lines=lines(folder), rows=rows(unavailable=away_at_first))
    found = cluster.submit(counted(inputs, tasks=tasks))
    for txid in (2, 4, 6):
        found.hold("processing", txid)
        found.run_until_idle()
        found.fail(txid)
        found.run_until_idle()
        found.hold("processing", txid + 1)
        found.release("processing", txid)
        found.run_until_idle()
        found.release("processing", txid + 1)
    found.run_until_idle()
    assert found.is_done
    assert found.state("counts") == EVERYTHING


def test_sources_are_read_in_the_order_in_which_they_are_named(cluster: LocalCluster, folder: Path) -> None:
    found = cluster.submit(counted(Inputs(rows=rows(), lines=lines(folder)), Ordered(), tasks=1))
    found.run_until_idle()
    assert found.state("order") == ["rows lines"] * 4 + ["lines"] * 4


def test_runs_that_stop_anywhere_go_on_where_each_source_was(cluster: LocalCluster, folder: Path) -> None:
    def inputs() -> Inputs:
        return Inputs(rows=rows(unavailable=away_at_first), lines=lines(folder))

    for last_txid in (1, 2, 4):
        stopped = cluster.submit(counted(inputs()), options=RunOptions(last_txid=last_txid))
        stopped.hold("commit", last_txid)
        stopped.run_until_idle()
        stopped.release("commit", last_txid)
    found = cluster.submit(counted(inputs()))
    found.run_until_idle()
    assert found.is_done
    assert found.state("counts") == EVERYTHING
    again = cluster.submit(counted(inputs()))
    again.run_until_idle()
    assert again.statistics.committed == 0


def test_it_can_be_proved_with_partitioned_sources_beside(folder: Path) -> None:
    def topology() -> Topology:
        exact = MemoryTransactionalSpout({0: [["a"], ["b"], ["c"]], 1: [["d"]]}, ["row"], 1)
        return counted(Inputs(exact=exact, rows=rows(unavailable=away_at_first), lines=lines(folder)))

    proof = prove(topology, seeds=20)
    assert proof.holds, str(proof)


def test_an_opaque_source_may_be_added_and_left_out_and_comes_back_where_it_stopped(
    cluster: LocalCluster, folder: Path
) -> None:
    def go(inputs: Inputs, **options: Any) -> Any:
        found = cluster.submit(counted(inputs), options=RunOptions(**options))
        found.run_until_idle()
        return found

    go(Inputs(lines=lines(folder)), last_txid=2)
    go(Inputs(lines=lines(folder), rows=rows()), adopt=True, last_txid=3)
    assert go(Inputs(lines=lines(folder)), adopt="changed", last_txid=5).state("counts") == once(
        lines=LINES[:5], rows=[row for found in ROWS.values() for row in found[:2]]
    )
    found = go(Inputs(rows=rows(), lines=lines(folder)), adopt=True)
    assert found.is_done
    assert found.state("counts") == EVERYTHING


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_that_was_set_aside_is_published_with_exactly_the_rows_it_had(folder: Path, seed: int) -> None:
    def inputs() -> Inputs:
        return Inputs(lines=lines(folder), rows=rows(unavailable=away_at_first))

    world = QuarantineWorld(seed)
    first = world.run(counted(inputs(), Refuses()))
    assert first.quarantined == [4]
    assert "lines line 3" not in world.counts()
    world.run(counted(inputs()), replay="all")
    assert world.counts() == EVERYTHING
    assert world.quarantined() == []


def test_runs_that_die_at_any_call_of_the_server_go_on_exactly(folder: Path) -> None:
    def topology() -> Topology:
        return counted(Inputs(rows=rows(unavailable=away_at_first), lines=lines(folder)))

    for applied in (False, True):
        for dies_at in range(1, 40):
            world = QuarantineWorld(dies_at)
            if not world.dies(topology(), dies_at, applied=applied):
                break
            world.run(topology())
            assert world.counts() == EVERYTHING, (dies_at, applied)
        assert dies_at > 5


def test_files_of_a_quarantined_batch_are_not_moved_away(cluster: LocalCluster, folder: Path) -> None:
    def inputs() -> Inputs:
        follow = Follow(complete="rename", poll_s=0, done="move", done_path=str(folder / "done"))
        return Inputs(lines=TextFiles(str(folder / "*.txt"), lines_per_batch=20, follow=follow), rows=rows())

    options = RunOptions(max_attempts=2, on_poison="quarantine")
    first = cluster.submit(counted(inputs(), Refuses()), options=options)
    first.run_until_idle()
    first.drain()
    first.run_until_idle()
    assert (folder / "lines.txt").exists()
    assert first.statistics.quarantined == [1]
    (folder / "more.txt").write_text("one more\n")
    left_out = Inputs(lines=inputs().sources["lines"])
    second = cluster.submit(counted(left_out), options=RunOptions(adopt="changed"))
    second.run_until_idle()
    assert ((folder / "lines.txt").exists(), (folder / "done" / "more.txt").exists()) == (True, True)


def test_positions_of_a_spout_with_a_single_source_are_of_none_of_several() -> None:
    assert positions_of("rows", {0: "alone", "rows.1": "ours", "rows.more.1": "another's"}) == {1: "ours"}


def test_what_is_stored_of_them_is_sound_and_taken_over_whatever_the_names(cluster: LocalCluster, folder: Path) -> None:
    named: dict[str, Any] = {"lines": lines(folder), "rows.of-3": rows(unavailable=away_at_first)}
    for last_txid in (2, 5):
        cluster.submit(counted(Inputs(**named)), options=RunOptions(last_txid=last_txid)).run_until_idle()
        topology = RedisTopology("redis://fake", TOPOLOGY_ID, client=cluster.client)
        assert {finding.weight for finding in Verifier(topology.records()).verify().findings} == {Weight.OK}
        stored = cluster.client.hkeys(f"{{{TOPOLOGY_ID}}}:txbatch:metadata")
        assert any(field.startswith(b"partition.rows.of-3.") for field in stored)


def test_what_was_read_is_told_source_by_source(cluster: LocalCluster, folder: Path) -> None:
    class Said(OpaqueMemoryTransactionalSpout):
        def describe(self, partition: int, metadata: Any) -> list[str]:
            return [f"rows of {partition} up to {metadata[1]}"]

    inputs = Inputs(lines=lines(folder), rows=Said([[["a"], ["b"]]], ["row"], 2))
    coordinator = inputs.get_coordinator({}, TopologyContext(TOPOLOGY_ID, "inputs", 0, 1, 1, {"inputs": (1,)}))
    metadata = coordinator.initialize_transaction(1, None)
    coordinator.close()
    said = words_of_spout(inputs, {"coordinator": metadata, "partition.rows.0": [2, 2]})
    assert said["coordinator"] == [f"lines: {folder}/lines.txt: records 1 to 1, in bytes 0 to 7"]
    assert said["partition.rows.0"] == ["rows of 0 up to 2"]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_local_engine_reads_them_as_the_cluster_does(folder: Path, tmp_path: Path, parallelism: int) -> None:
    inputs = Inputs(lines=lines(folder), rows=rows(unavailable=away_at_first))
    statistics = run(counted(inputs, tasks=parallelism), engine="local", data_dir=tmp_path / "data")
    assert statistics.tuples == len(EVERYTHING)


def test_an_opaque_source_with_a_committer_is_refused() -> None:
    class Told(OpaqueMemoryTransactionalSpout, ICommitterTransactionalSpout):
        get_committer: Callable[..., Any]

        def get_committer(self, conf: Any, context: Any) -> Any:  # type: ignore[no-redef]
            raise AssertionError("it is not asked for one")

    with pytest.raises(TopologyError, match=r"'rows' is a Told, whose committer is your own; give it a topology"):
        Inputs(rows=Told([[["a"]]], ["a"], 1))
    with pytest.raises(TopologyError, match="input '3rows' begins with a digit"):
        Inputs(**{"3rows": rows()})
    with pytest.raises(TopologyError, match="input 'rows' is a Counter, which is no transactional spout"):
        Inputs(rows=Counter())  # type: ignore[arg-type]


JOB = """
from collections import Counter

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import OpaqueMemoryTransactionalSpout, TransactionalTopologyBuilder
from coordinator.sources import Inputs, TextFiles
from state import HashState


def away(attempt):
    return [attempt.attempt_id % 4]  # another partition in every attempt, or none


class Count(BaseBatchBolt, ICommitter):
    counts = HashState[int]("counts")

    def prepare(self, conf, context, collector, attempt):
        self.seen = []

    def execute(self, tup):
        self.seen.append(f"{tup.stream_id} {tup[0]}")

    def finish_batch(self):
        self.counts.increment_many(Counter(self.seen))


def topology(folder):
    rows = {partition: [[number] for number in range(partition, 30_000, 3)] for partition in range(3)}
    inputs = Inputs(
        lines=TextFiles(f"{folder}/in/*.txt", lines_per_batch=300),
        rows=OpaqueMemoryTransactionalSpout(rows, ["row"], 100, unavailable=away),
    )
    builder = TransactionalTopologyBuilder("mixed", "inputs", inputs)
    builder.set_committer_bolt("count", Count()).global_grouping("inputs", "lines").global_grouping("inputs", "rows")
    return builder.build()
"""


@pytest.mark.redis
@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_with_an_opaque_source_that_is_killed_is_continued_exactly(
    redis_backend: Backend, tmp_path: Path
) -> None:
    client: Any = redis_backend.client()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("".join(f"{number}\n" for number in range(20_000)))
    (tmp_path / "jobs.py").write_text(JOB)
    given = ("-p", f"folder={tmp_path}", "--redis", str(redis_backend.url))
    killed_and_ended(tmp_path, client, "mixed", "jobs.py:topology", *given, after=5)
    wanted = {f"lines {number}": 1 for number in range(20_000)} | {f"rows {number}": 1 for number in range(30_000)}
    assert {name.decode(): int(count) for name, count in client.hgetall("{mixed}:counts").items()} == wanted
