"""Assembles a run on any engine: ownership of the topology, state machine, metadata and coordinator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_description import fingerprint_of
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.engine import Engine
from coordinator.transactional.machine.poison import to_keep
from coordinator.transactional.machine.run_machine import RunMachine
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_record import TransactionRecord
from coordinator.transactional.options import RunOptions, adopted_words
from coordinator.transactional.publisher import Publisher, QuarantineOrigin
from coordinator.transactional.republished_input import RepublishedInput
from coordinator.transactional.run_spout import RunSpout
from coordinator.transactional.spout_notifier import SpoutNotifier
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from coordinator.transactional.start.spout_start import SpoutStart
from coordinator.transactional.start.takeover import TakenOver, Takeover
from coordinator.transactional.surroundings import RunEnvironment
from coordinator.watching.run_observer import RunBegan
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.attempt import Attempts
from state.commits.quarantine import QuarantineRecord
from state.records.durability import DurabilityLevel
from state.records.transaction_history import RECEIPTS_KEPT
from state.redis_owner.store import RedisStore
from state.values.own_copy import own_copy


@contextmanager
def assembled(
    topology: Topology,
    plan: Plan,
    store: RedisStore,
    engine: Engine,
    options: RunOptions,
    *,
    around: RunEnvironment,
    choice: RepublishChoice | LetterChoice | None = None,
) -> Iterator[Coordinator]:
    """Becomes the owner of a topology and yields the coordinator of a run that continues where the last one ended.

    Args:
        topology: the topology to run.
        plan: the topology's plan.
        store: the topology's state, on a server that was checked.
        engine: runs the waves; the caller closes it.
        options: the run's options.
        around: what the run gets from outside.
        choice: quarantined batches or dead letters to republish, instead of reading the input.

    Raises:
        TransactionError: the topology cannot be owned, see `Takeover.take`, or its spout cannot be started.
    """
    options = fitting(topology, options)
    start = _spout_start(topology, plan, options, around.pause)
    with ExitStack() as resources:
        start.make(resources, with_committer=options.notifies_spout)
        if around.begin is not None and not start.is_empty():
            around.begin()
        takeover = Takeover(topology, store, start, options, choice=choice)
        taken = takeover.take(nonce=around.nonce, new_generation=around.new_generation)
        resources.enter_context(around.observers.until_the_end())
        coordinator = new_coordinator(
            topology,
            plan,
            engine,
            options,
            around=around,
            start=start,
            publisher=_publisher(store, taken, options, around),
            taken=taken,
            unnotified=store.last_group if start.committer is not None else tuple,
            quarantined=store.quarantined,
        )
        coordinator.statistics.durability = store.durability
        yield coordinator


def refuse_early(
    topology: Topology, plan: Plan, store: RedisStore, options: RunOptions, *, pause: Callable[[float], None]
) -> None:
    """Refuses a hopeless start before Spark starts, which takes longest (driver, once a run).

    A changed input is compared with the former one here only if the user accepts no change at all: the comparison may
    be long, and a run that can start makes it later anyway, just before it becomes the owner.

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
        Takeover(topology, store, start.make(resources), options).refuse()


def new_coordinator(
    topology: Topology,
    plan: Plan,
    engine: Engine,
    options: RunOptions,
    *,
    around: RunEnvironment,
    start: SpoutStart,
    publisher: Publisher,
    taken: TakenOver,
    unnotified: Callable[[], Attempts] = tuple,
    quarantined: Callable[[], Collection[QuarantineRecord]] = tuple,
) -> Coordinator:
    """Connects the machine with its driver, resumes the spout where earlier runs stopped, and notifies observers."""
    run_so_far, has_partitions = _run_so_far(taken), start.kind.has_partitions
    run_spout = RunSpout(start.spout, start.calls, around.clock, run_so_far, has_partitions=has_partitions)
    run_plan = _run_plan(topology, plan, engine, publisher, kind=start.kind, around=around)
    machine = RunMachine(
        run_plan,
        options,
        taken.metadata,
        committed_txid=taken.committed_txid,
        new_attempt_id=around.new_attempt_id,
        earlier=_earlier(taken, run_spout),
    )
    run_spout.how_far = machine.positions
    start.calls.call_until_answered("resume", lambda: run_spout.informed().resume())
    statistics = RunStatistics(last_txid=taken.committed_txid, notices=taken.notices)
    found = {record.txid for record in quarantined()} if start.committer is not None else set()
    coordinator = Coordinator(
        machine=machine,
        statistics=statistics,
        spout=run_spout,
        notifier=SpoutNotifier(
            start.committer,
            start.calls,
            inform=run_spout.informed,
            batch_number=taken.metadata.batch_number,
            unnotified=unnotified,
            quarantined_txids=lambda: found | machine.quarantined_txids(),
            quarantined_batches=lambda: [to_keep(each.batch, run_plan) for each in quarantined()],
        ),
        engine=engine,
        publisher=publisher,
        observers=around.observers,
        clock=around.clock,
        republished=(
            None if taken.republications is None else RepublishedInput(taken.republications, run_spout, around.clock)
        ),
        commit_limit=around.commit_limit,
    )
    began = RunBegan(plan.topology_id, statistics, topology.message_timeout_s, coordinator.condition)
    around.observers.notify(began)
    return coordinator


def _spout_start(topology: Topology, plan: Plan, options: RunOptions, pause: Callable[[float], None]) -> SpoutStart:
    context = plan.wirings[plan.emitter_tasks[0]].context()
    return SpoutStart(topology, context, tries=options.max_attempts, pause=pause)


def _publisher(store: RedisStore, taken: TakenOver, options: RunOptions, around: RunEnvironment) -> Publisher:
    return Publisher(
        store,
        store.keys.topology_id,
        clock=around.clock,
        history=options.history,
        origin=QuarantineOrigin(
            around.wall_time,
            topology_fingerprint=fingerprint_of(taken.description),
            source_fingerprint=taken.source_fingerprint,
            limit=options.max_quarantined,
        ),
        server_watch=store.watch(around.clock),
        barriers=store if options.asked_durability().level is not DurabilityLevel.MEMORY else None,
    )


def _run_so_far(taken: TakenOver) -> RunSoFar:
    metadata, committed_txid = taken.metadata, taken.committed_txid
    last_txid, number_of = max(metadata.coordinator, default=committed_txid), metadata.number_of
    notes = {name: own_copy(note) for name, note in metadata.notes(taken.notes).items() if note is not None}
    last = metadata.coordinator.get(last_txid)
    return RunSoFar(number_of(last_txid), last, number_of(committed_txid), notes=notes)


def _run_plan(
    topology: Topology, plan: Plan, engine: Engine, publisher: Publisher, *, kind: SpoutKind, around: RunEnvironment
) -> RunPlan:
    made = RunPlan(
        commit_tasks=plan.commit_tasks,
        component_order=tuple(plan.component_order),
        spout_id=topology.spout.component_id,
        has_partitions=kind.has_partitions,
        is_opaque=kind.is_opaque,
        may_commit_early=plan.has_flat_commit_phase(),
        engine_overlaps=engine.overlaps,
        engine_queues=engine.queues and plan.has_independent_batches,
        message_timeout_s=topology.message_timeout_s,
        cancel_later_s=around.cancel_later_s,
        letter_limits=plan.letter_limits,
    )
    timeout_s = publisher.barrier_timeout_s
    return made if timeout_s is None else replace(made, barrier_timeout_s=timeout_s)


def _earlier(taken: TakenOver, spout: RunSpout) -> list[TransactionRecord]:
    """Returns the transactions that earlier runs cut but did not commit, and the last one they committed."""
    return [
        TransactionRecord(txid, value, spout.estimated_bytes(value), taken.notes.get(txid, {}))
        for txid, value in taken.metadata.coordinator.items()
    ]


def has_external_effects(topology: Topology) -> bool:
    """Returns whether a committer changes anything outside declared state, so that transactions commit one by one."""
    return any(component.has_external_effects for component in topology.components)


def fitting(topology: Topology, options: RunOptions) -> RunOptions:
    """Returns the options, limited to what the topology allows."""
    may_be_early = not has_external_effects(topology)  # external effects wait until everything lower is committed
    early_commit = options.early_commit and may_be_early
    return replace(options, commit_group_max=group_max(topology, options), early_commit=early_commit)


def group_max(topology: Topology, options: RunOptions) -> int:
    """Returns the largest size of a commit group; with a spout's committer, at most the number of receipts kept."""
    if has_external_effects(topology):
        return 1
    has_committer = SpoutKind(topology.spout.spec).has_committer
    return min(options.commit_group_max, RECEIPTS_KEPT) if has_committer else options.commit_group_max
