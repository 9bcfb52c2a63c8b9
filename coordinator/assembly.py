"""Puts a run together: ownership of the topology, state machine, metadata and coordinator, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from coordinated_bolt import TopologyContext
from coordinator.coordinator import Coordinator
from coordinator.engine import Engine
from coordinator.guarded_committer import GuardedCommitter
from coordinator.guarded_source import GuardedSource
from coordinator.metadata_check import check_coordinator_metadata, check_partition_metadata
from coordinator.metadata_log import MetadataLog
from coordinator.options import RunOptions
from coordinator.plan import Plan
from coordinator.publisher import Publisher
from coordinator.run_summary import RunStatistics
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaqueCountCoordinator
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionCountCoordinator
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator
from coordinator.topology import Topology
from coordinator.transactional.run_machine import RunMachine
from coordinator.transactional.run_plan import RunPlan
from state import RECEIPTS_KEPT, RedisStore, TransactionAttempt


@contextmanager
def assembled(
    topology: Topology,
    plan: Plan,
    store: RedisStore,
    engine: Engine,
    options: RunOptions,
    *,
    nonce: str,
    clock: Callable[[], float],
    draw_bits: Callable[[int], int],
    on_progress: Callable[[RunStatistics], None] | None = None,
) -> Iterator[Coordinator]:
    """Becomes the owner of a topology and yields the coordinator of a run that goes on where the last one ended.

    Args:
        topology: what is run.
        plan: the same, planned.
        store: where its state is; the server was checked.
        engine: runs its waves; closed by the caller.
        options: bounds of the run.
        nonce: 128-bit random, hexadecimal, new for every run; the engine's readers of state were given the same.
        clock: seconds, monotonic.
        draw_bits: number of bits -> a random number, for the attempts' identities.
        on_progress: called with the statistics after every event.

    Raises:
        TransactionError: the topology cannot be owned; see `RedisStore.acquire`.
    """
    context = plan.wirings[plan.emitter_tasks[0]].context()
    options = fitting(topology, options)
    with ExitStack() as resources:
        source = spout_coordinator(topology, context)
        resources.callback(source.close)
        committer = spout_committer(topology, context)
        if committer is not None:
            resources.callback(committer.close)
        acquired = store.acquire(
            nonce=nonce,
            new_generation=f"{draw_bits(128):032x}",
            topology_fingerprint=topology.fingerprint(),
            source_fingerprint=topology.spout.spec.fingerprint(),  # type: ignore[union-attr] # a spout by its place
            adopt=options.adopt,
        )
        is_opaque = isinstance(source, OpaqueCountCoordinator)
        metadata = MetadataLog(acquired.metadata, is_opaque=is_opaque, committed_txid=acquired.committed_txid)
        _check_metadata(topology.topology_id, source, metadata, acquired.committed_txid)
        yield new_coordinator(
            plan=plan,
            source=source,
            engine=engine,
            publisher=Publisher(store, topology.topology_id),
            metadata=metadata,
            committed_txid=acquired.committed_txid,
            new_attempt_id=lambda: draw_bits(64),
            options=options,
            clock=clock,
            on_progress=on_progress or _ignore,
            message_timeout_s=topology.message_timeout_s,
            committer=committer,
            last_group=() if committer is None else store.last_group(),
        )


def new_coordinator(
    *,
    plan: Plan,
    source: SpoutCoordinator,
    engine: Engine,
    publisher: Publisher,
    metadata: MetadataLog,
    committed_txid: int,
    new_attempt_id: Callable[[], int],
    options: RunOptions,
    clock: Callable[[], float],
    on_progress: Callable[[RunStatistics], None],
    message_timeout_s: float,
    committer: SpoutCommitter | None = None,
    last_group: tuple[TransactionAttempt, ...] = (),
) -> Coordinator:
    """Puts machine and driver together and tells the spout where earlier runs stopped; see `assembled`."""
    spout_id = plan.wirings[plan.emitter_tasks[0]].component_id
    guarded = GuardedSource(source, spout_id)
    is_opaque = isinstance(source, OpaqueCountCoordinator)
    machine = RunMachine(
        RunPlan(
            commit_tasks=plan.commit_tasks,
            component_order=tuple(plan.component_order),
            is_opaque=is_opaque,
            may_commit_early=plan.has_flat_commit_phase(),
            engine_overlaps=engine.overlaps,
            message_timeout_s=message_timeout_s,
        ),
        options,
        metadata,
        committed_txid=committed_txid,
        new_attempt_id=new_attempt_id,
        byte_counts={txid: guarded.estimated_bytes(stored) for txid, stored in metadata.coordinator.items()},
    )
    if isinstance(source, OpaqueCountCoordinator):
        source.follow(machine.positions)
    source.resume(machine.last_txid(), machine.last_metadata())
    return Coordinator(
        machine=machine,
        source=guarded,
        committer=GuardedCommitter(committer, spout_id),
        engine=engine,
        publisher=publisher,
        clock=clock,
        on_progress=on_progress,
        last_group=last_group,
    )


def _check_metadata(topology_id: str, source: SpoutCoordinator, metadata: MetadataLog, committed_txid: int) -> None:
    """Refuses metadata with a hole; an opaque spout stores nothing ahead of its commits, so it can have none."""
    if isinstance(source, OpaqueCountCoordinator):
        return
    counts = metadata.coordinator
    check_coordinator_metadata(topology_id, counts, committed_txid=committed_txid)
    if isinstance(source, PartitionCountCoordinator):
        check_partition_metadata(topology_id, metadata.partitions, counts, committed_txid=committed_txid)


def has_external_effects(topology: Topology) -> bool:
    """Whether a committer changes something outside declared state, and so commits one by one."""
    return any(getattr(component.spec, "external_effects", False) for component in topology.components)


def fitting(topology: Topology, options: RunOptions) -> RunOptions:
    """The options as far as the topology allows them."""
    may_be_early = not has_external_effects(topology)  # else everything lower is committed before a commit phase runs
    early_commit = options.early_commit and may_be_early
    return replace(options, commit_group_max=group_max(topology, options), early_commit=early_commit)


def group_max(topology: Topology, options: RunOptions) -> int:
    """Most transactions of one commit: what a spout's committer is told again has to be on record."""
    if has_external_effects(topology):
        return 1
    told = isinstance(topology.spout.spec, ICommitterTransactionalSpout)
    return min(options.commit_group_max, RECEIPTS_KEPT) if told else options.commit_group_max


def spout_coordinator(topology: Topology, context: TopologyContext) -> SpoutCoordinator:
    """Makes the spout's coordinator, of whichever kind, as the run uses it."""
    spec = topology.spout.spec
    if isinstance(spec, ITransactionalSpout):
        return spec.get_coordinator(context.conf, context)
    if isinstance(spec, IOpaquePartitionedTransactionalSpout):
        return OpaqueCountCoordinator(spec.get_coordinator(context.conf, context))
    assert isinstance(spec, IPartitionedTransactionalSpout)
    return PartitionCountCoordinator(spec.get_coordinator(context.conf, context))


def spout_committer(topology: Topology, context: TopologyContext) -> SpoutCommitter | None:
    """Makes who is told what is durable, if the spout wants to know."""
    spec: Any = topology.spout.spec
    return spec.get_committer(context.conf, context) if isinstance(spec, ICommitterTransactionalSpout) else None


def _ignore(statistics: RunStatistics) -> None:
    """No progress is wanted."""
