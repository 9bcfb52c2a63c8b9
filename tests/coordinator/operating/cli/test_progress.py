"""Figures and lines while a run lasts, on a clock of our own."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from coordinator.operating.cli.figures import PlainFigures, TransactionalFigures, plain_summary_line, summary_line
from coordinator.operating.cli.progress import LiveProgress, SentenceProgress, fitted, line_writer
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import UserCodeError
from tests.support.cli.in_process import HandClock
from tests.support.runs.answers import USER, failing_at
from tests.support.runs.scripted import Run
from tests.support.topologies.components import LinesCoordinator


def lines(stream: io.StringIO, clock: HandClock, figures: Any) -> SentenceProgress[Any]:
    return SentenceProgress(line_writer("words", stream), clock, figures)


def test_rates_are_those_of_the_last_ten_seconds_and_leave_out_the_start() -> None:
    clock = HandClock()
    figures = TransactionalFigures(clock)
    statistics = RunStatistics(first_wave_s=130.0)
    clock.now_s = 134.0
    statistics.committed, statistics.tuples = 8, 800
    figures.update(statistics)
    assert figures.rates() == (2.0, 200.0)
    for second in range(135, 155):
        clock.now_s = float(second)
        statistics.committed += 5
        figures.update(statistics)
    assert figures.rates() == (5.0, 0.0)
    assert TransactionalFigures(HandClock()).rates() == (0.0, 0.0)


def test_the_lag_counts_from_the_last_commit_while_something_is_under_way() -> None:
    clock = HandClock()
    figures = TransactionalFigures(clock)
    statistics = RunStatistics()
    assert figures.lag_s() == 0.0
    statistics.first_wave_s, statistics.active = 90.0, 4
    figures.update(statistics)
    assert figures.lag_s() == 10.0
    statistics.last_result_s = 97.0
    assert figures.lag_s() == 3.0
    statistics.active = 0
    assert figures.lag_s() == 0.0


def test_a_line_has_all_figures() -> None:
    clock = HandClock()
    figures = TransactionalFigures(clock)
    figures.update(
        RunStatistics(
            last_txid=1_250,
            committed=1_000,
            tuples=90_000,
            first_wave_s=90.0,
            last_result_s=99.5,
            active=3,
            cut_txid=1_253,
            fraction=0.25,
        )
    )
    assert figures.line() == (
        "txid 1,250 · 1,000 committed · 100.0 transactions/s · 9,000 tuples/s · commit lag 0.5 s · 3 in flight · "
        "25% of the input committed"
    )
    assert figures.parts() == ["25%", "1,000 committed", "100.0/s", "lag 0.5 s", "3 in flight", "9,000 tuples/s"]


class Sized(LinesCoordinator):
    """Knows how much of its input it has cut: that of the last transaction it cut, as sources of files do."""

    def progress(self):
        return self.last / self.count


def test_a_run_that_failed_shows_what_is_committed_and_not_what_was_cut() -> None:
    run, figures = Run(source=Sized(1_000), max_spout_pending=64), TransactionalFigures(HandClock())
    run.on_progress = figures.update
    run.engine.on_wave = failing_at(run, 17, kind=USER)
    with pytest.raises(UserCodeError):
        run()
    assert (figures.statistics.last_txid, figures.statistics.active) == (16, 0)
    assert "2% of the input committed" in figures.line()


def test_before_the_first_commit_a_line_says_what_is_in_flight_and_after_a_failed_wave_nothing_of_it() -> None:
    clock = HandClock()
    figures = TransactionalFigures(clock)
    figures.update(RunStatistics(last_txid=250, attempts=12, active=12, first_wave_s=97.5, fraction=0.25))
    assert figures.line() == "txid 250 · first wave: 12 in flight for 2.5 s"
    assert figures.parts() == ["12 in flight"]
    figures = TransactionalFigures(HandClock())
    figures.update(RunStatistics(last_txid=250, attempts=12, active=0, first_wave_s=97.5, fraction=0.25))
    assert figures.line() == "txid 250 · nothing committed yet, nothing in flight"


def test_a_finite_input_has_a_time_left_and_a_continuous_one_has_none() -> None:
    clock = HandClock()
    finite, continuous = TransactionalFigures(clock), TransactionalFigures(clock)
    for txid in range(1, 9):
        clock.now_s += 2.0
        statistics = RunStatistics(
            last_txid=txid, committed=txid, active=4, first_wave_s=100.0, last_result_s=clock.now_s
        )
        continuous.update(statistics)
        finite.update(replace(statistics, cut_txid=txid + 4, fraction=(txid + 4) / 100))
    assert finite.line().endswith("4 in flight · 8% of the input committed · about 3:04 left")
    assert finite.parts()[:3] == ["8%", "3:04 left", "8 committed"]
    assert continuous.line().endswith("4 in flight")
    assert continuous.parts()[:4] == ["8 committed", "0.5/s", "lag 0.0 s", "4 in flight"]


def test_a_narrow_terminal_shows_the_first_figures() -> None:
    parts = ["25%", "1,000 committed", "lag 0.5 s"]
    assert fitted(parts, 100) == "25% · 1,000 committed · lag 0.5 s"
    assert fitted(parts, 25) == "25% · 1,000 committed"
    assert fitted(parts, 20) == "25%"
    assert fitted(parts, 1) == "25%"


def test_without_a_terminal_there_is_a_line_every_five_seconds() -> None:
    clock, stream = HandClock(), io.StringIO()
    with lines(stream, clock, TransactionalFigures(clock)) as progress:
        progress.begun()
        for _ in range(12):
            clock.now_s += 1.0
            progress.update(RunStatistics(attempts=1, committed=1, first_wave_s=100.0))
    kinds = [line.split(": ")[1].split(" ")[0] for line in stream.getvalue().splitlines()]
    assert kinds == ["starting", "running", "txid", "txid", "1"]


@pytest.mark.parametrize(
    ("figures", "statistics", "said"),
    [
        (TransactionalFigures, RunStatistics(attempts=8), []),
        (TransactionalFigures, RunStatistics(attempts=8, committed=3, last_txid=3), ["3 transactions committed"]),
        (PlainFigures, PlainStatistics(waves=1, emitted=5), []),
        (PlainFigures, PlainStatistics(waves=1, emitted=5, acked=3), ["5 tuples emitted in 0.0 s, 3 acked"]),
    ],
    ids=["nothing committed", "committed", "nothing acked", "acked"],
)
def test_a_run_that_failed_tells_what_it_has_done_if_anything(figures: Any, statistics: Any, said: list[str]) -> None:
    stream = io.StringIO()
    progress = lines(stream, HandClock(), figures(HandClock()))
    progress.update(statistics)
    with pytest.raises(ValueError, match="no"), progress:
        raise ValueError("no")
    assert stream.getvalue().count("\n") == 1 + len(said)
    assert all(part in stream.getvalue() for part in said)


def test_every_step_of_the_start_is_a_line() -> None:
    stream = io.StringIO()
    with lines(stream, HandClock(), TransactionalFigures(HandClock())) as progress:
        for step in ("starting the private server in 'd'", "starting Spark with master local[2]"):
            progress.starting(step)
    assert stream.getvalue().splitlines()[1:3] == [
        "words: starting the private server in 'd'",
        "words: starting Spark with master local[2]",
    ]


@pytest.mark.parametrize("leaves_line", [True, False])
def test_a_terminal_shows_a_bar_and_perhaps_a_last_line(leaves_line: bool) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=200, color_system=None)
    with LiveProgress("[red]words", console, TransactionalFigures(HandClock()), leaves_line=leaves_line) as progress:
        progress.begun()
        progress.update(
            RunStatistics(attempts=1, last_txid=1, committed=1, first_wave_s=90.0, cut_txid=1, fraction=0.5)
        )
        progress.say("finishing")
    shown = stream.getvalue()
    assert "[red]words: starting" in shown
    assert "[red]words: finishing" in shown
    assert "50% · 1 committed · " in shown
    assert shown.endswith("up to txid 1; 0 of 1 attempt failed\n") is leaves_line


ONE: dict[str, Any] = {"waves": 1, "first_wave_s": 0.0, "last_result_s": 2.0}


@pytest.mark.parametrize(
    ("statistics", "line"),
    [
        (RunStatistics(), "nothing to do: the input has no transactions"),
        (RunStatistics(is_interrupted=True), "no transaction was started"),
        (RunStatistics(last_txid=1_200), "nothing new: already committed up to txid 1,200"),
        (
            RunStatistics(last_txid=1, committed=1, attempts=1, **ONE),
            "1 transaction committed in 2.0 s, up to txid 1; 0 of 1 attempt failed",
        ),
        (PlainStatistics(emitted=1, acked=1, **ONE), "1 tuple emitted in 2.0 s, 1 acked, 0 failed, 1 wave"),
    ],
    ids=["empty input", "stopped before it began", "no new input", "one transaction", "one tuple"],
)
def test_a_summary_says_what_was_done_and_why_nothing_was(statistics: Any, line: str) -> None:
    summary = plain_summary_line if isinstance(statistics, PlainStatistics) else summary_line
    assert summary(statistics) == line


def test_a_plain_run_without_acks_does_not_stay_in_its_first_wave() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    with LiveProgress("words", console, PlainFigures(HandClock()), leaves_line=False) as progress:
        progress.begun()
        progress.update(PlainStatistics(waves=1, emitted=5, first_wave_s=90.0))
    shown = stream.getvalue().split("running the first wave")[-1]
    assert "⠋ words 5 emitted · " in " ".join(shown.split())


def test_attempts_that_are_only_repeated_with_a_failed_one_are_not_counted_as_failures() -> None:
    ended = RunStatistics(last_txid=7, committed=7, attempts=23, first_wave_s=0.0, last_result_s=2.0)
    ended.failed_attempts, ended.failures = 16, Counter(bad_record=1, lower_failed=15)
    assert summary_line(ended).endswith("up to txid 7; 1 of 23 attempts failed; 15 above it repeated with it")
    ended.failed_attempts, ended.failures = 17, Counter(bad_record=1, lower_failed=15, timeout=1)
    assert summary_line(ended).endswith("; 2 of 23 attempts failed; 15 above them repeated with them")


def test_rates_of_a_plain_run_are_those_of_the_last_ten_seconds_too() -> None:
    clock = HandClock()
    figures = PlainFigures(clock)
    assert figures.rate() == 0.0
    statistics = PlainStatistics(waves=1, first_wave_s=130.0)
    clock.now_s = 134.0
    statistics.emitted, statistics.acked = 800, 700
    figures.update(statistics)
    assert figures.line() == "800 emitted · 200 tuples/s · 700 acked · 0 failed"
    for second in range(135, 155):
        clock.now_s = float(second)
        statistics.emitted += 50
        figures.update(statistics)
    assert figures.rate() == 50.0
