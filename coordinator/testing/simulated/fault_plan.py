"""Which faults strike, and when: drawn from a seed, or exactly as listed.

Every fault has a name and strikes at its k-th opportunity, so that it stays the same in a replay from which other
faults have been removed. For the same reason its details (how many writes are lost, which frame is doubled) are drawn
from a separate random stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random

from state.fault_points import POINTS

TASK_POINTS = ("task.beginning", "batch.emitted", "batch.executed", "batch.finished", "frame.packed")
"""Points that tasks reach, on executors: a death there costs a task, not the driver."""
PLAIN_POINTS = (
    "offset.saving",
    "offset.saved",
    "plain_wave.submitting",
    "plain_wave.drained",
    "plain_message.notified",
)
IMPORT_POINTS = ("import.staged", "import.restored")  # tested elsewhere
FILE_POINTS = tuple(point for point in POINTS if point.startswith("done_file."))  # tested elsewhere
SHARD_POINTS = tuple(point for point in POINTS if point.startswith("shards."))  # tested elsewhere
_ELSEWHERE = (*TASK_POINTS, *PLAIN_POINTS, *IMPORT_POINTS, *FILE_POINTS, *SHARD_POINTS)
DRIVER_POINTS = tuple(point for point in POINTS if point not in _ELSEWHERE)
"""Points that a transactional run reaches in its driver, and a drop in its process."""


_NEVER = -1


@dataclass(frozen=True, slots=True, order=True)
class Strike:
    """One fault that has struck: its name, and its opportunity, counted from 0."""

    fault: str
    opportunity: int

    def __str__(self) -> str:
        return f"{self.fault}:{self.opportunity}"

    @classmethod
    def parse(cls, text: str) -> Strike:
        """Restores a strike from its `str`."""
        fault, _, opportunity = text.rpartition(":")
        return cls(fault, int(opportunity))


class FaultPlan:
    """Answers at each opportunity whether a fault strikes.

    Args:
        seed: seed of the simulation; the details of faults depend on it alone.
        rates: fault -> probability; faults without a rate never strike by chance.
        exactly: only these faults strike, and rates are ignored; None to use the rates.

    Attributes:
        opportunities: fault -> how often it could have struck.
        has_ended: whether no more faults strike.
        tell: called with each fault that strikes.
    """

    tell: Callable[[str], None] | None = None

    def __init__(self, seed: object, rates: Mapping[str, float], exactly: frozenset[Strike] | None = None) -> None:
        self._seed = seed
        self._rates, self._exactly = rates, exactly
        self._strikes: dict[str, Iterator[int]] = {}
        self._next: dict[str, int] = {}
        self.has_ended = False
        self.struck: list[Strike] = []
        self.opportunities: Counter[str] = Counter()

    def strikes(self, fault: str) -> bool:
        """Returns whether the fault strikes at this opportunity."""
        opportunity = self.opportunities[fault]
        self.opportunities[fault] = opportunity + 1
        due = self._next.get(fault)
        if due is None:
            due = self._begun(fault)
        if opportunity != due:
            return False
        self._next[fault] = next(self._strikes[fault], _NEVER)
        self.struck.append(Strike(fault, opportunity))
        if self.tell is not None:
            self.tell(fault)
        return True

    def drawn(self, fault: str) -> Random:
        """Returns the random source for the details of the fault's last strike."""
        return Random(f"{self._seed} {fault} {self.opportunities[fault]}")

    def rule_out(self, fault: str) -> None:
        """Prevents a fault from striking."""
        self._next[fault] = _NEVER

    def end(self) -> None:
        """Ends all faults."""
        self.has_ended = True
        self._next = dict.fromkeys(self._next, _NEVER)

    def _begun(self, fault: str) -> int:
        """Returns the first opportunity at which a fault strikes."""
        if self.has_ended:
            strikes: Iterator[int] = iter(())
        elif self._exactly is None:
            strikes = _by_chance(Random(f"{self._seed} {fault}"), self._rates.get(fault, 0.0))
        else:
            strikes = iter(sorted(strike.opportunity for strike in self._exactly if strike.fault == fault))
        self._strikes[fault] = strikes
        found = self._next[fault] = next(strikes, _NEVER)
        return found


def swarm_of(choices: Mapping[str, Sequence[float]], seed: object) -> dict[str, float]:
    """Returns how often each fault strikes: for one seed half of them never do, and others strike often or seldom.

    Args:
        choices: fault -> the rates that may be drawn, in addition to as many zeros.
        seed: seed of the draw.
    """
    random = Random(f"{seed} swarm")
    return {fault: random.choice((*(0.0,) * len(rates), *rates)) for fault, rates in choices.items()}


def _by_chance(random: Random, rate: float) -> Iterator[int]:
    """Yields the opportunities at which a fault of this rate strikes; draws gaps, because most opportunities pass."""
    opportunity = -1
    while rate:  # endless: callers stop asking
        opportunity += 1 + int(log(1 - random.random()) / log(1 - rate))
        yield opportunity
