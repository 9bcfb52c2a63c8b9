"""The first page, with the topologies of a server, and the heading of each topology's pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.words import UNKNOWN, Clock, ShownTime, Tone
from coordinator.watching.durations import duration
from state.records.run_pulse import Standing, standing_of
from state.records.topology_overview import ListedTopology, TopologyOverview


@dataclass(frozen=True, slots=True)
class TopologyRow:
    """A topology in the list; rates are per second, and an unreadable topology has no page."""

    name: str
    state: str
    tone: Tone
    note: str = ""
    committed: str = UNKNOWN
    lag: str = UNKNOWN
    transactions: str = UNKNOWN
    tuples: str = UNKNOWN
    fraction: float | None = None  # of the input that is cut
    where: str = ""
    since: ShownTime | None = None
    since_what: str = ""  # "began", "ended" or "last heard"
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class TopologiesView:
    """The list, by id; the summary counts running topologies and those in trouble."""

    rows: tuple[TopologyRow, ...]
    summary: str


def topologies_view(found: Sequence[ListedTopology], clock: Clock) -> TopologiesView:
    """Returns the list of topologies."""
    rows = tuple(_row(each, clock) for each in found)
    tones = [row.tone for row in rows]
    parts = [f"{len(rows):,} {'topology' if len(rows) == 1 else 'topologies'}"]
    for tone, meaning in ((Tone.GOOD, "running"), (Tone.BAD, "in trouble")):
        if tone in tones:
            parts.append(f"{tones.count(tone):,} {meaning}")
    return TopologiesView(rows, " · ".join(parts))


def _row(listed: ListedTopology, clock: Clock) -> TopologyRow:
    shown = words.name(listed.topology_id)
    if listed.fault:
        return TopologyRow(shown, "unreadable", Tone.BAD, words.reason(listed.fault), is_readable=False)
    committed = words.count(int(listed.committed)) if listed.committed.isdecimal() else UNKNOWN
    if listed.is_dropping:
        note = f"its drop was not finished: run txbatch drop {shown} again, unless a drop is running"
        return TopologyRow(shown, "being dropped", Tone.WAITS, note, committed)
    pulse = listed.pulse
    standing = standing_of(pulse, now=clock.now, connected=listed.connected)
    state, tone = words.state_of_run(pulse, standing)
    runs = standing is Standing.RUNNING
    if pulse is None:
        note = "it reports nothing about itself" if runs else "no run has reported anything"
        return TopologyRow(shown, state, tone, note, committed)
    figures = pulse.now
    note = words.reason(figures.error or figures.cluster)
    since_what, since = ("began", pulse.run.started_at) if runs else ("ended", figures.at)
    if standing is Standing.SILENT:
        note = f"for {duration(clock.now - pulse.seen_at)}: it was killed, or cannot reach this server"
        since_what, since = "last heard", pulse.seen_at
    if not note and figures.quarantined:
        note = f"{figures.quarantined:,} {'batch' if figures.quarantined == 1 else 'batches'} set aside"
    return TopologyRow(
        shown,
        state,
        tone,
        note,
        committed,
        lag=f"{figures.lag_s:.1f} s" if runs else UNKNOWN,
        transactions=words.rate(figures.transactions_per_s) if runs else UNKNOWN,
        tuples=words.rate(figures.tuples_per_s) if runs else UNKNOWN,
        fraction=figures.fraction,
        where=f"{words.name(pulse.run.host)}:{pulse.run.pid}",
        since=clock.shown(since),
        since_what=since_what,
    )


@dataclass(frozen=True, slots=True)
class Heading:
    """A topology's name, and the state of its run.

    Attributes:
        story: where it runs and since when, or how it ended.
        alarm: a problem that needs attention; "" if there is none.
        quarantined, dead_letters: their numbers, for the links.
    """

    topology_id: str
    state: str
    tone: Tone
    story: str
    alarm: str = ""
    quarantined: int = 0
    dead_letters: int = 0


def heading_of(seen: TopologyOverview, clock: Clock) -> Heading:
    """Returns the heading of a topology's pages."""
    state, tone = ("being dropped", Tone.WAITS) if seen.is_dropping else words.state_of_run(seen.pulse, seen.standing)
    shown = words.name(seen.topology_id)
    return Heading(
        shown, state, tone, _story(seen, clock), _alarm(seen, shown), seen.quarantined_count, seen.dead_letters
    )


def _story(seen: TopologyOverview, clock: Clock) -> str:
    pulse, standing = seen.pulse, seen.standing
    if pulse is None:
        return "connected" if standing is Standing.RUNNING else "no run is known"
    where = f"on {words.name(pulse.run.host)}, process {pulse.run.pid}"
    if standing is Standing.RUNNING:
        return f"{where}, for {duration(clock.now - pulse.run.started_at)}"
    if standing is Standing.SILENT:
        return f"for {duration(clock.now - pulse.seen_at)}, last {where}"
    return f"{clock.since(pulse.now.at)}, after {duration(pulse.now.at - pulse.run.started_at)}, {where}"


def _alarm(seen: TopologyOverview, shown: str) -> str:
    if seen.is_dropping:
        return f"A drop was begun and not finished: run txbatch drop {shown} again."
    if seen.standing is Standing.SILENT:
        return "The run was killed, or cannot reach this server. What it committed is safe; run it again to continue."
    return "" if seen.pulse is None else words.reason(seen.pulse.now.error or seen.pulse.now.cluster)
