"""The report stands by itself, and says first what it falls short of."""

from __future__ import annotations

import re
import struct
import sys

import pytest

from benchmarks.harness import Spread
from benchmarks.suite import report
from benchmarks.suite.cells import Cell, Measurement
from benchmarks.suite.plots import plots
from benchmarks.suite.report import write_report
from benchmarks.suite.results_file import CellResults, Results, Round
from benchmarks.suite.tables import figures

ABOUT = {"machine": {"cores": 2}, "versions": {"Python": "<3.11>"}, "settings": {}, "code": "abc"}


def measured(cell, rates, latencies=None, load=1.0):
    rounds = [
        Round(
            Measurement(round(rate * 10), round(rate * 1000), 10.0, True, {"driver": rate}, latencies or {}), load, ""
        )
        for rate in rates
    ]
    return CellResults(cell, rounds, 50.0 if latencies else 0.0)


@pytest.fixture
def results(tmp_path):
    latencies = {"p50": 80.0, "p90": 120.0, "p99": 200.0, "max": 250.0}
    entries = [
        measured(Cell("rate", "txbatch", "word_count", 100, 2), [90, 100, 120, 110, 95]),
        measured(Cell("rate", "txbatch", "word_count", 1000, 2), [50, 52, 51, 49, 48]),
        measured(Cell("rate", "txbatch", "word_count", 100, 4), [80] * 5),
        measured(Cell("rate", "foreach_batch_best", "word_count", 100, 2), [10, 12, 8, 10, 10]),
        measured(Cell("rate", "redis_pipeline", "word_count", 100, 1), [200] * 5),
        measured(Cell("rate", "txbatch", "ledger", 100, 2), [70] * 5),
        measured(Cell("latency", "txbatch", "word_count", 100, 2), [50] * 5, latencies),
    ]
    return Results(tmp_path / "results.json", ABOUT, {entry.cell.key: entry for entry in entries})


def test_a_figure_is_the_median_with_its_extremes():
    found = figures(measured(Cell("rate", "txbatch", "word_count", 100, 2), [90, 100, 120, 110, 95]))

    assert found.per_s == Spread(100.0, 90.0, 120.0, 5)
    assert found.processor_ms is not None
    assert found.processor_ms.median == pytest.approx(100)


def test_the_terminal_shows_rates_spread_and_the_ratio_to_the_control(results, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "_drawn", lambda found: ([], ""))
    text, _ = write_report(results, tmp_path, [])

    section = text[text.index("Peak rate: word count, 2 tasks") :]
    row = next(line for line in section.splitlines() if line.startswith("txbatch, rows"))
    assert row.split()[2:7] == ["100", "100", "90.0-120", "10,000", "10.00"]
    assert "Peak rate: word count, 4 tasks" in text
    assert "Latency at half the peak: word count, 2 tasks" in text
    assert "!" not in text, "five rounds on a quiet machine need no warning"


def test_the_page_needs_nothing_else(results, tmp_path):
    _, path = write_report(results, tmp_path, [])

    page = path.read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|srcset|href)="([^"]*)"', page)
    assert len(sources) == 2 * len(list(tmp_path.glob("*-light.png"))) > 0
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert "<script" not in page
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "&lt;3.11&gt;" in page


def test_there_is_a_plot_for_every_question_on_light_and_on_dark_ground(results):
    drawn = plots({entry.cell: figures(entry) for entry in results})

    assert [plot.name for plot in drawn] == ["rate", "tuples", "tasks-100", "latency", "workloads"]
    for plot in drawn:
        light, dark = plot.images["light"], plot.images["dark"]
        assert light != dark
        assert light.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", light[16:24])
        assert (width, height) == (936, 624)


def test_without_matplotlib_the_tables_are_there_and_the_remedy_is_named(results, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "benchmarks.suite.plots")
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)

    text, path = write_report(results, tmp_path, [])

    assert "run: pip install 'txbatch[bench]'" in text
    assert "<table>" in path.read_text(encoding="utf-8")
    assert list(tmp_path.glob("*.png")) == []


def test_few_rounds_a_busy_machine_and_what_failed_are_said_first(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "_drawn", lambda found: ([], ""))
    few = measured(Cell("rate", "txbatch", "word_count", 100, 2), [90], load=9.0)
    broken = CellResults(Cell("rate", "bytewax", "word_count", 100, 2), failure="ended:\nOSError: gone")
    results = Results(tmp_path / "results.json", ABOUT, {few.cell.key: few, broken.cell.key: broken})

    text, path = write_report(results, tmp_path, ["something was left out."])

    page = path.read_text(encoding="utf-8")
    for sentence in (
        "some figures are of 1 of 5 rounds",
        "load average reached 9.0 on 2 cores",
        "something was left out.",
        f"{broken.cell.key}: OSError: gone",
    ):
        assert sentence in text
        assert page.index(sentence) < page.index("<table>")
