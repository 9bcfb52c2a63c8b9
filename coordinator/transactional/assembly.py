"""Assembles a run on any engine: ownership of the topology, state machine, metadata and coordinator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from coordinator.spouts.committing import SpoutCommitter
from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import SpoutCoordinator
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_description import fingerprint_of
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.coordinator import CommitLimit, Coordinator
from coordinator.transactional.engine import Engine
from coordinator.transactional.guarded_spout import GuardedSpout, GuardedSpoutCommitter
from coordinator.transactional.machine.metadata_log import MetadataLog, Notes
from coordinator.transactional.machine.poison import to_keep
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_record import TransactionRecord
from coordinator.transactional.options import RunOptions, adopted_words
from coordinator.transactional.publisher import Publisher, QuarantineOrigin
from coordinator.transactional.spout_side import RepublishSide, SpoutSide
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from coordinator.transactional.start.spout_start import SpoutStart
from coordinator.transactional.start.takeover import TakenOver, Takeover
from coordinator.watching.run_observer import Observer, Observers, RunBegan
from state.attempt import Attempts
from state.records.durability import DurabilityLevel
from state.records.transaction_history import RECEIPTS_KEPT
from state.redis_topology.store import RedisStore
from state.values.own_copy import own_copy


@contextmanager
def assembled(  # noqa: D417 - the others are what their names say
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
    pause: Callable[[float], None] | None = None,
    commit_limit: CommitLimit | None = None,
    wall_clock: Callable[[], float] | None = None,
    replay: RepublishChoice | LetterChoice | None = None,
    observers: Sequence[Observer] = (),
    cancel_later_s: float = 0.0,
    begin: Callable[[], None] | None = None,
) -> Iterator[Coordinator]:
    """Becomes the owner of a topology and yields the coordinator of a run that continues where the last one ended.

    Args:
        store: holds its state; the server was checked.
        engine: runs its waves; closed by the caller.
        nonce: 128 random bits, hexadecimal, as of `new_generation`; the engine's readers of state have the same one.
        clock: seconds, monotonic; `wall_clock` since the epoch, for quarantined batches, as it by default.
        draw_bits: number of bits -> a random number, for attempt ids. It may be seeded; `nonce` must never be.
        pause: waits for that many seconds before a failed start of the spout is tried again; None does not wait.
        replay: quarantined batches or dead letters to replay, instead of reading the input.
        observers: hear what happens, from when the run owns the topology to its end.
        begin: called before the topology is owned, unless its input is empty.

    Raises:
        TransactionError: the topology cannot be owned, see `Takeover.take`, or its spout cannot be started.
    """
    options, notified = fitting(topology, options), Observers(observers)
    start = _spout_start(topology, plan, options, pause or _ignore)
    with ExitStack() as resources:
        spout = start.coordinator(resources)
        committer = start.committer(resources) if options.tells_spout else None
        if begin is not None and not start.is_empty(spout):
            begin()
        found = Takeover(topology, store, start, spout, options, choice=replay)
        taken = found.take(nonce=nonce, new_generation=new_generation)
        resources.enter_context(notified.until_the_end())
        coordinator = new_coordinator(
            plan=plan,
            spout=spout,
            engine=engine,
            metadata=taken.metadata,
            committed_txid=taken.committed_txid,
            new_attempt_id=lambda: draw_bits(64),
            options=options,
            clock=clock,
            message_timeout_s=topology.message_timeout_s,
            cancel_later_s=cancel_later_s,
            publisher=_publisher(store, taken, options, clock, wall_clock or clock),
            committer=committer,
            untold=store.last_group() if committer is not None else (),
            withheld={record.txid for record in store.quarantined()} if committer is not None else (),
            quarantined=lambda: [to_keep(each.batch, is_opaque=start.kind.is_opaque) for each in store.quarantined()],
            notices=taken.notices,
            earlier_notes=taken.notes,
            start=start,
            commit_limit=commit_limit,
            observers=notified,
            republications=taken.republications,
        )
        coordinator.statistics.durability = store.durability
        yield coordinator


def refuse_early(
    topology: Topology, plan: Plan, store: RedisStore, options: RunOptions, *, pause: Callable[[float], None]
) -> None:
    """Refuses a start that has no chance before Spark starts, which takes longest (driver, once a run).

    Another input is compared with the former one here only if nothing that it may find is accepted: the comparison may
    be long, and a run that can start makes it anyway, later, just before it becomes the owner.

    Raises:
        StateRefusedError, SourceError: see `Takeover.refuse`.
    """
    options, found = fitting(topology, options), store.look()
    if found is None or isinstance(topology.spout.spec, RowSpout) or adopted_words(options.adopt) is not None:
        return
    start = _spout_start(topology, plan, options, pause)
    if start.fingerprint() == found.source_fingerprint:
        return
    with ExitStack() as resources:
        Takeover(topology, store, start, start.coordinator(resources), options).refuse()


def new_coordinator(
    *,
    plan: Plan,
    start: SpoutStart,
    spout: SpoutCoordinator,
    engine: Engine,
    publisher: Publisher,
    metadata: MetadataLog,
    committed_txid: int,
    new_attempt_id: Callable[[], int],
    options: RunOptions,
    clock: Callable[[], float],
    message_timeout_s: float,
    cancel_later_s: float = 0.0,
    committer: SpoutCommitter | None = None,
    untold: Attempts = (),
    withheld: Collection[int] = (),
    quarantined: Callable[[], Collection[Any]] = tuple,
    notices: tuple[str, ...] = (),
    earlier_notes: Notes | None = None,
    commit_limit: CommitLimit | None = None,
    observers: Observers | None = None,
    republications: tuple[Republication, ...] | None = None,
) -> Coordinator:
    """Connects the machine with its driver, tells the spout where earlier runs stopped, and that the run begins."""
    spout_id = plan.wirings[plan.emitter_tasks[0]].component_id
    observers = observers or Observers()
    guarded = GuardedSpout(spout, spout_id, _run_so_far(metadata, committed_txid, earlier_notes or {}))
    machine = RunMachine(
        replace(_run_plan(plan, engine, start, publisher, message_timeout_s), cancel_later_s=cancel_later_s),
        options,
        metadata,
        committed_txid=committed_txid,
        new_attempt_id=new_attempt_id,
        earlier=_earlier(metadata.coordinator, guarded, earlier_notes or {}),
    )
    guarded.positions = machine.positions
    start.resume(guarded)
    machine.statistics.notices = notices
    spout_side = partial(SpoutSide if republications is None else partial(RepublishSide, republications), guarded)
    coordinator = Coordinator(
        machine=machine,
        spout=spout_side(
            GuardedSpoutCommitter(committer, spout_id),
            clock=clock,
            metadata=metadata,
            notes_of=lambda given: start.notes(spout, given),
            untold=untold,
            withheld=lambda: {*withheld, *machine.statistics.quarantined},
            quarantined=quarantined,
        ),
        engine=engine,
        publisher=publisher,
        observers=observers,
        clock=clock,
        commit_limit=commit_limit,
    )
    observers.notify(RunBegan(plan.topology_id, machine.statistics, message_timeout_s, coordinator.condition))
    return coordinator


def _spout_start(topology: Topology, plan: Plan, options: RunOptions, pause: Callable[[float], None]) -> SpoutStart:
    context = plan.wirings[plan.emitter_tasks[0]].context()
    return SpoutStart(topology, context, tries=options.max_attempts, pause=pause)


def _publisher(
    store: RedisStore,
    taken: TakenOver,
    options: RunOptions,
    clock: Callable[[], float],
    wall_clock: Callable[[], float],
) -> Publisher:
    return Publisher(
        store,
        store.keys.topology_id,
        clock=clock,
        history=options.history,
        origin=QuarantineOrigin(
            wall_clock,
            topology_fingerprint=fingerprint_of(taken.description),
            source_fingerprint=taken.source_fingerprint,
            limit=options.max_quarantined,
        ),
        server_watch=store.watch(clock),
        barriers=store if options.asked_durability().level is not DurabilityLevel.MEMORY else None,
    )


def _run_so_far(metadata: MetadataLog, committed_txid: int, earlier_notes: Notes) -> RunSoFar:
    last_txid, number_of = max(metadata.coordinator, default=committed_txid), metadata.number_of
    notes = {name: own_copy(note) for name, note in metadata.notes(earlier_notes).items() if note is not None}
    last = metadata.coordinator.get(last_txid)
    return RunSoFar(number_of(last_txid), last, number_of(committed_txid), notes=notes)


def _run_plan(plan: Plan, engine: Engine, start: SpoutStart, publisher: Publisher, message_timeout_s: float) -> RunPlan:
    made = RunPlan(
        commit_tasks=plan.commit_tasks,
        component_order=tuple(plan.component_order),
        spout_id=plan.wirings[plan.emitter_tasks[0]].component_id,
        has_partitions=start.kind.has_partitions,
        is_opaque=start.kind.is_opaque,
        may_commit_early=plan.has_flat_commit_phase(),
        engine_overlaps=engine.overlaps,
        engine_queues=engine.queues and plan.has_independent_batches,
        message_timeout_s=message_timeout_s,
        letter_limits=plan.letter_limits,
    )
    timeout_s = publisher.barrier_timeout_s
    return made if timeout_s is None else replace(made, barrier_timeout_s=timeout_s)


def _earlier(stored: Mapping[int, Any], spout: GuardedSpout, notes: Notes) -> list[TransactionRecord]:
    """Returns the transactions that earlier runs cut and did not commit, and the last that they committed."""
    return [
        TransactionRecord(txid, value, spout.estimated_bytes(value), notes.get(txid, {}))
        for txid, value in stored.items()
    ]


def has_external_effects(topology: Topology) -> bool:
    """Returns whether a committer changes anything outside declared state, which means to commit one by one."""
    return any(component.has_external_effects for component in topology.components)


def fitting(topology: Topology, options: RunOptions) -> RunOptions:
    """Returns the options, limited to what the topology allows."""
    may_be_early = not has_external_effects(topology)  # such a commit phase waits until everything lower is committed
    early_commit = options.early_commit and may_be_early
    return replace(options, commit_group_max=group_max(topology, options), early_commit=early_commit)


def group_max(topology: Topology, options: RunOptions) -> int:
    """Returns the most transactions of one commit; a spout's committer limits it to the receipts that are kept."""
    if has_external_effects(topology):
        return 1
    has_committer = SpoutKind(topology.spout.spec).has_committer
    return min(options.commit_group_max, RECEIPTS_KEPT) if has_committer else options.commit_group_max


def _ignore(_: object) -> None:
    """Does nothing; stands in for a callback that was not given."""
