"""Starts that an attack got accepted, or refused for the wrong reason: each is refused now, in words that fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.sources.files.line_files import TextFiles
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.run_so_far import InputChange
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import ListState, SourceError, StateRefusedError, UserCodeError
from tests.support.runs.collecting import Collecting

ROWS = [["a"], ["b"]]
TWO_ROWS = MemoryTransactionalSpout([ROWS], ["x"], 1)


class Keep(Collecting):
    rows = ListState("rows", value=str)

    def finish_batch(self):
        for tup in self.tuples:
            self.rows.append(tup[0])


class KeepElsewhere(Keep):
    rows = ListState("elsewhere", value=str)


def topology(spout, keep=Keep):
    builder = TransactionalTopologyBuilder("t", "lines", spout)
    builder.set_committer_bolt("keep", keep(), 1).global_grouping("lines")
    return builder.build()


@pytest.fixture
def cluster():
    with LocalCluster(seed=1) as cluster:
        yield cluster


def finish(cluster, spout, keep=Keep, **options):
    run = cluster.submit(topology(spout, keep), options=RunOptions(max_spout_pending=1, **options))
    run.run_until_idle()
    assert run.is_done
    return run


@pytest.mark.parametrize("adopt", [False, True, "unchecked", "again"])
def test_an_opaque_spout_does_not_read_again_what_a_transactional_one_has_read(cluster, adopt):
    finish(cluster, FixedBatchesSpout([[row] for row in ROWS], ["x"]))
    with pytest.raises(StateRefusedError, match="was run with another kind of spout"):
        finish(cluster, OpaqueMemoryTransactionalSpout([ROWS], ["x"], 1), adopt=adopt)
    assert cluster.client.lrange("{t}:rows", 0, -1) == [b"a", b"b"]


def test_an_opaque_spout_continues_from_the_positions_of_a_partitioned_one(cluster):
    finish(cluster, MemoryTransactionalSpout([ROWS[:1]], ["x"], 1))
    run = finish(cluster, OpaqueMemoryTransactionalSpout([ROWS], ["x"], 1), adopt=True)
    assert run.state("rows") == ["a", "b"]


def test_state_without_any_record_of_its_history_is_not_added_to(cluster):
    finish(cluster, TWO_ROWS)
    cluster.client.delete(*(f"{{t}}:txbatch:{name}" for name in ("control", "metadata", "receipts")))
    with pytest.raises(StateRefusedError, match="has no record of writing 'rows', but the server holds such state"):
        finish(cluster, TWO_ROWS)
    assert cluster.client.llen("{t}:rows") == 2
    assert finish(cluster, TWO_ROWS, accept_state_changes=True).state("rows") == ["a", "b", "a", "b"]


def test_a_state_that_comes_back_is_not_continued_without_a_word(cluster):
    spout = MemoryTransactionalSpout([[["a"]]], ["x"], 1)
    finish(cluster, spout)
    finish(cluster, spout, KeepElsewhere, accept_state_changes=True)
    with pytest.raises(StateRefusedError, match=r"its states have changed|has no record of writing 'rows'"):
        finish(cluster, spout, Keep)
    assert finish(cluster, spout, Keep, accept_state_changes=True).state("rows") == ["a"]


@pytest.mark.parametrize("field", ["committed", "generation", "revision", "fence", "metadata_sum"])
def test_a_control_field_that_is_gone_is_named_and_fences_nobody_out(cluster, field):
    finish(cluster, TWO_ROWS)
    cluster.client.hdel("{t}:txbatch:control", field)
    before = cluster.client.hgetall("{t}:txbatch:control")
    with pytest.raises(StateRefusedError, match=r"REGRESSED|checksum|has no record"):
        finish(cluster, TWO_ROWS)
    assert cluster.client.hgetall("{t}:txbatch:control") == before


def test_an_adoption_that_had_nothing_to_read_is_not_asked_for_again(cluster, tmp_path):
    (tmp_path / "b.txt").write_text("b\n")
    finish(cluster, TextFiles(str(tmp_path / "*.txt"), 1))
    (tmp_path / "a.txt").write_text("a\n")
    finish(cluster, TextFiles(str(tmp_path / "*.txt"), 1), adopt="skip")
    assert finish(cluster, TextFiles(str(tmp_path / "*.txt"), 1)).state("rows") == ["b"]


def test_a_server_that_goes_back_past_a_drop_is_told_from_a_newer_run(cluster):
    for _ in range(3):
        finish(cluster, TWO_ROWS)
    saved = cluster.client.hgetall("{t}:txbatch:control")
    cluster.client.flushdb()
    run = cluster.submit(topology(TWO_ROWS), options=RunOptions(max_spout_pending=1))
    run.tick()
    cluster.client.delete("{t}:txbatch:control")
    cluster.client.hset("{t}:txbatch:control", mapping=saved)
    with pytest.raises(StateRefusedError, match="REGRESSED: generation is"):
        run.run_until_idle()


def swapped(path):
    other = path.with_name("other")
    other.write_text("c0\nc1\n")
    other.rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "rewritten longer": lambda path: path.write_text("bbbbbb0\nb1\n"),
    "prepended": lambda path: path.write_text("x\n" + path.read_text()),
    "cut short": lambda path: path.write_text("b0\n"),
    "swapped": swapped,
}


def reads_two_files(cluster, tmp_path):
    """A run that has not read the second of two files, and that file."""
    (tmp_path / "a.txt").write_text("a0\na1\n")
    later = tmp_path / "b.txt"
    later.write_text("b0\nb1\n")
    run = cluster.submit(topology(TextFiles(str(tmp_path / "*.txt"), 1)), options=RunOptions(max_spout_pending=1))
    run.tick()
    return run, later


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_rewritten_under_a_run_before_it_is_read_is_named(cluster, tmp_path, change):
    run, later = reads_two_files(cluster, tmp_path)
    CHANGES[change](later)
    with pytest.raises(SourceError, match=r"b.txt' was changed after the run began and before it was read"):
        run.run_until_idle()
    assert run.state("rows") == ["a0", "a1"]


def test_lines_appended_under_a_run_to_a_file_that_is_not_read_yet_are_left_to_a_later_run(cluster, tmp_path):
    run, later = reads_two_files(cluster, tmp_path)
    with later.open("a") as file:
        file.write("b2\n")
    run.run_until_idle()
    assert run.state("rows") == ["a0", "a1", "b0", "b1"]
    assert finish(cluster, TextFiles(str(tmp_path / "*.txt"), 1), adopt=True).state("rows")[-1] == "b2"


class Odd(MemoryTransactionalSpout):
    """A spout whose coordinator has another method than its own."""

    def __init__(self, rows, method, function):
        super().__init__([rows], ["x"], 1)
        self.method, self.function = method, function

    def get_coordinator(self, conf, context):
        made: Any = super().get_coordinator(conf, context)
        setattr(made, self.method, self.function)
        return made


def returning(answer, *given):
    return answer


ODD_CHANGES: dict[str, dict[str, Any]] = {
    "text": {"skipped": "abc"},
    "number": {"again": (1,)},
    "note": {"notes": {1: 2}},
    "value": {"notes": {"a": object()}},
}


@pytest.mark.parametrize("change", [InputChange(**parts) for parts in ODD_CHANGES.values()], ids=[*ODD_CHANGES])
def test_an_odd_comparison_is_the_users_mistake_and_fences_nobody_out(cluster, change):
    finish(cluster, MemoryTransactionalSpout([ROWS], ["x"], 1))
    before = cluster.client.hgetall("{t}:txbatch:control")
    with pytest.raises(UserCodeError, match=r"(?s)compare of component 'lines' failed:"):
        finish(cluster, Odd([*ROWS, ["c"]], "compare", partial(returning, change)), adopt=True)
    assert cluster.client.hgetall("{t}:txbatch:control") == before
