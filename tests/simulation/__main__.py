"""Plays schedules of faults against the real run machine, tasks and function library.

Called as ``python -m tests.simulation --seeds 1000``.
Each seed is one schedule. A schedule that breaks an invariant is made small, and printed with the command that plays it
again; at the end a table says what was hit, and what never was. Needs a source checkout with its test requirements.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from coordinator.testing.simulated.fault_plan import Strike
from tests.simulation.coverage import Coverage
from tests.simulation.exhaustive import SMALL, pairs, singles
from tests.simulation.playing import played, settle
from tests.simulation.reduced import reduced
from tests.simulation.scenario import Outcome, Scenario

STORY_LINES = 40
KEEP_EVERY = 200
"""Scenarios between two writes of the file that remembers how far an exhaustive search is."""


def main(arguments: list[str] | None = None) -> int:
    """Plays what is asked for; returns 1 if anything failed, else 0."""
    given = _parser().parse_args(arguments)
    settle()
    progress = Progress(given.resume)
    started_s, coverage = time.monotonic(), Coverage()
    end_s = started_s + 60 * given.minutes
    scenarios = _until(end_s, islice(_scenarios(given), progress.done, None))
    for outcome in played(scenarios, given.processes):
        coverage.add(outcome)
        progress.add()
        if outcome.violation:
            _tell(outcome)
    progress.keep()
    seconds = time.monotonic() - started_s
    if given.json:
        print(json.dumps({"seconds": round(seconds, 1), **coverage.to_json()}))
    else:
        print("\n".join(coverage.lines()))
        rate = coverage.played / max(seconds, 0.001)
        print(f"\n{coverage.played:,} schedules in {seconds:,.0f} s ({rate:.1f}/s), {coverage.failed:,} failed")
    return int(coverage.failed > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many [100]")
    parser.add_argument("--seed", type=int, default=0, help="the first [0]")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing more after this time")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="[number of processors]")
    parser.add_argument("--kind", default="", help="of spout, instead of the seed's own")
    parser.add_argument("--small", choices=SMALL, help="plays one of the small runs of --exhaustive, instead of seeds")
    parser.add_argument("--exactly", help="faults that strike, as printed, instead of the seed's own")
    parser.add_argument(
        "--exhaustive",
        choices=("singles", "pairs"),
        help="every fault at each of its first opportunities, alone or with every other, instead of seeds",
    )
    parser.add_argument("--resume", type=Path, help="file that remembers how far a search is, to continue it later")
    parser.add_argument("--json", action="store_true", help="print the table as one line of JSON")
    return parser


def _scenarios(given: argparse.Namespace) -> Iterator[Scenario]:
    if given.exhaustive:
        yield from singles() if given.exhaustive == "singles" else pairs()
        return
    seeds = range(given.seed, given.seed + given.seeds)
    for scenario in [SMALL[given.small]] if given.small else (Scenario.of(seed, kind=given.kind) for seed in seeds):
        if given.exactly is not None:
            faults = map(Strike.parse, filter(None, given.exactly.split(",")))
            yield scenario.with_faults(faults)
        else:
            yield scenario


def _until(end_s: float, scenarios: Iterator[Scenario]) -> Iterator[Scenario]:
    for scenario in scenarios:
        if time.monotonic() > end_s:
            return
        yield scenario


class Progress:
    """How many scenarios of a search are done.

    Args:
        path: of the file that remembers it; None if it is not wanted.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.done = int(path.read_text()) if path is not None and path.exists() else 0

    def add(self) -> None:
        """One more is done."""
        self.done += 1
        if self.done % KEEP_EVERY == 0:
            self.keep()

    def keep(self) -> None:
        """Remembers it."""
        if self._path is not None:
            self._path.write_text(f"{self.done}\n")


def _tell(outcome: Outcome) -> None:
    """Prints a violation, the faults it needs, and how to see it again."""
    print(f"\n{outcome.scenario} failed:", file=sys.stderr)
    print(f"  {outcome.violation}\n  is being made small", file=sys.stderr, flush=True)
    small = reduced(outcome)
    print(f"  {small.violation}", file=sys.stderr)
    print("\n".join(f"  | {line}" for line in small.story[-STORY_LINES:]), file=sys.stderr)
    print(f"  again: {again(small)}\n", file=sys.stderr, flush=True)


def again(outcome: Outcome) -> str:
    """The command that plays an outcome again."""
    faults = ",".join(map(str, sorted(outcome.struck)))
    scenario = outcome.scenario
    where = f"--small {scenario.name}" if scenario.name else f"--seed {scenario.seed} --seeds 1"
    if not scenario.name and Scenario.of(scenario.seed).kind != scenario.kind:
        where += f" --kind '{scenario.kind}'"
    return f"python -m tests.simulation {where} --exactly {faults}"


if __name__ == "__main__":
    sys.exit(main())
