"""Every mutant, by theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
_NAMED = {mutant.name: mutant for theme in THEMES.values() for mutant in theme}


def _with_parts(mutant: Mutant) -> Mutant:
    """A mutant with the patches of those that are planted together in it."""
    return replace(mutant, patches=sum((_NAMED[part].patches for part in mutant.parts), mutant.patches))


MUTANTS: Mapping[str, Mutant] = {name: _with_parts(mutant) for name, mutant in _NAMED.items()}
