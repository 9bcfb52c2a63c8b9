"""The charts of a topology: its last minutes, from the samples of the pulse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from coordinator.operating.ui.charts.svg import Svg
from coordinator.operating.ui.charts.time_chart import Layer, line_chart, stacked_chart
from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.words import Clock
from coordinator.watching.durations import brief
from state.records.run_pulse import PulseSample, RunFigures, Spread

WINDOW_STATES = ("processing", "processed", "committing")
"""States of attempts that samples have; the pulse's window also has those that are only waiting."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its heading.

    Attributes:
        name: what it shows.
        now: the last value.
        more: further figures, such as the spread.
        drawing: the chart.
        keys: (class, name) of its parts.
    """

    name: str
    now: str
    more: str
    drawing: Svg
    keys: tuple[tuple[str, str], ...] = ()


def charts_of(samples: Sequence[PulseSample], figures: RunFigures, clock: Clock) -> tuple[Chart, ...]:
    """Returns the charts of a run's last minutes."""

    def drawn(name: str, field: str, said: Callable[[float], str]) -> Svg:
        peak = brief if said is words.span else words.rate
        value = attrgetter(field)
        points = [(sample.at, float(value(sample))) for sample in samples]
        return line_chart(name, points, said=said, clock=clock.time_of_day, peak=peak)

    shown = [
        ("transactions/s", "transactions_per_s", words.short, words.rate(figures.transactions_per_s), ""),
        ("tuples/s", "tuples_per_s", words.short, words.rate(figures.tuples_per_s), ""),
        ("commit lag", "lag_s", words.span, f"{figures.lag_s:.1f} s", "since the last commit"),
        ("cut to commit", "latency_s", words.span, _median(figures.latency_s), _spread(figures.latency_s)),
        ("wave", "wave_s", words.span, _median(figures.wave_s), _spread(figures.wave_s)),
        ("commit call", "commit_s", words.span, _median(figures.commit_s), _spread(figures.commit_s)),
        ("committed", "last_txid", words.short, words.count(figures.last_txid), "last txid"),
    ]
    lines = [Chart(name, now, more, drawn(name, field, said)) for name, field, said, now, more in shown]
    return (*lines[:3], _window(samples, figures, clock), *lines[3:])


def _window(samples: Sequence[PulseSample], figures: RunFigures, clock: Clock) -> Chart:
    layers = [
        Layer(state, state, tuple((sample.at, float(getattr(sample, state))) for sample in samples))
        for state in WINDOW_STATES
    ]
    drawing = stacked_chart("attempts in work", layers, said=words.short, clock=clock.time_of_day)
    now = words.count(sum(figures.window.get(state, 0) for state in WINDOW_STATES))
    return Chart("in work", now, "attempts", drawing, tuple((state, state) for state in WINDOW_STATES))


def _median(spread: Spread) -> str:
    return brief(spread.p50) if spread.count else words.UNKNOWN


def _spread(spread: Spread) -> str:
    return f"95 %: {brief(spread.p95)}" if spread.count else ""
