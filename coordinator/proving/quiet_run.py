"""A run without faults, transaction by transaction, with everything that its tasks emit, read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from committers.task_report import TaskReport
from coordinator.proving.watch import Watch
from coordinator.testing.cluster.cluster import IN_MEMORY, LocalCluster
from coordinator.testing.cluster.recorder import Emission
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.commits.packed_writes import unpacked
from state.commits.state_writes import StateWrites
from state.redis_admin.topology_reader import ANSWER_TIMEOUT_S, TopologyReader
from state.redis_client.connection import RedisConnection

Place = tuple[str, int]
"""A component, and the id of one of its tasks."""


@dataclass(frozen=True, slots=True)
class QuietTransaction:
    """The record of one transaction.

    Attributes:
        metadata: scope -> metadata that the spout has cut.
        emitted: component id -> what its tasks emitted.
        writes: task -> state -> the changes to that state.
        reads: task -> the fields that it read, as (state, field).
    """

    metadata: Mapping[str, Any]
    emitted: Mapping[str, list[Emission]]
    writes: Mapping[Place, Mapping[str, StateWrites]]
    reads: Mapping[Place, frozenset[tuple[str, Any]]]

    def has_written(self) -> bool:
        """Returns whether the transaction changes any state."""
        return any(changed.operations() for states in self.writes.values() for changed in states.values())


@dataclass(frozen=True, slots=True)
class Kept:
    """The state and the dead letters that a run has left.

    Attributes:
        states: state -> its contents, decoded as declared.
        letters: the dead letters, as (component, reason, values).
    """

    states: Mapping[str, Any]
    letters: Sequence[tuple[str, str, tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class QuietRun:
    """The whole run.

    Attributes:
        transactions: its transactions, from txid 1.
        is_whole: whether these were the whole input.
        expired_parts: how many parts and fields of states had expired when they were written.
    """

    transactions: Sequence[QuietTransaction]
    is_whole: bool
    kept: Kept
    expired_parts: int = 0


def quiet_run(topology: Topology, batches: int, watch: Watch | None = None) -> QuietRun:
    """Runs the first batches of a topology in this process, perhaps under a watch.

    Raises:
        TransactionError: the run fails.
    """
    options = RunOptions(max_spout_pending=1, commit_group_max=1, last_txid=batches + 1, notifies_spout=False)
    found: list[QuietTransaction] = []
    with LocalCluster() as cluster:
        run = cluster.submit(topology, options=options)
        run.hold("commit")
        reader = TopologyReader(RedisConnection(cluster.client, IN_MEMORY, timeout_s=ANSWER_TIMEOUT_S))
        for txid in range(1, batches + 1):
            if watch is None:
                run.run_until_idle()
            else:
                with watch:
                    run.run_until_idle()
            if not run.held():
                break
            known = reader.transaction(topology.topology_id, txid)
            assert known is not None
            emitted = {c.component_id: run.emitted(c.component_id, txid) for c in topology.components}
            found.append(QuietTransaction(known.metadata, emitted, *_changes(run.held_reports(txid))))
            run.ack(txid)
            while run.statistics.last_txid < txid and run.tick():
                pass  # bounded: it has what it publishes
        kept = Kept(run.snapshot().states, letters_of(run.dead_letters()))
        if len(found) == batches:
            run.run_until_idle()
        return QuietRun(found, not run.held(), kept, run.statistics.expired_parts)


def letters_of(letters: Sequence[Any]) -> list[tuple[str, str, tuple[Any, ...]]]:
    """Returns component, reason and values of dead letters, which do not depend on tasks, sorted."""
    found = [(letter.component_id, letter.reason, letter.values) for letter in letters]
    return sorted(found, key=repr)


def _changes(
    reports: Sequence[TaskReport],
) -> tuple[dict[Place, dict[str, StateWrites]], dict[Place, frozenset[tuple[str, Any]]]]:
    writes: dict[Place, dict[str, StateWrites]] = {}
    reads: dict[Place, frozenset[tuple[str, Any]]] = {}
    for report in reports:
        place = (report.component_id, report.task_id)
        writes[place] = {
            name: unpacked(changed) for write_set in report.write_sets for name, changed in write_set.states.items()
        }
        reads[place] = frozenset((name, field) for result in report.results for name, field in result.reads)
    return writes, reads
