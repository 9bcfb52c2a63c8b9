"""A topology that has run half-way on each backend, and what verifies it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from coordinator.operating.inspection.finding import Finding, Weight
from coordinator.operating.inspection.verify.verifier import Verification, Verifier
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from state.redis_admin.all_records import RedisRecords
from state.redis_admin.topology import RedisTopology
from tests.conftest import Backend
from tests.support.topologies.kept_states import TOPOLOGY_ID, kept_topology

COMMITTED, WINDOW = 3, 5


@dataclass
class Kept:
    """A topology on a server, with transactions that are cut and not committed.

    Attributes:
        client: to damage it with.
        topology: to read it with.
    """

    client: Any
    topology: RedisTopology

    @property
    def records(self) -> RedisRecords:
        return self.topology.records()

    def verify(self, *more: Any) -> Verification:
        return Verifier(self.records).verify(*more)

    def faults(self) -> list[Finding]:
        return [finding for finding in self.verify().findings if finding.weight is not Weight.OK]

    def fault(self) -> Finding:
        (found,) = self.faults()
        return found


def run_to(backend: Backend, last_txid: int, **topology: Any) -> None:
    """Runs the topology to a txid, with transactions beyond it cut and stored."""
    with LocalCluster(seed=1) as cluster:
        cluster.client = backend.client()
        run = cluster.submit(
            kept_topology(**topology), options=RunOptions(max_spout_pending=WINDOW, commit_group_max=2)
        )
        while run.statistics.last_txid < last_txid:
            run.tick()


@pytest.fixture
def kept(backend: Backend) -> Iterator[Kept]:
    run_to(backend, COMMITTED)
    topology = RedisTopology("redis://fake", TOPOLOGY_ID, client=backend.client(), unreachable_timeout_s=5.0)
    yield Kept(backend.client(), topology)
    topology.close()
