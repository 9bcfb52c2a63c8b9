"""Numbers, states and times in words, as all pages show them; times are in the zone of the serving machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Any

from coordinator.watching.durations import duration
from state.printable import one_line
from state.records.run_pulse import RunPulse, RunState, Standing

UNKNOWN = "—"
NAME_LIMIT, REASON_LIMIT, VALUE_LIMIT = 80, 400, 2_000


class Tone(StrEnum):
    """The meaning of a state for a reader; a CSS class."""

    GOOD = "good"
    CALM = "calm"
    WAITS = "waits"
    BAD = "bad"
    DIM = "dim"


_TONES = {
    RunState.STARTING: Tone.WAITS,
    RunState.RUNNING: Tone.GOOD,
    RunState.DRAINING: Tone.WAITS,
    RunState.WAITING: Tone.WAITS,
    RunState.WITHOUT_EXECUTORS: Tone.WAITS,
    RunState.DONE: Tone.CALM,
    RunState.STOPPED: Tone.CALM,
    RunState.FAILED: Tone.BAD,
}


def state_of_run(pulse: RunPulse | None, standing: Standing) -> tuple[str, Tone]:
    """Returns the state of a topology's run, and its tone."""
    if standing is Standing.SILENT:
        return "silent", Tone.BAD
    if pulse is not None:
        return str(pulse.now.state), _TONES[pulse.now.state]
    return ("running", Tone.GOOD) if standing is Standing.RUNNING else ("not reported", Tone.DIM)


def name(text: str) -> str:
    """Returns a name from outside as one safe line."""
    return one_line(text, NAME_LIMIT)


def reason(text: str) -> str:
    """Returns the text of an error as one safe line."""
    return one_line(text, REASON_LIMIT)


def line(text: str) -> str:
    """Returns text from a user's code or a source as one safe line."""
    return one_line(text, VALUE_LIMIT)


def sentence(text: str) -> str:
    """Returns a remark of the command line as a sentence, "" for none; commands in it lose their backticks."""
    return f"{text[0].upper()}{text[1:]}.".replace("`", "") if text else ""


def value(shown: Any, limit: int = VALUE_LIMIT) -> str:
    """Returns a value from a user's code or a source as one safe line."""
    return one_line(repr(shown), limit)


def count(number: float) -> str:
    return f"{number:,.0f}"


def rate(per_s: float) -> str:
    """Returns a rate with about three digits: 0, 0.25, 12.5, 340, 12.3 k, 1.20 M."""
    if per_s >= 1e6:
        return f"{per_s / 1e6:.2f} M"
    if per_s >= 1e4:
        return f"{per_s / 1e3:.1f} k"
    if per_s >= 100:
        return f"{per_s:,.0f}"
    return f"{per_s:.1f}" if per_s >= 1 or not per_s else f"{per_s:.2f}"


def short(number: float) -> str:
    """Returns a value for the side of a chart: 0, 0.5, 12, 2.5 k, 10 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


def size(byte_count: int) -> str:
    """Returns a number of bytes: 900 B, 21.8 kB, 1.3 MB."""
    if byte_count >= 1_000_000:
        return f"{byte_count / 1e6:,.1f} MB"
    return f"{byte_count / 1e3:.1f} kB" if byte_count >= 1_000 else f"{byte_count} B"


def span(seconds: float) -> str:
    """Returns a duration for the side of a chart: 0 s, 5 ms, 1.5 s, 2 min."""
    if seconds >= 120:
        return f"{seconds / 60:g} min"
    return f"{seconds:g} s" if seconds >= 1 or not seconds else f"{1000 * seconds:g} ms"


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of one page, in seconds since the epoch, and the zone in which its times are shown."""

    now: float
    zone: tzinfo = UTC

    def shown(self, at: float) -> ShownTime:
        shown = datetime.fromtimestamp(at, self.zone)
        exact = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
        return ShownTime(shown.strftime("%Y-%m-%d %H:%M:%S"), exact.replace("+00:00", "Z"), self.since(at))

    def time_of_day(self, at: float) -> str:
        return datetime.fromtimestamp(at, self.zone).strftime("%H:%M:%S")

    def since(self, at: float) -> str:
        return f"{duration(self.now - at)} ago"

    @property
    def zone_name(self) -> str:
        """Name of the zone, or its offset from UTC."""
        return datetime.fromtimestamp(self.now, self.zone).tzname() or "UTC"


@dataclass(frozen=True, slots=True)
class ShownTime:
    """A time in words; `exact` is for machines."""

    text: str
    exact: str
    ago: str
