"""What users hold in a notebook says what it is: in a line or two, and as a small table, whatever its values are."""

from __future__ import annotations

import pickle
import re
from xml.etree import ElementTree

import pytest

from coordinated_bolt import BaseBatchBolt
from coordinator import FixedBatchesSpout, LocalCluster, PlainStatistics, RunStatistics, TransactionalTopologyBuilder
from coordinator.topology.planning.plan import make_plan
from coordinator.trying.bolt_trial import run_bolt
from coordinator.watching.statistics.run_report import tables_of
from examples.word_count import CountWords, StoreCounts
from state.redis_admin.snapshots import Snapshot
from tests.support.approved import approved
from tests.support.topologies.example_topologies import EXAMPLES

HOSTILE = "<script>alert(1)</script>"


class Refuse(BaseBatchBolt):
    output_fields = ("line",)

    def execute(self, tup):
        self.collector.emit(list(tup))
        self.collector.dead_letter(tup, HOSTILE)


def local_run(cluster):
    lines = FixedBatchesSpout([[[HOSTILE]], [[HOSTILE]]], fields=["line"])
    builder = TransactionalTopologyBuilder("word_count", "lines", lines)
    builder.set_bolt("count", CountWords()).shuffle_grouping("lines")
    builder.set_committer_bolt("store", StoreCounts()).fields_grouping("count", ["word"])
    return cluster.submit(builder.build())


def statistics():
    run = RunStatistics(
        last_txid=1234, committed=1000, tuples=5000, attempts=1010, failed_attempts=10, waves=20, commit_groups=15
    )
    run.first_wave_s, run.last_result_s = 98_765.0, 98_775.0
    run.counters[HOSTILE] = 3
    run.component(HOSTILE).work.add_stretch("lines/default", 5000, 2_000_000_000)
    return run


def plain_statistics():
    run = PlainStatistics(emitted=10, acked=9, failed=1, waves=2, first_wave_s=98_765.0, last_result_s=98_766.0)
    run.component(HOSTILE).work.add_stretch("lines/default", 10, 1_000)
    return run


SHOWN = {
    "topology": EXAMPLES["word_count"],
    "plain_topology": EXAMPLES["plain_word_count"],
    "statistics": statistics,
    "plain_statistics": plain_statistics,
    "trial": lambda: run_bolt(Refuse(), [[HOSTILE]], [[HOSTILE]], fields=["line"]),
    "states": lambda: run_bolt(StoreCounts(), [[HOSTILE, 2]], fields=["word", "count"]),
    "snapshot": lambda: Snapshot(7, {"counts": {HOSTILE: 1}, "total": 1}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_repr_is_short_and_has_no_addresses_and_html_has_no_markup_of_the_users(name):
    shown = SHOWN[name]()
    assert len(repr(shown)) < 400
    assert not re.search(r"0x[0-9a-f]{6}|\n", repr(shown))
    html = shown._repr_html_()
    assert "<script" not in html
    ElementTree.fromstring(html)


@pytest.mark.parametrize("name", ["statistics", "plain_statistics"])
def test_statistics_show_times_since_the_start_and_none_of_a_clock(name):
    run = SHOWN[name]()
    assert not re.search(r"98[,_]?7", repr(run) + run._repr_html_() + str(run.to_dict("t")))


LARGE = Snapshot(7, {"counts": dict.fromkeys(range(100_000), 1)})


def test_a_repr_says_in_a_line_what_it_is() -> None:
    topology = EXAMPLES["word_count"]()
    made = make_plan(topology, lambda _, spec: pickle.dumps(spec))
    found = (statistics(), plain_statistics(), topology, topology.components[1], made, LARGE)
    approved("\n".join(map(repr, found)), "reprs")


def test_a_table_has_the_figures_a_topology_is_drawn_and_a_large_snapshot_stays_small():
    cells = [cell.text for cell in ElementTree.fromstring(statistics()._repr_html_()).iter("td")]
    assert cells[:5] == ["1,000", "1,234", "5,000", "10.0", "100.0"]
    assert cells[-7:] == ["0", "5,000", "0", "0", "2.000", "0.000", "0"]
    shown = EXAMPLES["word_count"]()._repr_html_()
    assert "word_count: transactional topology, 3 components, 3 tasks\n  lines" in shown
    assert "{word_count}:counts" in shown
    assert "100,000" in LARGE._repr_html_()
    assert len(LARGE._repr_html_()) < 2_000


def test_a_local_run_says_how_it_stands_and_lists_its_attempts():
    with LocalCluster(seed=1) as cluster:
        run = local_run(cluster)
        assert repr(run).startswith("TransactionalRun('word_count', under way, RunStatistics(0 committed")
        run.hold("processing", 2)
        run.run_until_idle()
        run.fail(2, HOSTILE)
        run.release("processing")
        run.run_until_idle()
        assert repr(run).startswith("TransactionalRun('word_count', done, RunStatistics(2 committed up to txid 2, ")
        html = run._repr_html_()
    assert "<script" not in html
    cells = [cell.text for cell in ElementTree.fromstring(html).iter("td")]
    assert "by hand[0]: <script>alert(1)</script>" in cells
    assert cells.count("committed") == 2


def test_a_run_without_components_has_one_table():
    html = tables_of(HOSTILE, [("tuples", 1)], {})
    assert html.count("<table>") == 1
    assert "<script" not in html
