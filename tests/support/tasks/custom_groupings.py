"""Groupings as users write them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from coordinated_bolt.streams.groupings import CustomGrouping


class FirstTasks(CustomGrouping):
    """The first `count` of the subscriber's tasks."""

    def __init__(self, count: int) -> None:
        self.count = count

    def choose_tasks(self, values):
        return range(self.count)


@dataclass
class Lottery(CustomGrouping):
    """A task that is drawn, and the one drawn before it: choices that depend on the seed and on the past."""

    draws: int = 2

    def prepare(self, context):
        super().prepare(context)
        self.random = random.Random(context.seed)
        self.chosen = [0] * self.draws

    def choose_tasks(self, values):
        self.chosen = [*self.chosen[1:], self.random.randrange(self.context.target_count)]
        return self.chosen
