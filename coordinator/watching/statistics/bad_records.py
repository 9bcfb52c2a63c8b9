"""Counts of the records that a run has refused, and the commonest reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.streams.declared import DEAD_LETTER_STREAM
from coordinated_bolt.watching.metrics import REASON_COUNTER
from state.printable import counted, one_line

KINDS_KEPT = 50
RECORDS_MIN = 100
"""The fewest records for which a fraction of bad ones is meaningful."""


@dataclass(slots=True)
class BadRecords:
    """The bad records of some transactions; in all methods, `tuples` is the number that the spout emitted in these.

    Attributes:
        count: bad records.
        emitted: how many bad records were emitted, for a bolt that subscribes to them.
        reasons: kind of reason -> number of bad records, for the commonest kinds.
    """

    count: int = 0
    emitted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: AttemptResult) -> None:
        """Counts a transaction."""
        bad = 0
        for name, count in outcome.counters.items():
            if name.startswith(REASON_COUNTER):
                bad += count
                self.reasons[name.removeprefix(REASON_COUNTER)] += count
        if bad:
            self.count += bad
            self.emitted += min(bad, sum(work.emitted.get(DEAD_LETTER_STREAM, 0) for work in outcome.metrics.values()))
            if len(self.reasons) > 2 * KINDS_KEPT:
                self.reasons = Counter(dict(self.reasons.most_common(KINDS_KEPT)))

    def of(self, tuples: int) -> int:
        """Returns the number of records, good and bad."""
        return tuples + self.count - self.emitted

    def how_many_within(self, fraction: float, tuples: int, outcomes: Collection[AttemptResult]) -> tuple[int, str]:
        """Returns how many more transactions may be added before too many records are bad, with a sentence on these."""
        bad = replace(self, reasons=self.reasons.copy())
        for place, outcome in enumerate(outcomes):
            bad.add(outcome)
            tuples += outcome.tuple_count
            if bad.exceeds(fraction, tuples):
                return place, bad.in_words(tuples)
        return len(outcomes), ""

    def exceeds(self, fraction: float, tuples: int) -> bool:
        """Returns whether the bad records exceed a fraction; False while there are only a few records."""
        return self.of(tuples) >= RECORDS_MIN and self.count > fraction * self.of(tuples)

    def to_dict(self, tuples: int) -> dict[str, Any]:
        return {"count": self.count, "of": self.of(tuples), "reasons": dict(self.reasons.most_common())}

    def in_words(self, tuples: int) -> str:
        """Returns a sentence with the counts and the commonest reason."""
        were = "was" if self.count == 1 else "were"
        text = f"{self.count:,} of {counted(self.of(tuples), 'record')} {were} bad"
        if self.reasons:
            ((reason, count),) = self.reasons.most_common(1)
            text += f", {count:,} of them because {one_line(reason)}"
        return text
