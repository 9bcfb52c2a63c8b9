"""Plays many scenarios, on one core or on several; what they are and in which order they are told is the same."""

from __future__ import annotations

import gc
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

from tests.simulation.scenario import Outcome, Scenario
from tests.simulation.simulation import simulate

AHEAD = 8
"""Scenarios handed out for each process, so that none of them waits for the slowest."""


def played(scenarios: Iterable[Scenario], processes: int) -> Iterator[Outcome]:
    """Plays scenarios and gives their outcomes in the same order.

    Args:
        scenarios: taken one at a time, a little ahead of what is given.
        processes: how many; with 1 they are played in this one.
    """
    if processes == 1:
        settle()
        yield from map(simulate, scenarios)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=settle) as pool:
        waiting: deque[Future[Outcome]] = deque()
        for scenario in scenarios:
            waiting.append(pool.submit(simulate, scenario))
            if len(waiting) >= AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def settle() -> None:
    """Makes a process fit for playing: silent, and without a collector that walks everything again and again."""
    logging.getLogger("txbatch").setLevel(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
