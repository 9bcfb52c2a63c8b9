"""The schedule that a seed stands for: a way of playing a topology, and the faults that strike it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from coordinator.proving.quiet_run import Kept
from coordinator.testing.simulated.fault_plan import DRIVER_POINTS, TASK_POINTS, FaultPlan, Strike, swarm_of
from state.errors import TopologyError, TransactionError

OTHER_TASKS, OTHER_ORDER = "tasks.are_other", "tuples.come_in_another_order"
REARRANGING = frozenset({OTHER_TASKS, OTHER_ORDER})
"""With these nothing fails: tuples go to other tasks, or arrive in another order."""
DRIVER_DIES = (0.0, 0.0, 0.02, 0.1)
BY_STAGES = {
    OTHER_TASKS: (0.5, 0.9),
    "server.loses_request": (0.02, 0.1),
    "server.loses_answer": (0.02, 0.1),
    "server.goes_back": (0.01, 0.05),
    "driver.is_killed": (0.005, 0.02),
    "task.is_retried": (0.05, 0.3),
    "task.has_a_twin": (0.05, 0.3),
    "stage.is_recomputed": (0.1, 0.4),
    "wave.is_lost": (0.02, 0.1),
    "wave.hangs": (0.02,),
    "frame.is_lost": (0.005, 0.02),
    "frame.is_doubled": (0.005, 0.02),
    "frame.is_altered": (0.005, 0.02),
    **{f"kill@{point}": DRIVER_DIES for point in DRIVER_POINTS if not point.startswith(("drop.", "spout."))},
    **{f"die@{point}": (0.01, 0.05) for point in TASK_POINTS},
}
"""Fault -> the probabilities it may have, where waves run stage by stage."""
BY_TUPLES = {OTHER_TASKS: 0.4, OTHER_ORDER: 0.9}
"""The same where tuples travel one by one."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule.

    Attributes:
        keeps_tasks: whether every component keeps its declared number of tasks.
        exactly: the faults that strike; None for random ones, drawn by the seed.
    """

    seed: int
    keeps_tasks: bool = False
    exactly: frozenset[Strike] | None = None

    @property
    def is_by_stages(self) -> bool:
        """Whether waves run stage by stage, as on Spark, else tuple by tuple; drawn, unless the faults require one."""
        if self.exactly is not None and any(strike.fault == OTHER_ORDER for strike in self.exactly):
            return False
        return Random(f"{self.seed} way").random() < 0.6

    def with_faults(self, faults: Iterable[Strike]) -> Schedule:
        """Returns the same schedule with exactly these faults."""
        return replace(self, exactly=frozenset(faults))

    def plan(self) -> FaultPlan:
        """Returns the plan of faults."""
        plan = FaultPlan(self.seed, swarm_of(BY_STAGES, self.seed) if self.is_by_stages else BY_TUPLES, self.exactly)
        if self.keeps_tasks:
            plan.rule_out(OTHER_TASKS)
        return plan


@dataclass(frozen=True, slots=True)
class Played:
    """The result of playing a schedule.

    Attributes:
        kept: the state it has left; None if a run ended with an error that faults do not explain.
        error: that error, or None.
        struck: the faults that have struck, in order.
        story: the events, line by line.
    """

    kept: Kept | None
    error: TransactionError | None
    struck: tuple[Strike, ...]
    story: tuple[str, ...]

    @property
    def is_rearranged(self) -> bool:
        """Whether tuples went to other tasks, or in another order, than in the run it is compared with."""
        return any(strike.fault in REARRANGING for strike in self.struck)


def faults_of(texts: Iterable[str]) -> frozenset[Strike]:
    """Parses faults as they were printed.

    Raises:
        TopologyError: a text does not name a fault.
    """
    found = set()
    for text in texts:
        fault, _, opportunity = text.rpartition(":")
        if fault not in (*BY_STAGES, *BY_TUPLES) or not opportunity.isdecimal():
            raise TopologyError(f"{text!r} is not a schedule of faults; give the text that a failing schedule prints")
        found.add(Strike.parse(text))
    return frozenset(found)
