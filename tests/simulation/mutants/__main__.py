"""Hunts mutants: ``python -m tests.simulation.mutants --seeds 200 --processes 2 --markdown
tests/simulation/mutants/README.md``.

Each mutant is hunted where it has to die: in the simulation, seed after seed until one fails, or by the test that it
names. Mutants that the simulation spares are played there too, to show that it does, and their test has to fail.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

from tests.simulation.mutants import results
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.hunt import Hunt, hunt_given
from tests.simulation.mutants.table import markdown
from tests.simulation.playing import settle

HUNTS_PER_PROCESS = 4
"""What mutants have left in memory ends with the process."""


def main(arguments: list[str] | None = None) -> int:
    """Returns how many mutants are still alive, 1 at most."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[*MUTANTS], help="names; all if left out")
    parser.add_argument("--seeds", type=int, default=200, help="how many to play until a mutant is given up")
    parser.add_argument("--spared-seeds", type=int, default=30, help="how many for those that the simulation spares")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1, help="how many hunt at a time")
    parser.add_argument("--results", type=Path, help="keep results in this file, together with those of earlier rounds")
    parser.add_argument("--markdown", type=Path, help="write the table of all results here")
    given = parser.parse_args(arguments)
    unknown = set(given.only) - MUTANTS.keys()
    if unknown:
        parser.error(f"there are no mutants {', '.join(sorted(unknown))}")
    hunts = results.read(given.results) if given.results else {}
    seeds = range(given.first, given.first + given.seeds)
    for ended in hunted(given.only, seeds, given.spared_seeds, given.processes):
        hunts[ended.mutant] = ended
        print(line_of(ended), flush=True)
        if given.results:
            results.write(given.results, hunts)
    if given.markdown:
        given.markdown.write_text(markdown(hunts), encoding="utf-8")
    alive = [name for name in given.only if hunts[name].is_alive]
    print(f"{len(given.only)} mutants, {len(alive)} alive{': ' if alive else ''}{', '.join(alive)}")
    return int(bool(alive))


def hunted(names: list[str], seeds: range, spared_seeds: int, processes: int) -> Iterator[Hunt]:
    """Hunts mutants in processes of their own; gives each hunt as it ends."""
    with get_context("spawn").Pool(processes, settle, maxtasksperchild=HUNTS_PER_PROCESS) as pool:
        hunts = [(MUTANTS[name], seeds, spared_seeds) for name in names]
        yield from pool.imap_unordered(hunt_given, hunts)


def line_of(ended: Hunt) -> str:
    """One line about a hunt."""
    where = f"{ended.played} seeds played" if ended.seed is None else f"seed {ended.seed}, {ended.played} played"
    told = [f"{where}: {ended.found}" if ended.found else where, ended.failed_test, "ALIVE" if ended.is_alive else ""]
    return f"{ended.mutant:40} {ended.seconds:6.1f} s  {'; '.join(filter(None, told))}"


if __name__ == "__main__":
    sys.exit(main())
