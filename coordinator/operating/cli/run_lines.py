"""The reports of a topology's last run, in words: for `status`, `list` and `status --watch`."""

from __future__ import annotations

from datetime import datetime

from coordinator.operating.cli.figures import failed_line
from coordinator.watching.durations import brief, duration
from state.printable import SENTENCE_LIMIT, counted, one_line
from state.records.run_pulse import LastFailure, RunFigures, RunPulse, RunState, Spread, Standing
from state.records.transaction_story import LOWER_FAILED

UNKNOWN = "no run is known: none has reported, and none is connected"
CONNECTED = "running, and reports nothing about itself: it has just begun, or was started with --no-pulse"


def moment(at: float) -> str:
    """Returns a time with date and offset, in the reader's zone, as in log records."""
    return datetime.fromtimestamp(at).astimezone().isoformat(" ", timespec="seconds")


def run_line(pulse: RunPulse | None, standing: Standing, now: float) -> str:
    if pulse is None:
        return CONNECTED if standing is Standing.RUNNING else UNKNOWN
    run, figures = pulse.run, pulse.now
    where = f"on {one_line(run.host)}, pid {run.pid}, as {one_line(run.user)}"
    if standing is Standing.SILENT and pulse.is_gone:
        return (
            f"killed: its process is gone, and it did not say that it ended; it was last {figures.state}, {where}, "
            f"heard of {duration(now - pulse.seen_at)} ago, started {moment(run.started_at)}"
        )
    if standing is Standing.SILENT:
        return (
            f"silent for {duration(now - pulse.seen_at)}: it was killed, or cannot reach this server; it was last "
            f"{figures.state}, {where}, started {moment(run.started_at)}"
        )
    if standing is Standing.ENDED:
        took = duration(figures.at - run.started_at)
        error = f": {one_line(figures.error)}" if figures.error else ""
        return f"{figures.state} {duration(now - figures.at)} ago, after {took}, {where}{error}"
    since = f"since {moment(run.started_at)} ({duration(now - run.started_at)})"
    return f"{figures.state} {where}, {since}"


def run_details(pulse: RunPulse, now: float) -> list[tuple[str, str]]:
    """Returns (name, text) of each figure that the run has reported, for lines below `run_line`."""
    run, figures = pulse.run, pulse.now
    versions = ", ".join(f"{name} {one_line(number)}" for name, number in sorted(run.versions.items()))
    lines = [("run with", f"master {one_line(run.master)}, durability {run.durability}, {versions}")]
    lines.append(("this run", f"{counted(figures.committed, 'transaction')} committed, {_attempts(figures)}"))
    if not figures.state.has_ended:
        if figures.cluster:
            lines.append(("cluster", one_line(figures.cluster, SENTENCE_LIMIT)))
        lines.append(("rates", _rates(figures)))
        lines.append(("in flight", window_line(figures)))
    if figures.latency_s.count:
        lines.append(("times", times_line(figures)))
    if figures.last_failure is not None:
        failure = figures.last_failure
        lines.append(
            (
                "last failure",
                f"{txids_of(failure)}, {failure.kind}, {duration(now - failure.at)} ago: {one_line(failure.reason)}",
            )
        )
    if figures.server_away_count:
        times = "once" if figures.server_away_count == 1 else f"{figures.server_away_count:,} times"
        lines.append(("server away", f"{times}, for {figures.server_away_s:.1f} s in all"))
    return lines


def txids_of(failure: LastFailure) -> str:
    if failure.last_txid > failure.txid:
        return f"one of txids {failure.txid:,} to {failure.last_txid:,}"
    return f"txid {failure.txid:,}"


def watch_line(pulse: RunPulse | None, standing: Standing, committed_txid: int, now: float) -> str:
    """Returns the current figures in one line, for a watch that is not on a terminal."""
    if pulse is None or standing is not Standing.RUNNING or pulse.now.state is RunState.STARTING:
        return f"txid {committed_txid:,} · {run_line(pulse, standing, now)}"
    figures = pulse.now
    parts = [figures.cluster or f"{figures.state}", f"txid {committed_txid:,}", _rates(figures), window_line(figures)]
    if figures.failed_attempts:
        parts.append(f"{figures.failed_attempts:,} failed")
    return " · ".join(parts)


def window_line(figures: RunFigures) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in figures.window.items()) or "nothing"


def times_line(figures: RunFigures) -> str:
    return ", ".join(
        f"{name} {_spread(spread)}"
        for name, spread in (
            ("cut to commit", figures.latency_s),
            ("wave", figures.wave_s),
            ("commit call", figures.commit_s),
        )
        if spread.count
    )


def _spread(spread: Spread) -> str:
    return f"{brief(spread.p50)} (95 %: {brief(spread.p95)})"


def _rates(figures: RunFigures) -> str:
    parts = [f"{figures.transactions_per_s:,.1f} transactions/s, {figures.tuples_per_s:,.0f} tuples/s"]
    parts.append(f"commit lag {figures.lag_s:.1f} s")
    if figures.fraction is not None:
        parts.append(f"{figures.fraction:.0%} of the input cut")
    return ", ".join(parts)


def _attempts(figures: RunFigures) -> str:
    failed = sum(figures.failures.values())
    if not failed:
        return f"no attempt of {figures.attempts:,} failed"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in figures.failures.items() if kind != LOWER_FAILED)
    return failed_line(figures.attempts, failed, figures.failures.get(LOWER_FAILED, 0), f": {kinds}")
