"""Random scenarios on the stages Spark runs, in this process: how many, within which bounds, and what they commit."""

from __future__ import annotations

import os
from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import settings

from coordinator import Topology
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.coordinator import Coordinator
from state.commits.commit import Commit, CommitReply
from tests.support.property_lengths import examples
from tests.support.runs.whole_runs import RandomFaults, run
from tests.support.scenarios.random_topologies import Scenario
from tests.support.stores.memory_store import MemoryStore


def drawn_at_length(by_default: int) -> settings:
    """As many examples as `TXBATCH_RANDOM_EXAMPLES` says; those of the default are always the same."""
    asked = os.environ.get("TXBATCH_RANDOM_EXAMPLES")
    count = examples(by_default) if asked is None else int(asked)
    return settings(deadline=None, max_examples=count, derandomize=asked is None, database=None)


def run_scenario(
    scenario: Scenario, topology: Topology, store: MemoryStore, made: Plan, *, fault_budget: int = 0, **options: Any
) -> Coordinator:
    """A run within the scenario's bounds."""
    bounds = {"max_spout_pending": scenario.window, "commit_group_max": scenario.group}
    bounds["commit_operations_max"] = scenario.operations_max
    faults = RandomFaults(Random(scenario.seed), fault_budget)
    return run(topology, store, made=made, seed=scenario.seed, fault=faults, **bounds, **options)


class WritingStore(MemoryStore):
    """Keeps what every commit asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[tuple[Any, ...]] = []

    def commit(self, commit: Commit) -> CommitReply:
        self.commits.append((commit.attempts, deepcopy(commit.write_set), dict(commit.metadata), commit.forget))
        return super().commit(commit)


def counts_of(coordinator: Coordinator) -> dict[str, Any]:
    """What each component has done, without how long it took."""
    done = {name: found.to_dict() for name, found in coordinator.statistics.components.items()}
    return {name: {k: v for k, v in found.items() if not k.endswith("_ns")} for name, found in done.items()}
