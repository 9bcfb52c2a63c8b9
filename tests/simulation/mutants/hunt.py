"""Looks for a mutant: by playing seeds until one fails, and by running the test that has to fail."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from unittest import mock

from coordinator.testing.simulated.timeline import Timeline
from tests.simulation.invariants import ViolatedError
from tests.simulation.mutants.mutant import SIMULATION, Mutant
from tests.simulation.mutants.patch import ROOT, planted
from tests.simulation.scenario import PLAIN, Scenario
from tests.simulation.simulation import simulate
from tests.simulation.workload import SPOUTS

VARIABLE = "TXBATCH_MUTANT"
"""Names the mutant that `plugin` plants in a process of pytest."""
PLUGIN = "tests.simulation.mutants.plugin"
SUITE_TIMEOUT_S = 600
HAPPENINGS_MAX = 8_000
"""A run that makes no progress is found sooner than in the simulation at large: many mutants stop progress."""
QUIET_HAPPENINGS_MAX = 200
"""More than happen on any kind of spout if nothing goes wrong."""
ALL_PASSED, SOME_FAILED = 0, 1
QUIET_KINDS = (*sorted(kind for kind in SPOUTS if kind.startswith("told ")), PLAIN)


@dataclass(frozen=True, slots=True)
class Hunt:
    """How a hunt has ended.

    Attributes:
        mutant: name of what was hunted.
        played: how many seeds were played.
        seed: the seed that found it; None if none did.
        found: what that seed said.
        failed_test: the test that found it; empty if none was to, or did.
        seconds: how long it took.
    """

    mutant: str
    played: int
    seed: int | None = None
    found: str = ""
    failed_test: str = ""
    seconds: float = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether nothing has found it."""
        return self.seed is None and not self.failed_test


def hunt(mutant: Mutant, seeds: range, spared_seeds: int) -> Hunt:
    """Looks for a mutant where it has to die.

    Args:
        mutant: what to look for.
        seeds: to play until one fails.
        spared_seeds: how many of them to play with a mutant that the simulation spares.
    """
    started_s = time.monotonic()
    if mutant.dies_in == SIMULATION:
        ended = by_simulation(mutant, seeds)
    else:
        played = by_simulation(mutant, seeds[:spared_seeds])
        ended = replace(played, failed_test=failed_test(mutant))
    return replace(ended, seconds=time.monotonic() - started_s)


def hunt_given(given: tuple[Mutant, range, int]) -> Hunt:
    """Hunts with the arguments of `hunt`; for pools of processes, which find functions by module."""
    return hunt(*given)


def by_simulation(mutant: Mutant, seeds: Iterable[int]) -> Hunt:
    """Plays seeds until one fails; it counts only if it passes without the mutant."""
    played = 0
    for seed in seeds:
        played += 1
        with planted(mutant.patches):
            found = violation_of(seed)
        if found and not _is_known_to_fail(seed):
            return Hunt(mutant.name, played, seed, found)
    return Hunt(mutant.name, played)


def violation_of(seed: int) -> str:
    """Plays one seed; returns what does not hold, empty if everything does."""
    return _played(Scenario.of(seed)).removeprefix(f"{ViolatedError.__name__}: ").strip().split("\n", maxsplit=1)[0]


def _played(scenario: Scenario, actions_max: int = HAPPENINGS_MAX) -> str:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with mock.patch.object(Timeline.__init__, "__defaults__", (actions_max,)):
            return simulate(scenario).violation
    finally:
        logging.disable(disabled)


def quiet_violations(mutant: Mutant) -> dict[str, str]:
    """Plays a mutant on the richest kinds of spouts with nothing going wrong; returns kind -> what does not hold.

    A mutant that ends by an error of its own, as a name that it has misspelled, would be found by anything.
    """
    with planted(mutant.patches):
        quiet = {kind: replace(Scenario.of(0, kind), exactly=frozenset(), calls=0, reads=True) for kind in QUIET_KINDS}
        ended = {kind: _played(scenario, QUIET_HAPPENINGS_MAX) for kind, scenario in quiet.items()}
    return {kind: violation for kind, violation in ended.items() if violation}


@cache
def _is_known_to_fail(seed: int) -> bool:
    return bool(violation_of(seed))


def failed_test(mutant: Mutant) -> str:
    """Runs the mutant's test in a process of its own; returns the name of what failed, empty if nothing did.

    Raises:
        RuntimeError: the test could not be run.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", mutant.dies_in]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, VARIABLE: mutant.name},
        capture_output=True,
        text=True,
        timeout=SUITE_TIMEOUT_S,
        check=False,
    )
    if run.returncode == ALL_PASSED:
        return ""
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if run.returncode != SOME_FAILED or not failed:
        raise RuntimeError(f"{mutant.dies_in} could not be run with {mutant.name}:\n{run.stdout[-3000:]}{run.stderr}")
    return failed[0].partition(" - ")[0].partition("[")[0].rpartition("::")[2]
