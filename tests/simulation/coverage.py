"""What many simulations together have hit, and what none of them has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.fault_rates import RATES
from tests.simulation.scenario import Outcome

_OWNED = "OK CONFLICT FENCED DROPPED REGRESSED VERSION"
REPLIES: dict[str, tuple[str, ...]] = {
    "acquire": ("OK", "RACED", "DROPPING", "SOURCE_CHANGED", "TOPOLOGY_CHANGED", "TORN", "VERSION"),
    "metadata": tuple(f"{_OWNED} ALREADY TORN".split()),
    "commit": tuple(f"{_OWNED} ALREADY TORN TYPE LIMIT".split()),
    "confirm": tuple(_OWNED.replace(" CONFLICT", "").split()),
    "last_group": tuple(_OWNED.split()),
    "drop_begin": ("OK", "RACED", "GONE"),
    "drop_keys": ("OK", "FENCED"),
    "drop_end": ("OK", "ALREADY", "FENCED"),
    "look": ("answered",),
    "lacking": ("answered",),
    "read": ("answered",),
}
"""Function -> the statuses that can occur.

These cannot: ORDER, because the revision is compared first and vouches for it. REGRESSED of `acquire`, because a server
holds a prefix of its history, and in none of them a part of txbatch's keys is missing. CONFLICT of `confirm`, because a
run confirms after its last write. TORN of `confirm` and `last_group` are rare: they take half a write that is applied
between two calls. TYPE of txbatch's own keys and malformed arguments are left to the functions' tests.
The barrier, dead letters and the quarantine have simulations and tests of their own.
"""


@dataclass(slots=True)
class Coverage:
    """Sums over outcomes.

    Attributes:
        played, failed: how many scenarios.
        struck: fault -> how often it has struck.
        ends: how drivers have ended -> how many.
        replies: (function, status) -> how often it was answered.
    """

    played: int = 0
    failed: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    replies: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Takes in one outcome."""
        self.played += 1
        self.failed += bool(outcome.violation)
        self.struck.update(strike.fault for strike in outcome.struck)
        self.ends += outcome.ends
        self.replies += outcome.replies

    def never(self) -> list[str]:
        """What was never hit, by name."""
        faults = [fault for fault in RATES if not self.struck[fault]]
        answers = [
            f"{name} {status}"
            for name, statuses in REPLIES.items()
            for status in statuses
            if not self.replies[name, status]
        ]
        return faults + answers

    def lines(self) -> Iterator[str]:
        """A table for people."""
        yield f"{'fault':36} struck"
        yield from (f"{fault:36} {self.struck[fault]:,}" for fault in RATES)
        yield f"\n{'answer':36} times"
        yield from (f"{' '.join(answer):36} {count:,}" for answer, count in sorted(self.replies.items()))
        yield f"\n{'end of a run':36} times"
        yield from (f"{end:36} {count:,}" for end, count in sorted(self.ends.items()))
        never = self.never()
        yield f"\nnever hit: {', '.join(never) if never else 'nothing is missing'}"

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "played": self.played,
            "failed": self.failed,
            "faults": {fault: self.struck[fault] for fault in RATES},
            "answers": {" ".join(answer): count for answer, count in sorted(self.replies.items())},
            "ends": dict(sorted(self.ends.items())),
            "never_hit": self.never(),
        }
