"""The topology of `typed_states` in one slot or over shards: run, moved to another number of them, looked at."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import count
from typing import Any

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.verifier import Verifier
from coordinator.operating.transfer.exporting import export_state
from coordinator.operating.transfer.importing import checked_export, import_state
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.redis_admin.topology import RedisTopology
from tests.support.topologies.typed_states import TOPOLOGY_ID, WORDS, typed_topology

_generations = count(1)


def over(topology: Topology, shard_count: int) -> Topology:
    return replace(topology, shard_count=shard_count)


class Sharded:
    """The topology of `typed_states` over shards, or another one; `url` is their server's, for runs that need it."""

    def __init__(
        self, client: Any, shard_count: int = 3, topology_id: str = TOPOLOGY_ID, url: str | None = None
    ) -> None:
        self.client, self.shard_count, self.url = client, shard_count, url
        self.topology = RedisTopology("redis://under-test", topology_id, client=client)

    def run(self, last_txid: int | None = None) -> dict[str, Any]:
        """Runs it up to a transaction, or to its end, and returns its states."""
        with LocalCluster(seed=1) as cluster:
            cluster.client = self.client
            topology = over(typed_topology((*WORDS, "")), self.shard_count)
            run = cluster.submit(topology, options=RunOptions(last_txid=last_txid))
            run.run_until_idle()
            return run.snapshot().states

    def exported(self) -> bytes:
        out = io.BytesIO()
        export_state(self.topology.records(), out)
        return out.getvalue()

    def entries(self) -> dict[str, list[Any]]:
        """Returns what each state holds, by its lines in an export; our records are called "own"."""
        found: dict[str, list[Any]] = {}
        for line in map(json.loads, self.exported().splitlines()[1:-1]):
            found.setdefault(line.pop("state", "own"), []).append(line)
        return {name: sorted(lines, key=json.dumps) for name, lines in found.items()}

    def put_back(self, packed: bytes, shard_count: int = 1, *, replaces: bool = True) -> int:
        """Imports it, and returns how many keys it replaced."""
        export = checked_export(io.BytesIO(packed)).over(shard_count)
        target = self.topology.importer(shard_count)
        generation = f"{next(_generations):032x}"
        replaced = import_state(target, export, io.BytesIO(packed), generation=generation, replaces=replaces)
        self.shard_count = shard_count
        return replaced

    def faults(self) -> list[str]:
        """Returns what `txbatch verify` finds wrong."""
        findings = Verifier(self.topology.records()).verify().findings
        return [str(finding) for finding in findings if finding.weight is not Weight.OK]
