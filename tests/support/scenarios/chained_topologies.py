"""Random topologies with many chains: equal numbers of tasks, and groupings that leave the choice of a task open."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.scenarios.random_topologies import Input, Part, Scenario, random_scenario

OPEN_GROUPINGS = ("shuffle", "none", "local")


def chained_scenario(random: Random) -> Scenario:
    """Draws a scenario; in a third of them every component has one task."""
    drawn = random_scenario(random)
    if random.random() < 0.33:
        return replace(drawn, parts=tuple(replace(part, tasks=1) for part in drawn.parts))
    tasks = random.randint(1, 3)
    spout, *bolts = drawn.parts
    return replace(drawn, parts=(replace(spout, tasks=tasks), *(_opened(random, part, tasks) for part in bolts)))


def _opened(random: Random, part: Part, tasks: int) -> Part:
    """A part for which placement means nothing may have any number of tasks, and hear what it hears by shuffle."""
    if part.mode != "any" or random.random() < 0.1:
        return part

    def opened(heard: Input) -> Input:
        is_kept = heard.grouping == "direct" or random.random() < 0.15
        return heard if is_kept else replace(heard, grouping=random.choice(OPEN_GROUPINGS))

    return replace(part, tasks=tasks, inputs=tuple(map(opened, part.inputs)))
