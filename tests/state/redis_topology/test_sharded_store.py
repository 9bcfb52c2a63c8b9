"""Stage, decide, apply: every death of a run at every call, and servers that go back on their own."""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random

import pytest

from state.errors import FencedError, StateRefusedError, TransactionError
from state.troubles import Trouble
from tests.support.stores.sharded_world import Died, ShardedWorld

TOTAL = 6


def dying_at(call: int):
    """What raises at the visit with this number."""
    visits = count()

    def visit() -> None:
        if next(visits) == call:
            raise Died

    return visit


@pytest.mark.parametrize("shard_count", [1, 2, 3, 16])
def test_all_shards_together_hold_what_was_committed(shard_count):
    world = ShardedWorld(shard_count)
    world.run(Random(1), TOTAL)
    world.check_done()
    world.run(Random(2), 2 * TOTAL)
    world.check_done()


def test_a_run_that_dies_at_any_call_is_continued_exactly():
    for call in count():
        world = ShardedWorld(2)
        try:
            world.run(Random(3), TOTAL, dying_at(call))
        except Died:
            world.check_shards()
            world.run(Random(4), TOTAL)
            world.check_done()
        else:
            break
    assert call > 60


def test_a_start_that_dies_at_any_call_is_continued_exactly():
    """The first run dies just after the decision; the second anywhere in its start."""
    for call in count():
        world = ShardedWorld(3)
        with pytest.raises(Died):
            world.run(Random(5), TOTAL, dying_at(48))
        try:
            world.run(Random(6), TOTAL, dying_at(call))
        except Died:
            world.check_shards()
            world.run(Random(7), TOTAL)
            world.check_done()
        else:
            break


class Unreliable:
    """Runs of one world that die at any call, are stopped there while another run comes, or lose what servers hold."""

    def __init__(self, random: Random, flavours: int) -> None:
        self.random, self.flavours = random, flavours
        self.world = ShardedWorld(random.choice([1, 2, 3]))
        self.losses = self.runs = self.under_way = 0

    def run(self) -> None:
        """One run, which may end in any way that is allowed."""
        self.runs += 1
        self.under_way += 1
        try:
            self.world.run(self.random, TOTAL, self.visit, self.runs % self.flavours)
        except (Died, FencedError):
            pass
        except TransactionError:
            if not self.losses:
                raise
        finally:
            self.under_way -= 1
        self.world.check_shards()

    def visit(self) -> None:
        random = self.random
        if random.random() < 0.01:
            raise Died
        if self.under_way < 3 and random.random() < 0.01:
            self.run()  # the one that is under way goes on afterwards, and does not know
        server = random.choice(self.world.servers)
        if server.befores and random.random() < 0.005:
            self.losses += 1
            server.go_back(min(len(server.befores), random.choice([1, 1, 2, 3])))


@pytest.mark.parametrize("flavours", [1, 2], ids=["the same batches", "other batches"])
def test_servers_that_go_back_are_mended_or_named(flavours):
    outcomes = Counter[str]()
    for seed in range(200):
        unreliable = Unreliable(Random(f"{seed} {flavours}"), flavours)
        for _ in range(6):
            unreliable.run()
        try:
            unreliable.world.run(unreliable.random, TOTAL)
        except StateRefusedError as error:
            if not unreliable.losses or error.trouble is not Trouble.REGRESSED:
                raise
            outcomes["named"] += 1
        else:
            unreliable.world.check_done()
            outcomes["mended" if unreliable.losses else "nothing was lost"] += 1
    assert min(outcomes.values()) > 20, outcomes
