"""Dead letters in one process: under many schedules, in single trials of a bolt, and where they cannot be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinated_bolt import BaseBasicBolt, BaseBatchBolt
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.sources.files.line_files import JsonLines
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from coordinator.trying.bolt_trial import run_bolt
from state.errors import StateRefusedError, UserCodeError
from state.troubles import Trouble
from tests.support.topologies.batch_components import Requests
from tests.support.topologies.refusing import AddReading, Check, expected_letters, refused_by, refusing

BATCHES = [[1, 2, 3, 5], [], [7, 11, 13, 15], [4, 8, 14, 14], [22, 33, 35, 1], [9], [16, 17]]


@pytest.mark.parametrize("seed", range(12))
def test_letters_do_not_depend_on_the_schedule(seed: int) -> None:
    below = bool(seed % 2)
    options = RunOptions(max_spout_pending=1 + seed % 5, commit_group_max=1 + seed % 3)
    adds = AddReading() if seed % 3 == 0 else None
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(refusing(BATCHES, tasks=1 + seed % 3, adds=adds, below=below), options=options)
        run.run_until_idle()
        expected, total = expected_letters(BATCHES, below=below)
        assert refused_by(run.dead_letters()) == expected
        assert run.state("sums") == {"sum": total}


def test_letters_of_an_attempt_that_failed_are_not_stored(cluster: LocalCluster) -> None:
    run = cluster.submit(refusing(BATCHES), options=RunOptions(max_spout_pending=4))
    run.hold("commit", 3)
    run.run_until_idle()
    assert {letter.txid for letter in run.dead_letters()} == {1}
    run.fail(3)
    run.run_until_idle()
    run.release("commit", 3)
    run.run_until_idle()
    assert refused_by(run.dead_letters()) == expected_letters(BATCHES)[0]


@pytest.mark.parametrize("on_poison", ["halt", "quarantine"])
def test_a_run_continues_where_the_limit_on_all_letters_ended_the_last_one(
    cluster: LocalCluster, on_poison: str
) -> None:
    """It is no fault of the batch that would exceed it, which is not quarantined."""
    given = [[3, 1], [3, 6], [9, 2], [1]]  # 1, 2 and 1 letters
    options = RunOptions(max_spout_pending=4, on_poison=on_poison)
    first = cluster.submit(refusing(given, total=3), options=options)
    with pytest.raises(StateRefusedError, match="holds 3 dead letters of at most 3, and 1 more do not fit") as ended:
        first.run_until_idle()
    assert (ended.value.trouble, first.statistics.quarantined) == (Trouble.DEAD_LETTER_LIMIT, [])
    assert first.state("sums") == {"sum": 1}
    letters = first._letters
    assert letters.drop(until_txid=1, generation=letters.page().generation) == 1
    second = cluster.submit(refusing(given, total=3))
    second.run_until_idle()
    assert second.is_done
    assert refused_by(second.dead_letters()) == [(2, "check", 3), (2, "check", 6), (3, "check", 9)]
    assert second.state("sums") == {"sum": 4}


def test_a_trial_of_one_bolt_shows_what_it_refused() -> None:
    trial = run_bolt(Check(), [[1], [3]], [[6]], fields=["number"])
    assert trial.emitted() == [[1]]
    found = [(one.txid, one["number"], one.reason) for one in trial.dead_letters]
    assert found == [(1, 3, "divisible by 3"), (2, 6, "divisible by 3")]


def test_bad_records_of_a_source_end_in_the_same_place_without_a_bolt(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"f": 1}\n{"f": "x"}\n\xff\n{"f": 4}\n', encoding="latin-1")
    source = JsonLines(str(tmp_path / "a.jsonl"), {"f": int}, 2, on_bad_record="dead_letter")
    builder = TransactionalTopologyBuilder("records", "lines", source)
    builder.set_bolt("pass", _Pass()).shuffle_grouping("lines")
    run = cluster.submit(builder.build())
    run.run_until_idle()
    assert sorted(values for _, values in run.emitted("pass")) == [[1], [4]]
    found = [(one.letter_id, one.component_id, one["place"][:6], one["record"]) for one in run.dead_letters()]
    assert found == [("1.0", "lines", "line 2", b'{"f": "x"}'), ("2.0", "lines", "line 3", b"\xff")]
    assert run.statistics.counters == {"bad_records": 2}


class _Pass(BaseBasicBolt):
    output_fields = ("f",)

    def execute(self, tup, collector):
        collector.emit([tup["f"]])


class PlainCheck(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.dead_letter(tup, "no")


class BatchCheck(BaseBatchBolt):
    def execute(self, tup):
        self.collector.dead_letter(tup, "no")


class _Forward(BaseBasicBolt):
    output_fields = ("request",)

    def execute(self, tup, collector):
        collector.emit([tup["request"]])


@pytest.mark.parametrize("is_sub_topology", [False, True], ids=["plain topology", "sub-topology"])
def test_a_bolt_outside_transactions_is_told_what_to_do_instead(cluster: LocalCluster, is_sub_topology: bool) -> None:
    builder = TopologyBuilder("plain")
    builder.set_spout("requests", Requests({"a": 1}))
    if is_sub_topology:
        batches = BatchSubtopologyBuilder("master", _Forward())
        batches.master_declarer.shuffle_grouping("requests")
        batches.set_bolt("check", BatchCheck()).shuffle_grouping("master")
        batches.extend_topology(builder)
    else:
        builder.set_bolt("check", PlainCheck()).shuffle_grouping("requests")
    with pytest.raises(UserCodeError) as caught:
        cluster.submit(builder.build()).run_until_idle()
    assert "component 'check' called dead_letter outside transactions" in str(caught.value)
    assert "build the topology with a TransactionalTopologyBuilder" in str(caught.value)
