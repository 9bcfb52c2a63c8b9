"""Results survive a stop, and never mix what cannot be compared."""

from __future__ import annotations

import json

import pytest

from benchmarks.suite.cells import Cell, Measurement
from benchmarks.suite.results_file import Results, ResultsError, Round

ABOUT = {"machine": {"cores": 2}, "versions": {"Python": "3.11"}, "settings": {"seconds": 10.0}, "code": "abc"}
CELL = Cell("rate", "txbatch", "word_count", 100, 2)
MEASURED = Measurement(10, 1000, 2.0, True, {"driver": 0.5}, {}, {"waves": 3})


def test_what_is_saved_is_read_again(tmp_path):
    results = Results.opened(tmp_path / "results.json", ABOUT)
    results.of(CELL).rounds.append(Round(MEASURED, 1.5, "2026-01-01T00:00:00+00:00"))
    results.save()

    again = Results.opened(tmp_path / "results.json", ABOUT)

    assert again.of(CELL) == results.of(CELL)
    assert [found.cell for found in again] == [CELL]
    assert list(tmp_path.iterdir()) == [tmp_path / "results.json"]


def test_a_cell_that_was_only_asked_for_is_not_stored(tmp_path):
    results = Results.opened(tmp_path / "results.json", ABOUT)
    results.of(CELL)
    results.save()

    assert json.loads((tmp_path / "results.json").read_text())["cells"] == {}


@pytest.mark.parametrize(
    ("name", "other", "difference"),
    [
        ("machine", {"cores": 16}, "machine: cores was 2, is 16"),
        ("versions", {"Python": "3.11", "Java": "21"}, "versions: Java was None, is '21'"),
        ("settings", {"seconds": 3.0}, r"settings: seconds was 10\.0, is 3\.0"),
        ("code", "def", "code: was 'abc', is 'def'"),
    ],
)
def test_figures_of_other_circumstances_are_not_mixed(tmp_path, name, other, difference):
    Results.opened(tmp_path / "results.json", ABOUT).save()

    with pytest.raises(ResultsError, match=f"measured with other {difference}; .* --results"):
        Results.opened(tmp_path / "results.json", {**ABOUT, name: other})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"about": {}, "cells": {"a": 1}}'])
def test_a_file_that_is_not_ours_is_refused(tmp_path, text):
    (tmp_path / "results.json").write_text(text)

    with pytest.raises(ResultsError, match="cannot be read"):
        Results.opened(tmp_path / "results.json", ABOUT)


def test_cells_of_the_same_name_differ_by_every_part():
    others = [
        Cell("latency", "txbatch", "word_count", 100, 2),
        Cell("rate", "bytewax", "word_count", 100, 2),
        Cell("rate", "txbatch", "top_k", 100, 2),
        Cell("rate", "txbatch", "word_count", 1000, 2),
        Cell("rate", "txbatch", "word_count", 100, 4),
        Cell("rate", "txbatch", "word_count", 100, 2, 64),
    ]

    assert len({cell.key for cell in [CELL, *others]}) == 7
