"""One driver process of the simulation: a run of our workload, whose books are checked in every turn."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from coordinator.testing.simulated.driver_process import WINDOWS, DriverProcess
from coordinator.transactional.coordinator import Coordinator
from tests.simulation.invariants import Program

WAVES_IN_FLIGHT = 2
HISTORY = 5
"""How many transactions keep their records: few, so that most of them are forgotten again."""


def pickled(_: str, spec: Any) -> bytes:
    """Ships a component's spec."""
    return pickle.dumps(spec)


class Driver(DriverProcess):
    """A run.

    Args:
        program: what it is started with.
        options: of the run, beside those that are drawn.
        more: what a `DriverProcess` takes.

    Attributes:
        confirmed: (txid, attempt id) of what the server has told it that it holds.
    """

    def __init__(self, name: str, program: Program, *, options: Mapping[str, Any] | None = None, **more: Any) -> None:
        self.program = program
        self.confirmed: set[tuple[int, int]] = set()
        accepted = {"adopt": "unchecked" if program.adopts else False, "accept_state_changes": program.accepts_states}
        options = {**accepted, "history": HISTORY, **(options or {})}
        super().__init__(name, program.topology, options=options, pickle_spec=pickled, **more)

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
