"""Every mutant, by theme."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.mutants import completeness, groups, halves, machine, plain, spouts, stages, store
from tests.simulation.mutants.mutant import Mutant

THEMES: Mapping[str, tuple[Mutant, ...]] = {
    "The store": store.MUTANTS,
    "Half a write": halves.MUTANTS,
    "The run machine": machine.MUTANTS,
    "Group commit": groups.MUTANTS,
    "Completeness and frames": completeness.MUTANTS,
    "Tasks and stages": stages.MUTANTS,
    "Spouts and starts": spouts.MUTANTS,
    "Plain topologies": plain.MUTANTS,
}
MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for theme in THEMES.values() for mutant in theme}


def named(name: str) -> Mutant:
    """Returns a mutant.

    Raises:
        KeyError: there is none of that name.
    """
    return MUTANTS[name]
