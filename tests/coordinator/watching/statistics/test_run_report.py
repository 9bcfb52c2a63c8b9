"""A report of a run: tables and plots in one page, plots alone as a picture, and tables alone without matplotlib."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.watching.statistics.run_statistics import RunStatistics
from tests.support.watching.counted import Counted

HOSTILE = "<script>alert('$x$')</script>"


def run_of(component_id="count"):
    counter = Counted(RunStatistics(attempts=6, failed_attempts=2))
    counter.starts(98_765.0, 1, 2, 3, 4)
    counter.ends(98_765.5, 1, 2, 3, 4, measured_s=0.5)
    counter.statistics.component(component_id).work.add_stretch("lines/default", 20, 1_000_000)
    counter.commits(98_767.0, 1, 2, 3, 4)
    return counter.statistics


def test_the_html_has_the_figures_the_components_and_the_plots_and_its_repr_the_figures():
    html = run_of().report("word_count")._repr_html_()
    assert repr(run_of().report("word_count")).startswith(
        "RunReport('word_count': committed transactions 4, last txid 4, "
    )
    assert html.count("<table>") == 2
    assert '<img alt="Plots of word_count: committed transactions over time' in html
    assert "98,765" not in html
    assert "98765" not in html


def test_names_are_escaped_and_are_no_formulas(tmp_path):
    report = run_of(HOSTILE).report(HOSTILE)
    page = report.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert ElementTree.fromstring(page.removeprefix("<!doctype html>\n")).findtext("head/title") == HOSTILE


@pytest.mark.parametrize(("name", "first"), [("r.png", b"\x89PNG"), ("r.svg", b"<?xml"), ("r.pdf", b"%PDF")])
def test_plots_are_saved_in_the_form_that_the_suffix_names(tmp_path, name, first):
    assert run_of().report().save(tmp_path / name).read_bytes().startswith(first)


def test_equal_runs_give_equal_pictures(tmp_path):
    first, second = (run_of().report().save(tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in none of \.html, \.png, \.svg, \.pdf; give one of these"):
        run_of().report().save(tmp_path / "report.txt")


def test_without_matplotlib_the_tables_are_there_and_plots_say_what_to_install(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = run_of().report()
    html = report._repr_html_()
    assert html.count("<table>") == 2
    assert "pip install &#x27;txbatch[notebook]&#x27;" in html
    with pytest.raises(ModuleNotFoundError, match=r"run: pip install 'txbatch\[notebook\]'"):
        report.save(tmp_path / "report.png")


def test_a_report_does_not_change_with_the_run():
    run = run_of()
    report = run.report()
    run.component("store")
    run.moment(98_770.0, 4, 2)
    assert list(report.components) == ["count"]
    assert len(report.history.moments.points()) == 2


def test_a_plain_run_and_a_run_that_has_done_nothing_have_reports_too():
    plain = PlainStatistics(emitted=3, acked=2, failed=1)
    plain.wave_started(5.0)
    plain.wave_ended(6.0, 1.0, 3)
    plain.moment(6.0, plain.acked, plain.failed)
    assert "acked messages over time" in plain.report()._repr_html_()
    assert "<img" in RunStatistics().report()._repr_html_()
