"""Runs on a server that loses any suffix of its writes: what is committed is always a prefix of the input, once each.

Several runs of one topology follow and overlap one another, the older ones as zombies; the server loses writes
under them. After every call the state has to be the fold of the input up to the committed txid, a spout is told
only of what the server holds, and a run that says it is done is done. In the end nothing goes wrong any more,
and one last run has to finish.

TXBATCH_FORGETFUL_STEPS sets how many calls to the server each kind of spout makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any
from unittest import mock

import pytest

from coordinator.engines.waves import stage
from tests.support.runs.forgetful_world import KINDS, TRANSACTIONS, Told, World, folded, spouts, topology_on
from tests.support.stores.forgetful_server import Faults, ForgetfulServer

STEPS = int(os.environ.get("TXBATCH_FORGETFUL_STEPS", "1000"))


def play(world: World, server: ForgetfulServer, steps: int) -> None:
    """Runs start, overlap and end until the server has had `steps` calls; then one finishes."""
    expected, random = folded(), world.random
    while server.call_count < steps:
        if not world.runs or random.random() < 0.01:
            server.faults = Faults.drawn(random)
            world.start()
        if world.runs:
            newest = random.random() < 0.9
            world.step(len(world.runs) - 1 if newest else random.randrange(len(world.runs)))
        world.check(expected)
        if world.committed() == TRANSACTIONS and not world.runs:
            server.inner.delete(*server.inner.keys("*"))  # the whole input once more
            server.reset()
    server.faults = Faults()
    done = world.ended["done"]
    while world.ended["done"] == done:
        if not world.runs:
            world.start()
        world.step(len(world.runs) - 1)
        world.check(expected)
    for stack, _ in world.runs:
        stack.close()


@pytest.fixture
def world_of(tmp_path) -> Iterator[Any]:
    with ExitStack() as stack:

        def make(kind: str, *, reads: bool, seed: int = 1) -> tuple[World, ForgetfulServer]:
            random = Random(f"{kind} {reads} {seed}")
            server = ForgetfulServer(random)
            Told.server = server
            world = World(topology_on(spouts(tmp_path)[kind], reads=reads), server, random, reads)
            stack.enter_context(mock.patch.object(stage, "_LazyReader", side_effect=world.reader))
            return world, server

        yield make


@pytest.mark.often("fixed-reading", "told-reading", "files-reading", "partitioned-blind", "opaque-blind")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("reads", [True, False], ids=["reading", "blind"])
@pytest.mark.parametrize("kind", KINDS)
def test_state_is_a_prefix_of_the_input_whatever_suffix_the_server_loses(world_of, kind, reads):
    world, server = world_of(kind, reads=reads)
    play(world, server, STEPS)
    assert server.forgotten
    assert world.ended["REGRESSED"] + world.ended["returned to an earlier state"]


def test_a_run_that_cannot_be_told_its_last_write_was_lost_does_not_say_done(world_of):
    """The server goes back after the last commit was answered and before the run ends."""
    world, server = world_of("fixed", reads=False)
    world.start()
    while world.committed() < TRANSACTIONS:
        world.step(0)
    server.faults = Faults(forget=1.0)
    while world.runs:
        world.step(0)
    assert world.ended == {"REGRESSED": 1}


def test_a_server_that_never_answers_starts_no_run(world_of):
    world, server = world_of("fixed", reads=False)
    server.faults = Faults(lose_request=1.0)
    world.start()
    assert not world.runs
    assert world.ended == {"did not answer": 1}
