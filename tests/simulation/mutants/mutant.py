"""A mutant: one bug that a careless engineer might write, and where it has to die."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.mutants.patch import Patch

SIMULATION = "simulation"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug.

    Attributes:
        name: of letters, digits and hyphens.
        mistake: what was written, as one sentence.
        patches: the bug; together they must apply.
        dies_in: `SIMULATION`, or the test (a pytest id) that has to fail.
        spared: why the simulation lets it live; empty if it does not.
        parts: names of the mutants that are planted together here; empty for a single one.
    """

    name: str
    mistake: str
    patches: tuple[Patch, ...]
    dies_in: str = SIMULATION
    spared: str = ""
    parts: tuple[str, ...] = ()


def mutant(name: str, mistake: str, *patches: Patch, dies_in: str = SIMULATION, spared: str = "") -> Mutant:
    """One bug."""
    return Mutant(name, mistake, patches, dies_in, spared)


def together(name: str, mistake: str, *parts: str, dies_in: str = SIMULATION, spared: str = "") -> Mutant:
    """Bugs of these names at once: guards that hide one another are taken out together; see `catalogue`."""
    return Mutant(name, mistake, (), dies_in, spared, parts)
