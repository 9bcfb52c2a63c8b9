"""Which faults strike, and when: a swarm drawn from a seed, or exactly those of a list.

Every fault has a name and strikes at its k-th opportunity, so that a fault is the same fault in a replay in which
others have been taken out. What a fault is made of (how many writes are lost, which frame is doubled) is drawn
from a stream of its own for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from random import Random

from state.fault_points import POINTS

RATES: dict[str, tuple[float, ...]] = {
    # the server, at each call
    "server.loses_request": (0.01, 0.05, 0.2),
    "server.loses_answer": (0.01, 0.05, 0.2),
    "server.answers_late": (0.02, 0.1),
    "server.applies_later": (0.02, 0.1),
    "server.repeats_earlier_call": (0.02, 0.1),
    "server.goes_back": (0.005, 0.03, 0.1),
    "server.comes_back_empty": (0.005,),
    "server.is_restored": (0.005, 0.02),
    "server.loses_library": (0.01, 0.05),
    "server.is_busy": (0.02, 0.1),
    "server.refuses": (0.005, 0.02),
    "server.has_another_version": (0.0, 0.0, 0.002, 0.01),
    "server.is_unfit": (0.0, 0.002, 0.01),
    "server.lends_a_key": (0.0, 0.0, 0.005, 0.02),
    # the driver's process, at each call and each wait
    "driver.is_killed": (0.002, 0.01, 0.03),
    "driver.is_stopped": (0.005, 0.02),
    "driver.has_a_rival": (0.005, 0.02),
    # the operator, at each start
    "operator.drops": (0.0, 0.0, 0.01, 0.05),
    "operator.changes_input": (0.0, 0.0, 0.1, 0.3),
    "operator.changes_states": (0.0, 0.1, 0.3),
    "operator.changes_code": (0.3,),
    "operator.accepts_changes": (0.3,),
    # tasks of a wave
    "task.is_retried": (0.02, 0.1),
    "task.has_a_twin": (0.02, 0.1),
    "stage.is_recomputed": (0.05, 0.3),
    "wave.is_lost": (0.01, 0.05),
    "wave.hangs": (0.005, 0.02),
    # frames on their way
    "frame.is_lost": (0.002, 0.01),
    "frame.is_doubled": (0.005, 0.02),
    "frame.is_altered": (0.002, 0.01),
    # user code
    "bolt.fails": (0.005, 0.03),
    "bolt.draws": (0.2,),
    "bolt.exceeds": (0.0, 0.02, 0.1),
    "spout.fails": (0.01,),
    "input.moves": (0.3,),
}
"""Name -> the rates a swarm may draw, apart from as many zeros."""

TASK_POINTS = ("task.beginning", "batch.emitted", "batch.executed", "batch.finished", "frame.packed")
"""What tasks reach, on executors: there a death costs a task, not the driver."""
PLAIN_POINTS = ("offset.saving", "offset.saved", "plain_wave.submitting", "plain_wave.drained", "plain_message.told")
IMPORT_POINTS = ("import.staged", "import.restored")  # an import has tests of its own
FILE_POINTS = tuple(point for point in POINTS if point.startswith("done_file."))  # as has the removal of files
_ELSEWHERE = (*TASK_POINTS, *PLAIN_POINTS, *IMPORT_POINTS, *FILE_POINTS)
DRIVER_POINTS = tuple(point for point in POINTS if point not in _ELSEWHERE)

RATES |= {f"kill@{point}": (0.0, 0.0, 0.0, 0.03, 0.2) for point in (*DRIVER_POINTS, *PLAIN_POINTS)}
RATES |= {f"stop@{point}": (0.0, 0.0, 0.0, 0.03, 0.1) for point in (*DRIVER_POINTS, *PLAIN_POINTS)}
RATES |= {f"die@{point}": (0.0, 0.003, 0.02) for point in TASK_POINTS if point != "frame.packed"}
RATES["die@frame.packed"] = (0.0, 0.0002, 0.001)
RATES["server.tears_a_write"] = (0.0, 0.005, 0.02)
RATES["server.moves"] = (0.005, 0.02)
"""The last of them, so that older seeds draw the other faults as they always did."""


_NEVER = -1


@dataclass(frozen=True, slots=True, order=True)
class Strike:
    """One fault that has struck: its name, and at which opportunity, counted from 0."""

    fault: str
    opportunity: int

    def __str__(self) -> str:
        return f"{self.fault}:{self.opportunity}"

    @classmethod
    def parse(cls, text: str) -> Strike:
        """Reads what `str` wrote."""
        fault, _, opportunity = text.rpartition(":")
        return cls(fault, int(opportunity))


class FaultPlan:
    """Answers at each opportunity whether a fault strikes.

    Args:
        seed: of the simulation; what faults are made of depends on it alone.
        rates: fault -> probability; faults without one never strike by chance.
        exactly: these strike and no others; rates do not count then.

    Attributes:
        struck: everything that has struck so far, in order.
        opportunities: fault -> how often it might have struck.
    """

    def __init__(self, seed: object, rates: Mapping[str, float], exactly: frozenset[Strike] | None = None) -> None:
        self._seed = seed
        self._strikes = {
            fault: _by_chance(Random(f"{seed} {fault}"), rates.get(fault, 0.0))
            if exactly is None
            else iter(sorted(strike.opportunity for strike in exactly if strike.fault == fault))
            for fault in RATES
        }
        self._next = {fault: next(strikes, _NEVER) for fault, strikes in self._strikes.items()}
        self.struck: list[Strike] = []
        self.opportunities: dict[str, int] = dict.fromkeys(RATES, 0)

    @classmethod
    def swarm(cls, seed: object) -> FaultPlan:
        """Some faults, each often or seldom: half of them are off in any one seed."""
        return cls(seed, cls.swarm_rates(seed))

    @staticmethod
    def swarm_rates(seed: object) -> dict[str, float]:
        """How often each fault of a swarm strikes."""
        random = Random(f"{seed} swarm")
        return {fault: random.choice((*(0.0,) * len(choices), *choices)) for fault, choices in RATES.items()}

    def strikes(self, fault: str) -> bool:
        """Whether the fault strikes at this opportunity."""
        opportunity = self.opportunities[fault]
        self.opportunities[fault] = opportunity + 1
        if opportunity != self._next[fault]:
            return False
        self._next[fault] = next(self._strikes[fault], _NEVER)
        self.struck.append(Strike(fault, opportunity))
        return True

    def drawn(self, fault: str) -> Random:
        """What the strike that was last answered is made of."""
        return Random(f"{self._seed} {fault} {self.opportunities[fault]}")

    def rule_out(self, fault: str) -> None:
        """Lets a fault never strike."""
        self._next[fault] = _NEVER

    def end(self) -> None:
        """From now on nothing goes wrong."""
        self._next = dict.fromkeys(RATES, _NEVER)


def _by_chance(random: Random, rate: float) -> Iterator[int]:
    """The opportunities at which a fault of this rate strikes: gaps are drawn, because most opportunities pass."""
    opportunity = -1
    while rate:  # endless: whoever asks stops asking
        opportunity += 1 + int(log(1 - random.random()) / log(1 - rate))
        yield opportunity
