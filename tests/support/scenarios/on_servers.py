"""Random topologies on an engine with processes or a server of its own, against the fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import redis

from coordinator.watching.statistics.run_statistics import RunStatistics
from state.kinds.handles import declared_states
from state.redis_admin.snapshots import snapshot
from tests.support.scenarios.random_bolts import KEEPING, FileTally, topology_of
from tests.support.scenarios.random_topologies import random_scenario
from tests.support.scenarios.reference_fold import fold


def assert_folds_are_left(
    run: Callable[..., RunStatistics], client: redis.Redis, folder: Path, seeds: Iterable[int]
) -> None:
    """Runs the topology of each seed, and compares the state it leaves with that of the fold.

    Frames are not disturbed and no run is given up, which only tests in process can do; bolts fail by
    `FailedException`. There are few waves and groups: a job costs more than all that a scenario computes.
    """
    for seed in seeds:
        scenario = random_scenario(Random(seed), with_faults=False)
        scenario = replace(scenario, trips=scenario.trips[:1])
        notes = folder / str(seed)
        notes.mkdir()
        topology = topology_of(scenario, FileTally(notes), f"random{seed}")
        statistics = run(topology, max_spout_pending=12, commit_group_max=12, max_attempts=40)
        committers = [KEEPING[part.committer or 0] for part in scenario.committers()]
        handles: list[Any] = [handle for each in committers for handle in declared_states(each).values()]
        found = snapshot(client, topology.topology_id, handles)
        assert statistics.last_txid == found.txid == len(scenario.batches)
        assert found.states == fold(scenario).states[-1], f"seed {seed}"
