"""What was done and what came of it, as figures that add up over many calls of the command."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

RECOVERIES_KEPT = 5000


@dataclass
class Record:
    """Figures of one or many calls.

    Attributes:
        strikes: what struck -> how often.
        points: fault point -> how many drivers were killed there.
        endings: how drivers have ended -> how many.
        recoveries: kind -> seconds from a restart to its first commit.
        totals: reads, rounds, transactions and so on -> how many.
        complaints: kind of complaint -> how many.
        sentences: the first complaints in full.
        calls: the command lines and what each took.
    """

    strikes: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    complaints: Counter[str] = field(default_factory=Counter)
    sentences: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)

    def recovered(self, kind: str, seconds: float) -> None:
        """Notes one recovery."""
        self.recoveries.setdefault(kind, []).append(round(seconds, 3))

    def add(self, other: Record) -> None:
        """Adds the figures of another record."""
        for name in ("strikes", "points", "endings", "totals", "complaints"):
            getattr(self, name).update(getattr(other, name))
        for kind, found in other.recoveries.items():
            self.recoveries[kind] = [*self.recoveries.get(kind, []), *found][-RECOVERIES_KEPT:]
        self.sentences = [*self.sentences, *other.sentences][:50]
        self.calls += other.calls

    @property
    def kills(self) -> int:
        """How many processes were killed by -9."""
        return sum(count for name, count in self.strikes.items() if name.startswith("kill -9"))

    def to_json(self) -> str:
        """As a file keeps it."""
        return json.dumps(self.__dict__, indent=1, sort_keys=True)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Reads what `to_json` wrote; empty if there is no file."""
        record = cls()
        if path.exists():
            for name, value in json.loads(path.read_text(encoding="utf-8")).items():
                setattr(record, name, Counter(value) if isinstance(getattr(record, name), Counter) else value)
        return record

    def to_table(self) -> str:
        """The figures as Markdown."""
        lines = ["| what | how often |", "|---|---:|"]
        lines += [f"| {name} | {count:,} |" for name, count in sorted(self.strikes.items())]
        lines += [f"| **kill -9 in all** | **{self.kills:,}** |"]
        lines += [f"| {name} | {count:,} |" for name, count in sorted(self.totals.items())]
        for kind in (
            "lost or doubled",
            "out of order",
            "torn",
            "not linearizable",
            "went back",
            "receipts",
            "ending",
            "stuck",
            "left behind",
        ):
            lines.append(f"| found: {kind} | {self.complaints[kind]:,} |")
        lines += ["", "| recovery, from the start of | times | median | worst |", "|---|---:|---:|---:|"]
        for kind, found in sorted(self.recoveries.items()):
            lines.append(f"| {kind} | {len(found):,} | {statistics.median(found):.2f} s | {max(found):.2f} s |")
        lines += ["", "| killed at the fault point | drivers |", "|---|---:|"]
        lines += [f"| `{name}` | {count:,} |" for name, count in sorted(self.points.items())]
        lines += ["", "| a driver ended | times |", "|---|---:|"]
        lines += [f"| {name} | {count:,} |" for name, count in sorted(self.endings.items())]
        return "\n".join(lines)
