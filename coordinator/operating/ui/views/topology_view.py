"""The page of one topology: its run, flow, attempts in flight, durations and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.operating.ui.svg_charts import Svg, share_bar, split_bar
from coordinator.operating.ui.time_chart import Layer, line_chart, stacked_chart
from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.component_rows import ComponentRow, FlowRate, component_rows, graph_of
from coordinator.operating.ui.views.topologies_view import Heading, heading_of
from coordinator.operating.ui.views.words import Clock
from coordinator.watching.durations import brief, duration
from state.records.durability import confirmed_line
from state.records.run_pulse import PulseSample, RunFigures, RunPulse, Spread, Standing
from state.records.topology_overview import TopologyOverview
from state.records.transaction_story import LOWER_FAILED

WINDOW_STATES = ("processing", "processed", "committing")
"""States of attempts in samples; the pulse's window also has waiting attempts."""
WINDOW_ORDER = ("waiting", *WINDOW_STATES)


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """The number of attempts that failed for one reason, named as by `txbatch inspect`; the bar compares numbers."""

    kind: str
    count: str
    bar: Svg


@dataclass(frozen=True, slots=True)
class LastFailureView:
    txid: int
    kind: str
    reason: str
    ago: str


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    now: str
    more: str
    drawing: Svg
    keys: tuple[str, ...] = ()  # names of its parts


@dataclass(frozen=True, slots=True)
class TopologyView:
    """One topology.

    Attributes:
        graph: the graph as text; None if the description cannot be read.
        window: (state, number of attempts in flight).
        charts: charts of the last minutes; `charts_span` is the time they cover.
        components: rows of the components, the slowest first.
        failures: rows of the failures, the most frequent first.
        run, stored: (name, text) of figures about the run and about stored records.
        why_unreported: why there are no figures; "" if there are.
    """

    heading: Heading
    figures: tuple[Figure, ...]
    graph: str | None
    window: tuple[tuple[str, str], ...] = ()
    window_bar: Svg | None = None
    charts: tuple[Chart, ...] = ()
    charts_span: str = ""
    components: tuple[ComponentRow, ...] = ()
    failures: tuple[FailureRow, ...] = ()
    last_failure: LastFailureView | None = None
    run: tuple[tuple[str, str], ...] = ()
    stored: tuple[tuple[str, str], ...] = ()
    why_unreported: str = ""


def topology_view(seen: TopologyOverview, rates: Mapping[str, FlowRate], clock: Clock) -> TopologyView:
    """Returns the page of a topology; `rates` is empty at the first look."""
    heading, pulse = heading_of(seen, clock), seen.pulse
    if pulse is None:
        graph = graph_of(seen.topology_id, seen.topology, {}, {})
        return TopologyView(heading, _figures(seen), graph, stored=_stored(seen), why_unreported=_untold(seen))
    figures, rates = pulse.now, rates if seen.standing is Standing.RUNNING else {}
    window = _window(figures)
    return TopologyView(
        heading,
        _figures(seen),
        graph_of(seen.topology_id, seen.topology, figures.components, rates),
        window=tuple((state, words.count(number)) for state, number in window),
        window_bar=split_bar(window),
        charts=_charts(pulse.samples, figures, clock),
        charts_span=_covered(pulse, clock),
        components=component_rows(figures.components, rates),
        failures=_failures(figures),
        last_failure=_last_failure(figures, clock),
        run=_run(pulse, clock),
        stored=_stored(seen),
    )


def _figures(seen: TopologyOverview) -> tuple[Figure, ...]:
    committed = words.count(seen.committed_txid)
    shown = [Figure("committed", committed, "last txid")]
    if seen.pulse is None:
        return tuple(shown)
    now = seen.pulse.now
    if seen.standing is Standing.RUNNING:
        shown.append(Figure("transactions/s", words.rate(now.transactions_per_s), "last 10 s"))
        shown.append(Figure("tuples/s", words.rate(now.tuples_per_s), "last 10 s"))
        shown.append(Figure("commit lag", f"{now.lag_s:.1f} s", "since the last commit"))
    else:
        took = max(0.0, now.at - seen.pulse.run.started_at)
        shown.append(Figure("this run", words.count(now.committed), f"transactions in {duration(took)}"))
        shown.append(Figure("tuples", words.rate(now.tuples), "by the spout"))
    if now.fraction is not None:
        shown.append(Figure("input cut", f"{now.fraction:.0%}"))
    void = now.failures.get(LOWER_FAILED, 0)
    with_them = f", and {words.count(void)} with them" if void else ""
    failed = words.count(sum(now.failures.values()) - void)
    shown.append(Figure("attempts failed", failed, f"of {words.count(now.attempts)}{with_them}"))
    return tuple(shown)


def _window(figures: RunFigures) -> list[tuple[str, int]]:
    """Returns the states in the order of an attempt's life; states that this version does not know come last."""
    known = [(state, figures.window.get(state, 0)) for state in WINDOW_ORDER]
    return known + [(words.name(state), count) for state, count in figures.window.items() if state not in WINDOW_ORDER]


def _covered(pulse: RunPulse, clock: Clock) -> str:
    if not pulse.samples:
        return ""
    begin, end = pulse.samples[0].at, pulse.samples[-1].at
    earlier = ", earlier runs included" if begin < pulse.run.started_at else ""
    return f"{clock.time_of_day(begin)} to {clock.time_of_day(end)}{earlier}"


def _failures(figures: RunFigures) -> tuple[FailureRow, ...]:
    ordered = sorted(figures.failures.items(), key=lambda item: (-item[1], item[0]))
    most = max(figures.failures.values(), default=0) or 1
    return tuple(FailureRow(words.name(kind), words.count(n), share_bar(n / most)) for kind, n in ordered)


def _last_failure(figures: RunFigures, clock: Clock) -> LastFailureView | None:
    last = figures.last_failure
    if last is None:
        return None
    return LastFailureView(last.txid, words.name(last.kind), words.reason(last.reason), clock.since(last.at))


def _run(pulse: RunPulse, clock: Clock) -> tuple[tuple[str, str], ...]:
    run, now = pulse.run, pulse.now
    versions = ", ".join(f"{words.name(part)} {words.name(number)}" for part, number in sorted(run.versions.items()))
    shown = [
        ("host", words.name(run.host)),
        ("process", f"{run.pid}, user {words.name(run.user)}"),
        ("began", f"{clock.shown(run.started_at).text}, {clock.since(run.started_at)}"),
        ("last heard", clock.since(pulse.seen_at)),
        ("Spark master", words.name(run.master)),
        ("versions", versions),
        ("waits for", f"durability {words.name(run.durability)}"),
        ("this run", f"{now.committed:,} transactions, {now.waves:,} waves, {now.commit_groups:,} commits"),
    ]
    if now.server_away_count:
        shown.append(("server away", f"{now.server_away_count:,} times, {now.server_away_s:.1f} s in all"))
    return tuple(shown)


def _stored(seen: TopologyOverview) -> tuple[tuple[str, str], ...]:
    shown = [("power cut", f"may take {words.reason(seen.gives.can_lose())}")]
    shown += [("confirmed", confirmed_line(level, txid)) for level, txid in seen.durable.items()]
    if seen.history_from is not None:
        shown.append(("history", f"from txid {seen.history_from:,}"))
    shown += [("source", words.reason(seen.source_fingerprint)), ("generation", words.name(seen.generation))]
    return tuple(shown)


def _untold(seen: TopologyOverview) -> str:
    if seen.standing is Standing.RUNNING:
        return (
            "A run is connected and reports nothing about itself: it has just begun, or was started with --no-pulse. "
            "What it is doing, how fast, and why attempts failed is not known here."
        )
    return (
        "No run has reported anything: the last one was started with --no-pulse, or by an older version. Who ran, how "
        "fast, and why attempts failed is not known; what is committed is."
    )


def _charts(samples: Sequence[PulseSample], figures: RunFigures, clock: Clock) -> tuple[Chart, ...]:
    """Returns the charts of a run's last minutes."""
    if not samples:
        return ()

    def line(name: str, field: str, said: Callable[[float], str], now: str, more: str) -> Chart:
        points = [(sample.at, float(getattr(sample, field))) for sample in samples]
        peak = brief if said is words.span else words.rate
        return Chart(name, now, more, line_chart(name, points, said=said, clock=clock.time_of_day, peak=peak))

    lines = [
        line("transactions/s", "transactions_per_s", words.short, words.rate(figures.transactions_per_s), ""),
        line("tuples/s", "tuples_per_s", words.short, words.rate(figures.tuples_per_s), ""),
        line("commit lag", "lag_s", words.span, f"{figures.lag_s:.1f} s", "since the last commit"),
        _window_chart(samples, figures, clock),
        line("cut to commit", "latency_s", words.span, *_spread(figures.latency_s)),
        line("wave", "wave_s", words.span, *_spread(figures.wave_s)),
        line("commit call", "commit_s", words.span, *_spread(figures.commit_s)),
        line("committed", "last_txid", words.short, words.count(figures.last_txid), "last txid"),
    ]
    return tuple(lines)


def _window_chart(samples: Sequence[PulseSample], figures: RunFigures, clock: Clock) -> Chart:
    layers = [
        Layer(state, tuple((sample.at, float(getattr(sample, state))) for sample in samples)) for state in WINDOW_STATES
    ]
    drawing = stacked_chart("attempts in work", layers, said=words.short, clock=clock.time_of_day)
    now = words.count(sum(figures.window.get(state, 0) for state in WINDOW_STATES))
    return Chart("in work", now, "attempts", drawing, WINDOW_STATES)


def _spread(spread: Spread) -> tuple[str, str]:
    """Returns the median, and the value that 95 % do not exceed."""
    return (brief(spread.p50), f"95 %: {brief(spread.p95)}") if spread.count else (words.UNKNOWN, "")
