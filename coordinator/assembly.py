"""Puts a run together: ownership of the topology, state machine, metadata and coordinator, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

from coordinator.attempt_watch import AttemptWatch
from coordinator.coordinator import Coordinator
from coordinator.engine import Engine
from coordinator.metadata_log import MetadataLog
from coordinator.options import RunOptions
from coordinator.plan import Plan
from coordinator.publisher import Publisher
from coordinator.run_summary import RunStatistics
from coordinator.spout_start import SpoutStart
from coordinator.spouts.committing import ICommitterTransactionalSpout
from coordinator.spouts.count_coordinator import CountCoordinator
from coordinator.spouts.opaque import OpaqueCountCoordinator
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from coordinator.takeover import Takeover
from coordinator.topology import Topology
from coordinator.transactions import TransactionCoordinator
from state import RECEIPTS_KEPT, RedisStore, own_copy


@contextmanager
def assembled(
    topology: Topology,
    plan: Plan,
    store: RedisStore,
    engine: Engine,
    options: RunOptions,
    *,
    nonce: str,
    new_generation: str,
    clock: Callable[[], float],
    draw_bits: Callable[[int], int],
    on_progress: Callable[[RunStatistics], None] | None = None,
    pause: Callable[[float], None] | None = None,
    watch: AttemptWatch | None = None,
) -> Iterator[Coordinator]:
    """Becomes the owner of a topology and yields the coordinator of a run that goes on where the last one ended.

    Args:
        topology: what is run.
        plan: the same, planned.
        store: where its state is; the server was checked.
        engine: runs its waves; closed by the caller.
        options: bounds of the run.
        nonce: 128-bit random, hexadecimal, new for every run; the engine's readers of state were given the same.
        new_generation: the same, for the topology should this be its first start.
        clock: seconds, monotonic.
        draw_bits: number of bits -> a random number, for the attempts' identities. It may come from a seed; `nonce`
            must not, or two runs with equal seeds would own the topology at the same time.
        on_progress: called with the statistics after every event.
        pause: waits so many seconds before a spout that failed to start is asked again; None does not wait.
        watch: told of every attempt, and may hold its phases.

    Raises:
        TransactionError: the topology cannot be owned; see `Takeover.take`.
        UserCodeError, SourceError: the spout cannot be started.
    """
    context = plan.wirings[plan.emitter_tasks[0]].context()
    options = fitting(topology, options)
    start = SpoutStart(topology, context, tries=options.max_attempts, pause=pause or _ignore)
    with ExitStack() as resources:
        source = start.coordinator(resources)
        committer = start.committer(resources)
        taken = Takeover(topology, store, start, source, options).take(nonce=nonce, new_generation=new_generation)
        metadata, is_opaque = taken.metadata, isinstance(source, OpaqueCountCoordinator)
        machine = _machine(taken.committed_txid, metadata, options, draw_bits, is_opaque=is_opaque)
        _resume(start, source, metadata, machine)
        coordinator = Coordinator(
            plan=plan,
            source=source,
            engine=engine,
            publisher=Publisher(store, topology.topology_id),
            server_watch=store.watch(clock),
            machine=machine,
            metadata=metadata,
            options=options,
            clock=clock,
            on_progress=on_progress or _ignore,
            message_timeout_s=topology.message_timeout_s,
            committer=committer,
            last_group=() if committer is None else store.last_group(),
            notices=taken.notices,
            watch=watch,
        )
        yield resources.enter_context(closing(coordinator))


def _machine(
    committed_txid: int,
    metadata: MetadataLog,
    options: RunOptions,
    draw_bits: Callable[[int], int],
    *,
    is_opaque: bool,
) -> TransactionCoordinator:
    """The state machine, at the first uncommitted txid."""
    return TransactionCoordinator(
        currtx=committed_txid + 1,
        metadata=metadata.coordinator,
        max_spout_pending=options.window(),
        commit_group_max=options.commit_group_max,
        new_attempt_id=lambda: draw_bits(64),
        is_opaque=is_opaque,
    )


def _resume(
    start: SpoutStart, source: SpoutCoordinator, metadata: MetadataLog, machine: TransactionCoordinator
) -> None:
    """Tells the spout's coordinator where earlier runs stopped; it may change what it is given."""
    if isinstance(source, CountCoordinator):
        start.follow(source, metadata)
    source.inform(RunSoFar(machine.last_txid(), own_copy(machine.last_metadata()), machine.currtx - 1))
    start.resume(source, machine.last_txid(), machine.last_metadata())


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


def _ignore(_: object) -> None:
    """Neither progress nor a pause is wanted."""
