"""Dead letters are replayed as new transactions through the bolts that refused them, and are gone in the same step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.sources.files.line_files import JsonLines
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start import republish_choice
from state import HashState, ListState, StateRefusedError, TopologyError, UserCodeError
from tests.support.runs.collecting import Collecting
from tests.support.runs.durable_runs import HeardSpout, Hearing
from tests.support.topologies.refusing import refused_by, refusing

BATCHES = [[1, 2], [3, 4], [5, 7, 9], [8], [13]]
WIDE = RunOptions(max_spout_pending=4)


class Sort(BaseBatchBolt):
    """Passes numbers on, odd and even on streams of their own; refuses those in `refused`."""

    refused: ClassVar[set[int]] = set()

    def declare_output_fields(self, declarer):
        declarer.declare_stream("odd", ("number", "place"))
        declarer.declare_stream("even", ("number", "place"))

    def execute(self, tup):
        number = tup["number"]
        if number in self.refused:
            self.collector.dead_letter(tup, "not today")
        else:
            self.collector.emit([number, f"task {self.context.task_index}"], "odd" if number % 2 else "even")


class Refusing(Collecting):
    """Refuses numbers in `refused`."""

    refused: ClassVar[set[int]] = set()

    def execute(self, tup):
        if tup["number"] in self.refused:
            self.collector.dead_letter(tup, "not yet")
        else:
            super().execute(tup)


class Keep(Refusing):
    """Adds up numbers by the stream they came on, and keeps the txids."""

    sums = HashState("sums")
    txids = ListState("txids", value=int)

    def finish_batch(self):
        for tup in self.tuples:
            assert (tup.source_component, tup.fields) == ("sort", ("number", "place"))
            self.sums.increment(tup.stream_id, tup["number"])
        self.txids.append(self.attempt.txid)


def sorting(spout: Any = None) -> Topology:
    rows = [[[number] for number in batch] for batch in BATCHES]
    builder = TransactionalTopologyBuilder(
        "sorting", "numbers", spout or FixedBatchesSpout(rows, ["number"]), parallelism=2
    )
    builder.set_bolt("sort", Sort(), parallelism=2).fields_grouping("numbers", ["number"])
    keep = builder.set_bolt("keep", Keep())
    keep.fields_grouping("sort", ["number"], "odd").shuffle_grouping("sort", "even")
    return builder.build()


@pytest.fixture(autouse=True)
def nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sort, "refused", set())
    monkeypatch.setattr(Keep, "refused", set())


@pytest.fixture
def cluster():
    with LocalCluster(seed=5) as made:
        yield made


def ran(
    cluster: LocalCluster, topology: Topology, *, sort: Iterable[int] = (), keep: Iterable[int] = (), **more: Any
) -> Any:
    """A run to its end, in which these numbers are refused."""
    Sort.refused, Keep.refused = set(sort), set(keep)
    run = cluster.submit(topology, options=WIDE, **more)
    run.run_until_idle()
    return run


def test_letters_are_published_once_and_bear_the_names_they_were_emitted_under(cluster: LocalCluster) -> None:
    first = ran(cluster, sorting(), sort={1, 4}, keep={7, 8})
    assert first.state("sums") == {"even": 2, "odd": 3 + 5 + 9 + 13}
    second = ran(cluster, sorting(), republish_letters="all")
    assert second.is_done
    assert second.dead_letters() == []
    assert second.state("sums") == {"even": 2 + 4 + 8, "odd": 1 + 3 + 5 + 7 + 9 + 13}
    assert second.statistics.republished_letters == 4
    assert second.state("txids") == [1, 2, 3, 4, 5, 6]
    with pytest.raises(TopologyError, match=r"topology 'sorting' has no dead letter to republish, of 0 looked at;"):
        cluster.submit(sorting(), republish_letters="all")


def test_a_letter_refused_again_is_a_letter_of_the_new_transaction(cluster: LocalCluster) -> None:
    ran(cluster, sorting(), keep={7, 8})
    run = ran(cluster, sorting(), keep={8}, republish_letters="all")
    assert [(one.letter_id, one["number"], one.reason) for one in run.dead_letters()] == [("6.0", 8, "not yet")]
    assert run.state("sums")["odd"] == 1 + 3 + 5 + 7 + 9 + 13


def test_only_the_letters_of_the_components_named_are_replayed(cluster: LocalCluster) -> None:
    ran(cluster, sorting(), sort={1}, keep={8})
    run = ran(cluster, sorting(), republish_letters=["keep"])
    assert [one.component_id for one in run.dead_letters()] == ["sort"]


def test_single_letters_are_replayed(cluster: LocalCluster) -> None:
    ran(cluster, sorting(), sort={1, 2, 9})
    run = ran(cluster, sorting(), republish_letters=[(1, 1)])
    assert [(one.letter_id, one["number"]) for one in run.dead_letters()] == [("1.0", 1), ("3.0", 9)]
    with pytest.raises(TopologyError, match=r"topology 'sorting' has no dead letter 1\.1; `txbatch dead-letters list"):
        cluster.submit(sorting(), republish_letters=[(3, 0), (1, 1)])
    with pytest.raises(
        TopologyError, match=r"argument republish_letters is \['sort', \(1, 0\)\]; give 'all', a list of"
    ):
        cluster.submit(sorting(), republish_letters=["sort", (1, 0)])  # type: ignore[arg-type]


OTHER = FixedBatchesSpout([[[number] for number in batch] for batch in [[6], *BATCHES[1:]]], ["number"])


def test_a_replay_reads_no_input_and_does_not_ask_which_it_is(cluster: LocalCluster) -> None:
    expected = ran(cluster, sorting(), sort={1}).state("sums") | {"odd": 1 + 3 + 5 + 7 + 9 + 13}
    replayed = ran(cluster, sorting(OTHER), republish_letters="all")
    assert replayed.is_done
    assert replayed.state("sums") == expected
    with pytest.raises(StateRefusedError, match="was started on another input"):
        ran(cluster, sorting(OTHER))
    last = ran(cluster, sorting())
    assert (last.is_done, last.statistics.committed) == (True, 0)


def test_a_replay_that_has_to_finish_what_a_run_began_asks_for_the_input_it_began_with(cluster: LocalCluster) -> None:
    Sort.refused = {1}
    first = cluster.submit(sorting(), options=WIDE)
    while not first.statistics.committed:
        first.tick()
    first.close()
    with pytest.raises(StateRefusedError, match=r"was started on another input.* --adopt=changed"):
        cluster.submit(sorting(OTHER), republish_letters="all")
    assert ran(cluster, sorting(), republish_letters="all").is_done


def spouts() -> list[Any]:
    rows = [[[number] for number in batch] for batch in BATCHES]
    flat = {0: [[number] for batch in BATCHES for number in batch], 1: [[2], [6]]}
    return [
        lambda: FixedBatchesSpout(rows, ["number"]),
        lambda: MemoryTransactionalSpout(flat, ["number"], take=2),
        lambda: OpaqueMemoryTransactionalSpout(flat, ["number"], take=2),
    ]


@pytest.mark.parametrize("spout", spouts(), ids=["transactional", "partitioned", "opaque"])
@pytest.mark.parametrize("committed", [1, 2, 3])
def test_the_input_continues_after_a_replay_as_if_there_had_been_none(
    cluster: LocalCluster, spout: Any, committed: int
) -> None:
    with LocalCluster(seed=1) as apart:
        expected = ran(apart, sorting(spout())).state("sums")
    Sort.refused = {1, 2, 3, 4, 6}
    first = cluster.submit(sorting(spout()), options=RunOptions(max_spout_pending=1))
    while first.statistics.committed < committed:
        first.tick()
    first.close()
    replayed = ran(cluster, sorting(spout()), republish_letters="all")
    assert replayed.dead_letters() == []
    last = ran(cluster, sorting(spout()))
    assert last.is_done
    assert last.state("sums") == expected
    assert last.dead_letters() == []


def test_a_spout_is_told_of_its_own_batches_and_never_of_letters(cluster: LocalCluster) -> None:
    Hearing.heard.clear()
    rows = [[[number] for number in batch] for batch in BATCHES]
    Sort.refused = {1, 4, 5}
    first = cluster.submit(sorting(HeardSpout(rows, ["number"])), options=RunOptions(max_spout_pending=1))
    while first.statistics.committed < 3:
        first.tick()
    first.close()
    Sort.refused = set()
    for _ in range(2):
        if cluster.client.zcard("{sorting}:txbatch:dead_letters"):
            ran(cluster, sorting(HeardSpout(rows, ["number"])), republish_letters="all")
        assert set(Hearing.heard) <= {1, 2, 3}
    last = ran(cluster, sorting(HeardSpout(rows, ["number"])))
    assert last.is_done
    assert list(dict.fromkeys(Hearing.heard)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", range(10))
def test_a_replay_that_dies_at_any_moment_is_finished_by_the_next_one(seed: int) -> None:
    draw = Random(seed)
    many = FixedBatchesSpout([[[number] for number in range(start, start + 90)] for start in (1, 91, 181)], ["number"])
    total = {"odd": sum(range(1, 271, 2)), "even": sum(range(2, 271, 2))}
    with LocalCluster(seed=seed) as cluster:
        refused = {number for number in range(1, 271) if draw.random() < 0.9}  # three transactions of letters
        ran(cluster, sorting(many), keep=refused)
        Keep.refused = set()
        deaths = 0
        while cluster.client.zcard("{sorting}:txbatch:dead_letters"):
            run = cluster.submit(sorting(many), options=WIDE, republish_letters="all")
            for _ in range(draw.randint(1, 200 * 2**deaths)):
                if not run.tick():
                    break
            deaths += not run.is_done
            run.close()
        last = ran(cluster, sorting(many))
        assert last.is_done
        assert last.state("sums") == total
        assert last.state("txids") == list(range(1, 7))
        assert deaths > 0


def test_letters_of_a_direct_stream_go_to_the_task_that_refused_them(cluster: LocalCluster) -> None:
    Told.refused = {4, 5, 7}
    ran(cluster, directed())
    Told.refused = set()
    run = ran(cluster, directed(), republish_letters="all")
    assert run.dead_letters() == []
    assert run.state("told") == {number: (number - 1) % 3 for number in range(1, 8)}


class Point(BaseBatchBolt):
    """Sends every number to the task that it names, directly."""

    def declare_output_fields(self, declarer):
        declarer.declare_stream("pointed", ("number",), direct=True)

    def execute(self, tup):
        tasks = self.context.component_tasks("told")
        self.collector.emit_direct(tasks[(tup["number"] - 1) % 3], [tup["number"]], "pointed")


class Told(Refusing):
    """Remembers which task was told of which number."""

    told = HashState("told", field=int)

    def execute(self, tup):
        assert (tup.source_component, tup.stream_id) == ("point", "pointed")
        super().execute(tup)

    def finish_batch(self):
        for number in self.column("number"):
            self.told.put(number, self.context.task_index)


def directed() -> Topology:
    spout = FixedBatchesSpout([[[number] for number in range(1, 8)]], ["number"])
    builder = TransactionalTopologyBuilder("directed", "numbers", spout, parallelism=2)
    builder.set_bolt("point", Point()).shuffle_grouping("numbers")
    builder.set_bolt("told", Told(), parallelism=3).direct_grouping("point", "pointed")
    return builder.build()


def test_a_bad_record_is_replayed_to_the_bolt_that_takes_bad_records_now(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"f": 1}\n{"f": "2"}\n')

    def records(*, repair: bool) -> Topology:
        source = JsonLines(str(tmp_path / "a.jsonl"), {"f": int}, on_bad_record="dead_letter")
        builder = TransactionalTopologyBuilder("records", "lines", source)
        keep = builder.set_bolt("keep", KeepNumbers()).shuffle_grouping("lines")
        if repair:
            builder.set_bolt("repair", Repair()).shuffle_grouping("lines", "dead_letters")
            keep.shuffle_grouping("repair")
        return builder.build()

    assert ran(cluster, records(repair=False)).state("kept") == [1]
    run = ran(cluster, records(repair=True), republish_letters="all")
    assert run.state("kept") == [1, 2]
    assert run.dead_letters() == []


class Repair(BaseBatchBolt):
    output_fields = ("f",)

    def execute(self, tup):
        self.collector.emit([int(json.loads(tup["record"])["f"])])


class KeepNumbers(Collecting):
    kept = ListState("kept", value=int)

    def finish_batch(self):
        self.kept.extend(self.column("f"))


def test_a_replay_that_fails_leaves_its_letters_where_they_are(cluster: LocalCluster, monkeypatch: Any) -> None:
    before = ran(cluster, sorting(), keep={7, 8}).dead_letters()

    def finish_batch(self: Keep) -> None:
        raise KeyError("still broken")

    Keep.refused = set()
    monkeypatch.setattr(Keep, "finish_batch", finish_batch)
    run = cluster.submit(sorting(), republish_letters="all")
    with pytest.raises(UserCodeError, match="still broken"):
        run.run_until_idle()
    assert list(run._letters.all()) == before


def test_letters_dropped_while_they_are_replayed_are_not_published(cluster: LocalCluster) -> None:
    first = ran(cluster, sorting(), keep={7, 8})
    sums = first.state("sums")
    Keep.refused = set()
    run = cluster.submit(sorting(), republish_letters="all")
    letters = run._letters
    letters.drop(until_txid=3, generation=letters.page().generation)
    with pytest.raises(
        StateRefusedError, match="lacks a dead letter that was to be replayed: it was dropped meanwhile"
    ):
        run.run_until_idle()
    assert run.state("sums") == sums
    assert [one["number"] for one in letters.all()] == [8]


def test_a_replay_takes_so_many_letters_and_says_that_there_are_more(
    cluster: LocalCluster, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(republish_choice, "LETTERS_PER_RUN", 2)
    ran(cluster, sorting(), sort={1, 3, 5})
    run = ran(cluster, sorting(), republish_letters="all")
    assert [one["number"] for one in run.dead_letters()] == [5]
    assert "the first 2 dead letters are republished; republish again for others" in caplog.text


def test_letters_that_were_never_emitted_stay(cluster: LocalCluster, caplog: pytest.LogCaptureFixture) -> None:
    first = ran(cluster, refusing([[11, 1, 3]]))
    assert refused_by(first.dead_letters()) == [(1, "check", 3), (1, "source", 11)]
    run = ran(cluster, refusing([[11, 1, 3]]), republish_letters="all")
    assert refused_by(run.dead_letters()) == [(1, "source", 11), (2, "check", 3)]
    assert "1 dead letter cannot be republished and will stay: refused before they were emitted" in caplog.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("keep", "argument republish_letters is 'keep'; give 'all', a list of component ids, or a list"),
        ([], r"argument republish_letters is \[\]; give 'all'"),
        (["other"], r"topology 'sorting' has no component 'other'; it has \['keep', 'numbers', 'sort'\]"),
    ],
)
def test_a_wrong_choice_is_refused(cluster: LocalCluster, given: Any, message: str) -> None:
    ran(cluster, sorting())
    with pytest.raises(TopologyError, match=message):
        ran(cluster, sorting(), republish_letters=given)


def test_a_letter_that_no_longer_fits_its_stream_is_refused_before_anybody_is_fenced(
    cluster: LocalCluster, monkeypatch: Any
) -> None:
    ran(cluster, sorting(), keep={8})

    def declare_output_fields(self: Sort, declarer: Any) -> None:
        declarer.declare_stream("odd", ("number", "place"))
        declarer.declare_stream("even", ("number", "where"))

    monkeypatch.setattr(Sort, "declare_output_fields", declare_output_fields)
    fence = cluster.client.hget("{sorting}:txbatch:control", "fence")
    with pytest.raises(TopologyError) as caught:
        cluster.submit(sorting(), republish_letters="all")
    assert str(caught.value) == (
        "dead letter 4.0 cannot be republished: it has the fields ('number', 'place'), and stream 'even' of 'sort' has "
        "('number', 'where') now; restore the fields, or export the letter and drop it"
    )
    assert cluster.client.hget("{sorting}:txbatch:control", "fence") == fence
