"""A user looks at the first rows of a stream before anything runs: `take`, `show`, and what a notebook shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from coordinator import FixedBatchesSpout, TextFiles, stream
from coordinator.sources import Inputs
from state import HashState, SetState, TopologyError, UserCodeError, ValueState
from tests.support.approved import approved, refusals
from tests.support.topologies.short_forms import kept, rows

ORDERS = [["ann", 5], ["bob", 0]], [["ann", 7]], [["cid", 9]]


def orders():
    return rows("who cents", *ORDERS)


def test_the_first_rows_of_any_step_are_taken_from_as_many_transactions_as_it_needs():
    s = orders()
    paid = s.filter(lambda who, cents: cents > 0 if who != "cid" else 1 // 0)
    assert paid.take(2) == [{"who": "ann", "cents": 5}, {"who": "ann", "cents": 7}]
    assert [row["cents"] for row in s.take()] == [5, 0, 7, 9]
    assert s.merge(paid).take(1) == [{"who": "ann", "cents": 5}]


def test_looking_changes_nothing_of_what_runs_afterwards_and_runs_nothing_that_the_rows_do_not_need():
    s, totals = orders(), HashState("totals")
    s.map(lambda cents: 1 // 0, of="cents").sum_by("who", "cents", into=HashState("never"))
    s.sum_by("who", "cents", into=totals)
    found = s.enrich(totals, by="who", to="so_far", as_of="transaction").distinct_by("who", into=SetState("seen"))
    assert found.take(9) == [
        {"who": "ann", "cents": 5, "so_far": None},
        {"who": "bob", "cents": 0, "so_far": None},
        {"who": "cid", "cents": 9, "so_far": None},
    ]
    again = orders()
    again.filter(bool, of="cents").map(str, of="cents").take(1)
    assert kept(again.count_by(None, into=ValueState("rows")).topology("counted"), "rows") == 4


def test_rows_are_shown_with_the_types_of_their_values_on_a_terminal_and_in_a_notebook(capsys, monkeypatch):
    shown = orders().map(lambda cents: cents or None, of="cents")
    shown.show(2)
    assert capsys.readouterr().out.splitlines() == [
        "who  cents",
        "str  NoneType | int",
        "ann  5",
        "bob  None",
        "2 rows of FixedBatchesSpout, 1 transaction read",
    ]
    displayed: list[Any] = []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=displayed.append))
    shown.filter(lambda who: who == "<b>", of="who").show()
    (found,) = displayed
    assert "cents: -" in found._repr_html_()
    assert "0 rows of FixedBatchesSpout, 3 transactions read" in found._repr_html_()


def test_a_notebook_shows_the_steps_of_a_stream_as_text():
    html = rows("<who> cents", [["ann", 5]]).filter(bool, of="cents")._repr_html_()
    assert "&lt;who&gt;, cents" in html
    assert "test_looking.py:" in html


def only_looked_at():
    s = orders()
    s.filter(bool, of="cents").take(1)
    return s.topology("looked")


UNSEEN = {
    "no row": lambda: orders().take(0),
    "a topology that keeps nothing": only_looked_at,
    "a function that raises": lambda: orders().map(lambda who: 1 // 0, of="who").take(),
    "several sources": lambda: stream(Inputs(a=FixedBatchesSpout([[[1]]], ["a"]))).take(),
    "no file": lambda: stream(TextFiles("/no/such/folder/*.txt")).take(),
}


def test_what_cannot_be_looked_at_is_refused():
    approved(refusals(UNSEEN, TopologyError, UserCodeError), "looks-that-are-refused", HERE=Path.cwd())


def test_a_job_that_nobody_looks_at_does_not_import_the_local_cluster() -> None:
    program = "import sys; from coordinator import stream; print('coordinator.testing' in sys.modules, stream.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False stream\n"
