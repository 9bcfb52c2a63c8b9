"""Shows moments in the zone of the machine that serves the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from coordinator.reports.durations import duration


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of one page.

    Attributes:
        now: seconds since the epoch.
        zone: in which moments are shown.
    """

    now: float
    zone: tzinfo = UTC

    def moment(self, at: float) -> Moment:
        """Returns a moment as templates show it."""
        shown = datetime.fromtimestamp(at, self.zone)
        exact = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
        return Moment(shown.strftime("%Y-%m-%d %H:%M:%S"), exact.replace("+00:00", "Z"), self.since(at))

    def time_of_day(self, at: float) -> str:
        """Returns hours, minutes and seconds."""
        return datetime.fromtimestamp(at, self.zone).strftime("%H:%M:%S")

    def since(self, at: float) -> str:
        """Returns how long ago a moment was."""
        return f"{duration(self.now - at)} ago"

    @property
    def zone_name(self) -> str:
        """Name of the zone, or how far it is from UTC."""
        return datetime.fromtimestamp(self.now, self.zone).tzname() or "UTC"


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in words.

    Attributes:
        text: date and time of day.
        exact: for machines.
        ago: how long ago it was.
    """

    text: str
    exact: str
    ago: str
