"""Each kind of spout that docs/writing-a-source.md shows counts every line once, whatever is replayed or restarted."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from coordinator import LocalCluster, Mistake, RunOptions, TransactionalTopologyBuilder, prove
from coordinator.sources import Inputs
from state.errors import SourceError, TopologyError

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "writing-a-source.md"
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
SEEDS = range(5)
LINES = [f"line {number % 17}" for number in range(60)]
EXPECTED = dict(Counter(LINES))


@pytest.fixture(scope="module")
def guide():
    """What the guide defines, run block by block in one namespace."""
    namespace = {"__name__": "writing_a_source"}
    for number, block in enumerate(PYTHON_BLOCK.findall(GUIDE.read_text(encoding="utf-8")), start=1):
        exec(compile(block, f"{GUIDE.name}, block {number}", "exec"), namespace)
    return SimpleNamespace(**namespace)


def table_rows(guide, folder):
    with closing(sqlite3.connect(folder / "log.db")) as table, table:
        table.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, line TEXT)")
        table.executemany("INSERT INTO log (line) VALUES (?)", [[line] for line in LINES])
    return guide.TableRows(folder / "log.db", rows_per_batch=7)


def counted_rows(guide, folder):
    return guide.CountedRows(table_rows(guide, folder).path, rows_per_batch=7)


def three_files(folder):
    paths = [folder / f"{number}.log" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text("".join(f"{line}\n" for line in LINES[number::3]))
    return paths


def log_files(guide, folder):
    return guide.LogFiles(three_files(folder), lines_per_batch=3)


def growing_files(guide, folder):
    return guide.GrowingFiles(three_files(folder), bytes_per_batch=40)


def inbox(guide, folder):
    for number in range(6):
        (folder / f"{number + 1}.txt").write_text("\n".join(LINES[number::6]))
    return guide.Inbox(folder)


KINDS = [table_rows, counted_rows, log_files, growing_files, inbox]
EXACT = [table_rows, counted_rows, log_files]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_changes_nothing(guide, kind, seed, tmp_path):
    assert guide.counts_after_a_replay(kind(guide, tmp_path), seed) == EXPECTED


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_restarts_change_nothing(guide, kind, seed, tmp_path):
    assert guide.counts_after_restarts(kind(guide, tmp_path), seed) == EXPECTED


@pytest.mark.parametrize("kind", EXACT)
def test_an_exact_spout_emits_the_same_again(guide, kind, tmp_path):
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(guide.topology(kind(guide, tmp_path)), options=RunOptions(max_spout_pending=3))
        run.hold("commit", 2)  # what was cut is stored by now
        run.run_until_idle()
        run.fail(2, "again")
        run.release("commit")
        run.run_until_idle()
        first, second = run.attempts(2)
        assert (first.end, second.end) == ("failed", "committed")
        again = run.emitted("lines", attempt=second.attempt)
        assert sorted(run.emitted("lines", attempt=first.attempt)) == sorted(again) != []


def test_an_opaque_replay_reads_what_has_arrived_since_and_waits_for_a_file_that_is_away(guide, tmp_path):
    paths = three_files(tmp_path)
    away = paths[2].read_text()
    paths[2].unlink()
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(guide.topology(guide.GrowingFiles(paths, bytes_per_batch=10_000)))
        run.hold("processing", 1)
        run.run_until_idle()
        with paths[0].open("a") as file:
            file.write("late\nhalf a li")
        run.fail(1, "again")
        run.release("processing")
        run.hold("commit", 2)
        run.run_until_idle()
        assert run.state("seen") == Counter([*LINES[0::3], *LINES[1::3], "late"])
        with paths[0].open("a") as file:
            file.write("ne\n")
        paths[2].write_text(away)
        run.fail(2, "again")
        run.release("commit")
        run.run_until_idle()
        assert run.is_done
        assert run.state("seen") == Counter([*LINES, "late", "half a line"])


def test_the_inbox_deletes_what_is_durable_and_nothing_else(guide, tmp_path):
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(guide.topology(inbox(guide, tmp_path)))
        run.hold("commit", 3)
        run.run_until_idle()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["3.txt", "4.txt", "5.txt", "6.txt"]
        run.release("commit")
        run.run_until_idle()
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "7.txt").write_text("one more")
        run.close()
        run = cluster.submit(guide.topology(guide.Inbox(tmp_path)))
        run.run_until_idle()
        assert run.state("seen") == {**EXPECTED, "one more": 1}


def test_a_source_that_compares_refuses_rows_that_are_gone_until_that_is_accepted_once(guide, tmp_path):
    rows = counted_rows(guide, tmp_path)
    with LocalCluster(seed=3) as cluster:
        cluster.submit(guide.topology(rows)).run_until_idle()
        with closing(sqlite3.connect(rows.path)) as table, table:
            table.execute("DELETE FROM log WHERE id IN (3, 30)")
        with pytest.raises(SourceError, match="2 of the rows up to 60 are gone"):
            cluster.submit(guide.topology(rows))
        for adopt in ("changed", False):
            run = cluster.submit(guide.topology(rows), options=RunOptions(adopt=adopt))
            run.run_until_idle()
            assert (run.is_done, run.statistics.committed) == (True, 0)
        assert run.state("seen") == EXPECTED


def test_a_source_may_connect_and_a_bolt_may_not_when_it_is_proved(guide, tmp_path):
    rows = table_rows(guide, tmp_path)
    proof = prove(lambda: guide.topology(guide.TableRows(rows.path, rows_per_batch=20)), seeds=5)
    assert proof.holds, proof

    class Connects(guide.CountLines):  # type: ignore[name-defined]
        def finish_batch(self):
            with closing(sqlite3.connect(rows.path)):
                super().finish_batch()

    builder = TransactionalTopologyBuilder("sources", "lines", rows)
    builder.set_committer_bolt("count", Connects()).fields_grouping("lines", ["line"])
    (mistake,) = prove(builder.build(), seeds=1).mistakes
    assert (mistake.mistake, mistake.component_id) == (Mistake.EFFECT, "count")


def test_the_inbox_is_refused_among_several_inputs_since_it_goes_by_numbers_of_transactions(guide, tmp_path):
    with pytest.raises(TopologyError, match="input 'mail' is a Inbox, which has a committer of your own"):
        Inputs(mail=inbox(guide, tmp_path))
