"""Plays seeds until the time is up: ``python -m tests.simulation --seeds 1000``.

A seed that fails is made small, and printed with the command that plays it again.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter

from tests.simulation.fault_plan import RATES, Strike
from tests.simulation.reduce import reduced
from tests.simulation.simulation import Outcome, Scenario, simulate

STORY_LINES = 40


def main(arguments: list[str] | None = None) -> int:
    """Returns how many seeds have failed, 1 at most."""
    parser = argparse.ArgumentParser(prog="prove", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--kind", default="", help="of spout, instead of the seed's own")
    parser.add_argument("--exactly", default="", help="faults that strike, as printed, instead of the seed's own")
    given = parser.parse_args(arguments)
    logging.getLogger("txbatch").setLevel(logging.CRITICAL)
    started_s, totals, failed, played = time.monotonic(), Totals(), 0, 0
    for seed in range(given.seed, given.seed + given.seeds):
        if time.monotonic() - started_s > 60 * given.minutes:
            break
        scenario = Scenario.of(seed, kind=given.kind)
        if given.exactly:
            scenario = scenario.with_faults(Strike.parse(text) for text in given.exactly.split(","))
        outcome = simulate(scenario)
        totals.add(outcome)
        played += 1
        if outcome.violation is not None:
            failed += 1
            tell(outcome)
    seconds = time.monotonic() - started_s
    print(f"{played} seeds in {seconds:.0f} s ({played / seconds:.1f}/s), {failed} failed")
    totals.tell()
    return int(failed > 0)


def tell(outcome: Outcome) -> None:
    """Prints a violation, the faults it needs, and how to see it again."""
    small = reduced(outcome)
    faults = ",".join(map(str, sorted(small.struck)))
    print(f"\nseed {outcome.scenario.seed} ({outcome.scenario.kind}, reads={outcome.scenario.reads}) failed:")
    print(f"  {small.violation}")
    print("\n".join(f"  | {line}" for line in small.story[-STORY_LINES:]))
    print(f"  again: python -m tests.simulation --seed {outcome.scenario.seed} --seeds 1 --exactly {faults}\n")
    sys.stdout.flush()


class Totals:
    """What all seeds together have hit."""

    def __init__(self) -> None:
        self.struck: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.replies: Counter[tuple[str, str]] = Counter()

    def add(self, outcome: Outcome) -> None:
        """Takes in one outcome."""
        self.struck.update(strike.fault for strike in outcome.struck)
        self.ends += outcome.ends
        self.replies += outcome.replies

    def tell(self) -> None:
        """Prints the coverage."""
        print("faults:", ", ".join(f"{fault} {self.struck[fault]:,}" for fault in RATES))
        print("ends:", ", ".join(f"{end} {count:,}" for end, count in sorted(self.ends.items())))
        answers = sorted(self.replies.items())
        print("answers:", ", ".join(f"{function} {status} {count:,}" for (function, status), count in answers))


if __name__ == "__main__":
    sys.exit(main())
