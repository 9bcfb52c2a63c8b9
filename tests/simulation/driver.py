"""One driver process of the simulation: a run of our workload, whose books are checked in every turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from coordinator.testing.simulated.driver_process import WINDOWS, DriverProcess
from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.process import Ended
from coordinator.testing.simulated.timeline import Timeline
from coordinator.topology.building.topology import Topology
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from tests.simulation.sim_server import SimServer

WAVES_IN_FLIGHT = 2
HISTORY = 5
"""How many transactions keep their records: few, so that most of them are forgotten again."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a run is started with; it may be another one at every start.

    Attributes:
        topology: what it runs.
        fingerprint: of its input.
        states: name -> value type of the states it declares.
        adopts: whether the user accepts another input.
        accepts_states: whether the user accepts that states have changed.
    """

    topology: Topology
    fingerprint: str
    states: dict[str, str]
    adopts: bool
    accepts_states: bool


class Driver(DriverProcess):
    """A run.

    Args:
        program: what it is started with.
        pickle: makes shipped specs.
        options: of the run, beside those that are drawn.
        republish: the quarantined batches or dead letters that it replays.

    Attributes:
        confirmed: (txid, attempt id) of what the server has told it that it holds.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimServer,
        random: Random,
        pickle: Callable[[str, Any], bytes],
        ended: Ended,
        options: Mapping[str, Any] | None = None,
        republish: RepublishChoice | LetterChoice | None = None,
    ) -> None:
        self.program = program
        self.confirmed: set[tuple[int, int]] = set()
        super().__init__(
            name,
            program.topology,
            timeline=timeline,
            faults=faults,
            server=server,
            random=random,
            pickle_spec=pickle,
            ended=ended,
            options={
                "adopt": "unchecked" if program.adopts else False,
                "accept_state_changes": program.accepts_states,
                "history": HISTORY,
                **(options or {}),
            },
            republish=republish,
        )

    def _turned(self, coordinator: Coordinator) -> None:
        coordinator._machine.validate()  # its books have to agree

    def _turning(self, coordinator: Coordinator) -> None:
        """What a run keeps is bounded by the largest window, whatever has gone wrong and however long it runs."""
        books, window = coordinator._machine._books, max(WINDOWS)
        kept = {
            "transactions": (len(books.transactions._records), window + 1),
            "waves": (len(books.waves._waves), window + WAVES_IN_FLIGHT),
            "waves of the engine": (len(self.engine.waves), window + WAVES_IN_FLIGHT),
            "metadata of the spout's coordinator": (len(books.metadata.coordinator), window + 1),
        }
        for what, (count, most) in kept.items():
            assert count <= most, f"{self.name} keeps {count} {what}, at most {most} for a window of {window}"
