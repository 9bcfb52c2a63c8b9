"""Going on with another input: nothing is left out and nothing read twice unless the user has said so."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.sources.files import prefix_digest
from coordinator.sources.files.line_files import TextFiles
from coordinator.sources.files.stores import input_file
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import HashState, SourceError, StateRefusedError, UserCodeError
from tests.support.runs.collecting import Collecting
from tests.support.runs.whole_runs import Count0
from tests.support.topologies.components import Lines, LinesCoordinator, build

CONTROL = "{files}:txbatch:control"


class Store(Collecting):
    """Counts lines; raises at one it was told to."""

    lines = HashState("lines", value=int)
    hated: ClassVar[str] = ""

    def execute(self, tup):
        if tup["line"] == self.hated:
            raise ValueError("a line nobody likes")
        super().execute(tup)

    def finish_batch(self):
        for line, count in Counter(self.column("line")).items():
            self.lines.increment(line, count)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files that are read to their end: b.txt and d.txt."""
    Store.hated = ""
    lines_of(tmp_path / "b.txt", "b", 5)
    lines_of(tmp_path / "d.txt", "d", 3)
    return tmp_path


def lines_of(path: Path, name: str, count: int) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{name}{number}\n" for number in range(count))


def topology(pattern: Any, lines_per_batch: int = 2) -> Any:
    builder = TransactionalTopologyBuilder("files", "lines", TextFiles(pattern, lines_per_batch), parallelism=2)
    builder.set_committer_bolt("store", Store(), 2).fields_grouping("lines", ["line"])
    return builder.build()


def run(cluster: LocalCluster, folder: Path, adopt: bool | str = False, pattern: str = "*.txt", **more: Any) -> Any:
    with_options = RunOptions(max_spout_pending=2, adopt=adopt)
    with closing(cluster.submit(topology(str(folder / pattern), **more), options=with_options)) as made:
        made.run_until_idle()
        assert made.is_done
        return made.state("lines")


def refusal(cluster: LocalCluster, folder: Path, error: Any = StateRefusedError, **more: Any) -> str:
    before = cluster.client.hgetall(CONTROL)
    with pytest.raises(error) as caught:
        run(cluster, folder, **more)
    assert cluster.client.hgetall(CONTROL) == before, "a start that is refused changes nothing, and fences nobody out"
    return str(caught.value)


def every_line(*names: tuple[str, int]) -> dict[str, int]:
    return {f"{name}{number}": 1 for name, count in names for number in range(count)}


# What plain --adopt takes


@pytest.mark.parametrize("touched", [False, True])
def test_files_and_lines_after_the_position_are_adopted_as_they_are(cluster, folder, touched):
    run(cluster, folder)
    lines_of(folder / "e.txt", "e", 4)
    lines_of(folder / "d.txt", "more", 2)
    if touched:
        os.utime(folder / "b.txt")
    refused = refusal(cluster, folder)
    assert "nothing would be skipped or read again; continue with --adopt" in refused
    assert refused.endswith("if more files are to come, read them as they arrive with follow=True")
    expected = every_line(("b", 5), ("d", 3), ("e", 4), ("more", 2))
    assert run(cluster, folder, adopt=True) == expected
    assert run(cluster, folder) == expected, "adopted for good"


def test_an_input_of_which_nothing_was_read_needs_no_word(cluster, folder):
    (folder / "empty.txt").touch()
    run(cluster, folder, pattern="empty.txt")
    assert run(cluster, folder) == every_line(("b", 5), ("d", 3))


# What would be skipped


def test_a_file_that_sorts_before_the_position_is_listed_and_refused_until_it_may_be_skipped(cluster, folder):
    run(cluster, folder)
    lines_of(folder / "a.txt", "a", 7)
    lines_of(folder / "e.txt", "e", 1)
    for adopt in (False, True, "again", "changed"):
        message = refusal(cluster, folder, adopt=adopt)
        assert f"never read: file '{folder}/a.txt' (21 bytes) lies before the position" in message
        assert "accept exactly this with --adopt=skip" in message
    assert run(cluster, folder, adopt="skip") == every_line(("b", 5), ("d", 3), ("e", 1))
    lines_of(folder / "f.txt", "f", 1)
    assert run(cluster, folder, adopt=True)["f0"] == 1, "what was accepted once is not asked about again"


def test_lines_appended_to_a_file_before_the_position_are_listed(cluster, folder):
    run(cluster, folder)
    lines_of(folder / "b.txt", "late", 2)
    lines_of(folder / "e.txt", "e", 1)
    message = refusal(cluster, folder, adopt=True)
    assert f"never read: bytes 15 to 27 of file '{folder}/b.txt' lie before the position" in message
    assert run(cluster, folder, adopt="skip,again") == every_line(("b", 5), ("d", 3), ("e", 1))


def test_many_files_that_would_be_skipped_are_not_all_listed(cluster, folder):
    run(cluster, folder)
    for number in range(30):
        lines_of(folder / f"a{number:02}.txt", "a", 1)
    message = refusal(cluster, folder, adopt=True)
    assert "a09.txt" in message
    assert "a10.txt" not in message
    assert "and 20 more" in message


# What would be read again


def test_a_file_under_a_new_name_is_the_same_or_another_as_the_user_says(cluster, folder):
    run(cluster, folder)
    (folder / "b.txt").rename(folder / "z.txt")
    message = refusal(cluster, folder, adopt=True)
    assert (
        f"read under another name: file '{folder}/z.txt' holds the 15 bytes that were read of '{folder}/b.txt', which "
        "is no longer there"
    ) in message
    assert "--adopt=renamed (in Python RunOptions.adopt); with again in place of renamed" in message
    for adopt in ("changed", "skip,changed"):
        refusal(cluster, folder, adopt=adopt)
    assert run(cluster, folder, adopt="renamed") == every_line(("b", 5), ("d", 3))
    lines_of(folder / "e.txt", "e", 1)
    assert run(cluster, folder, adopt="skip,renamed") == every_line(("b", 5), ("d", 3), ("e", 1)), "it stays known"


@pytest.mark.parametrize("adopt", ["again", "again,changed"])
def test_a_file_under_a_new_name_is_counted_twice_if_the_user_wants_it(cluster, folder, adopt):
    run(cluster, folder)
    (folder / "b.txt").rename(folder / "z.txt")
    assert run(cluster, folder, adopt=adopt) == every_line(("d", 3)) | {f"b{n}": 2 for n in range(5)}


def test_what_was_appended_to_a_renamed_file_is_read_only_with_all_of_it(cluster, folder):
    run(cluster, folder)
    lines_of((folder / "b.txt").rename(folder / "z.txt"), "b", 6)
    message = refusal(cluster, folder, adopt="renamed")
    assert f"read again: file '{folder}/z.txt' begins with the 15 bytes that were read of '{folder}/b.txt'" in message
    assert "--adopt=again (in Python RunOptions.adopt); what is read again is counted twice" in message


def test_a_file_under_a_new_name_before_the_position_was_read_already(cluster, folder):
    run(cluster, folder)
    (folder / "b.txt").rename(folder / "a.txt")
    lines_of(folder / "e.txt", "e", 1)
    assert run(cluster, folder, adopt=True) == every_line(("b", 5), ("d", 3), ("e", 1))


# What was read and has changed


def rewritten(path: Path) -> None:
    """The same size, and other bytes beyond the first 4,096."""
    content = path.read_bytes()
    path.write_bytes(content[:-2] + b"X\n")


@pytest.mark.parametrize("name", ["b.txt", "d.txt"])
def test_a_file_changed_where_it_was_read_is_noticed_though_size_and_beginning_are_the_same(cluster, tmp_path, name):
    lines_of(tmp_path / "b.txt", "a long line of b ", 1000)
    lines_of(tmp_path / "d.txt", "a long line of d ", 1000)
    run(cluster, tmp_path, lines_per_batch=400)
    rewritten(tmp_path / name)
    message = refusal(cluster, tmp_path, SourceError)
    assert f"file '{tmp_path}/{name}' has changed: " in message
    assert "`txbatch drop files`" in message
    if name == "b.txt":
        assert "--adopt=changed" in message
        assert len(run(cluster, tmp_path, adopt="changed")) == 2000
    else:
        assert "would have to begin in it" in refusal(cluster, tmp_path, SourceError, adopt="changed")


def test_a_change_is_noticed_while_a_transaction_is_cut_and_not_committed(cluster, folder):
    made = cluster.submit(topology(str(folder / "*.txt")), options=RunOptions(max_spout_pending=9, commit_group_max=1))
    while made.statistics.committed < 1:
        made.tick()
    made.close()
    rewritten(folder / "b.txt")
    message = refusal(cluster, folder, adopt="changed")
    assert "has changed: 15 bytes of it were read" in message
    assert "transactions that are not committed yet have to read it again" in message


def test_files_that_nobody_touched_are_not_read_again(cluster, folder, monkeypatch):
    monkeypatch.setattr(input_file, "RECENT_NS", 0)  # they were written a moment ago
    run(cluster, folder)
    looked_at: list[str] = []
    marks_at = prefix_digest.marks_at

    def noted(file, ends):
        looked_at.append(Path(file.path).name)
        return marks_at(file, ends)

    monkeypatch.setattr("coordinator.sources.files.file_comparison.marks_at", noted)
    run(cluster, folder)
    assert looked_at == []
    os.utime(folder / "b.txt")
    lines_of(folder / "e.txt", "e", 1)
    run(cluster, folder, adopt=True)
    assert looked_at == ["b.txt"]
    run(cluster, folder)
    assert looked_at == ["b.txt"], "its new time was kept with the commit"


# What a failed adoption leaves


def test_a_failed_adoption_leaves_the_stored_fingerprint_so_the_former_input_goes_on(cluster, folder):
    run(cluster, folder)
    lines_of(folder / "a.txt", "a", 1)
    refusal(cluster, folder, adopt=True)
    (folder / "a.txt").unlink()
    assert run(cluster, folder) == every_line(("b", 5), ("d", 3))


def test_an_adoption_that_begins_nothing_stores_nothing(cluster, folder):
    run(cluster, folder)
    before = cluster.client.hget(CONTROL, "source_fingerprint")
    lines_of(folder / "e.txt", "e", 1)
    made = cluster.submit(topology(str(folder / "*.txt")), options=RunOptions(adopt=True))
    made.close()
    assert cluster.client.hget(CONTROL, "source_fingerprint") == before
    (folder / "e.txt").unlink()
    assert run(cluster, folder) == every_line(("b", 5), ("d", 3))


def test_an_adopted_input_is_stored_with_its_first_transaction_though_that_fails(cluster, folder):
    run(cluster, folder)
    lines_of(folder / "e.txt", "bad", 1)
    Store.hated = "bad0"
    with pytest.raises(UserCodeError, match="nobody likes"):
        run(cluster, folder, adopt=True)
    Store.hated = ""
    assert run(cluster, folder) == every_line(("b", 5), ("d", 3), ("bad", 1))


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["append", "new", "touch", "nothing"]), st.integers(1, 4)),
        max_size=6,
    ),
    st.integers(0, 2**32),
)
def test_an_input_that_grows_between_runs_that_are_cut_off_is_counted_exactly_once(steps, seed):
    Store.hated = ""
    with TemporaryDirectory() as name, LocalCluster(seed=seed) as cluster:
        folder = Path(name)
        names = ["a"]
        lines_of(folder / "a.txt", "a-0-", 4)
        for number, (ticks, growth, per_batch) in enumerate(steps):
            made = cluster.submit(
                topology(str(folder / "*.txt"), per_batch), options=RunOptions(max_spout_pending=3, adopt=True)
            )
            for _ in range(ticks):
                made.tick()
            made.close()
            if growth == "new":
                names.append(chr(ord(names[-1]) + 1))
            if growth in ("new", "append"):
                lines_of(folder / f"{names[-1]}.txt", f"{names[-1]}-{number + 1}-", 3)
            elif growth == "touch":
                os.utime(folder / "a.txt")
        expected = [line for path in folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
        assert run(cluster, folder, adopt=True) == dict.fromkeys(expected, 1)
        notes = [key for key in cluster.client.hkeys("{files}:txbatch:metadata") if key.startswith(b"note.")]
        assert len(notes) == len(names), "one for each file, however often it was read on"


# Spouts in memory

ROWS = [[letter, number] for number, letter in enumerate("abcdefgh")]
FIELDS = ["line", "number"]
Spout = Callable[[list[Any]], Any]
SPOUTS: dict[str, Spout] = {
    "partitioned": lambda rows: MemoryTransactionalSpout([rows, rows[:2]], FIELDS, 3),
    "opaque": lambda rows: OpaqueMemoryTransactionalSpout([rows, rows[:2]], FIELDS, 3),
    "fixed": lambda rows: FixedBatchesSpout([rows[n : n + 2] for n in range(0, len(rows), 2)], FIELDS),
}


def count(cluster: LocalCluster, spout: Any, adopt: bool | str = False) -> int:
    topology = build(("count", Count0(), ["lines"]), spout=spout)
    with closing(cluster.submit(topology, options=RunOptions(adopt=adopt))) as made:
        made.run_until_idle()
        total: int = made.state("counts0").get("all", 0)
        return total


@pytest.mark.parametrize("kind", SPOUTS)
def test_a_memory_spout_with_the_same_beginning_is_adopted_and_read_to_its_end(cluster, kind):
    before = count(cluster, SPOUTS[kind](ROWS[:4]))
    with pytest.raises(StateRefusedError, match="nothing would be skipped or read again; continue with --adopt"):
        count(cluster, SPOUTS[kind](ROWS))
    assert count(cluster, SPOUTS[kind](ROWS), adopt=True) == before + 4


@pytest.mark.parametrize("kind", SPOUTS)
def test_a_memory_spout_with_another_beginning_is_refused_until_that_is_accepted(cluster, kind):
    before = count(cluster, SPOUTS[kind](ROWS[:4]))
    other = [["x", 0], *ROWS[1:]]
    for adopt in (True, "skip", "again"):
        with pytest.raises(StateRefusedError, match=r"changed after it was read: the first .* --adopt=changed"):
            count(cluster, SPOUTS[kind](other), adopt=adopt)
    assert count(cluster, SPOUTS[kind](other), adopt="changed") == before + 4
    assert count(cluster, SPOUTS[kind](other)) == before + 4


@pytest.mark.parametrize("kind", ["partitioned", "opaque"])
@pytest.mark.parametrize("adopt", [False, True, "skip,again,changed"])
def test_rows_that_were_read_and_taken_out_are_refused(cluster, kind, adopt):
    count(cluster, SPOUTS[kind](ROWS))
    with pytest.raises(StateRefusedError, match=r"partition 0 .* has 4 rows but was read up to row 8"):
        count(cluster, SPOUTS[kind](ROWS[:4]), adopt=adopt)


# Spouts of one's own


class Silent(Lines):
    """A spout that cannot compare."""

    def __init__(self, transactions: int, name: str) -> None:
        super().__init__(transactions)
        self.name = name

    def fingerprint(self) -> str:
        return self.name


class Own(Silent):
    """A spout whose coordinator tells what the test wants."""

    change: ClassVar[Any] = None
    asked: ClassVar[list[FormerInput]] = []

    def get_coordinator(self, conf, context):
        return OwnCoordinator(self.count)


class OwnCoordinator(LinesCoordinator):
    def notes(self, metadata):
        return {"last": metadata}

    def compare(self, former):
        Own.asked.append(former)
        return Own.change


def test_a_spout_that_cannot_compare_is_only_adopted_unchecked(cluster):
    count(cluster, Silent(2, "one"))
    for adopt in (False, True, "skip,again,changed"):
        with pytest.raises(StateRefusedError, match=r"stored fingerprint 'one', given 'two'; .*`compare`.*unchecked"):
            count(cluster, Silent(4, "two"), adopt=adopt)
    assert count(cluster, Silent(4, "two"), adopt="unchecked") == 16
    assert count(cluster, Silent(4, "two")) == 16


def test_a_spout_of_ones_own_is_told_how_far_it_was_read_and_is_believed(cluster):
    Own.asked.clear()
    Own.change = InputChange(skipped=("a shelf of books",))
    count(cluster, Own(2, "one"))
    assert Own.asked == [], "nothing was read before"
    with pytest.raises(StateRefusedError, match=r"never read: a shelf of books; .* --adopt=skip"):
        count(cluster, Own(4, "two"), adopt=True)
    assert count(cluster, Own(4, "two"), adopt="skip") == 16
    first, _ = Own.asked
    assert (first.fingerprint, first.is_same, first.last_txid, first.last) == ("one", False, 2, "lines of 2")
    assert first.notes == {"last": "lines of 2"}
    Own.change = InputChange(changed=("a torn page",))
    with pytest.raises(SourceError, match=r"a torn page; .* --adopt=changed"):
        count(cluster, Own(4, "two"))


@pytest.mark.parametrize("answer", [7, "all is well", {"skipped": ()}])
def test_what_a_comparison_may_not_answer_is_named(cluster, answer):
    Own.change = None
    count(cluster, Own(2, "one"))
    Own.change = answer
    with pytest.raises(UserCodeError, match=r"compare returned .*; return an InputChange"):
        count(cluster, Own(4, "two"), adopt=True)
