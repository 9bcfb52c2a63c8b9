"""Runs the first batches of a topology in this process, and returns the tuples and writes of every component.

Nothing leaves the process: state is in memory, empty at the start, and dropped at the end; sources are read from their
beginning, and are never notified of commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from committers.task_report import TaskReport
from coordinator.plain.plain_topology import PlainTopology
from coordinator.spouts.row_spout import RowSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.testing.cluster.recorder import Emission
from coordinator.testing.cluster.transactional_run import TransactionalRun
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import described
from coordinator.topology.pictures.picture_maker import class_name
from coordinator.transactional.options import RunOptions
from state.commits.dead_letters import DeadLetter
from state.commits.packed_writes import unpacked
from state.commits.state_writes import StateWrites
from state.errors import TopologyError, TransactionError
from state.keys import Keys, split_member
from state.kinds.state_family import StateFamily
from state.values.state_kind import StateKind
from state.values.value_form import ValueForm, form_of


@dataclass(frozen=True, slots=True)
class DryComponent:
    """The tuples that one component emitted for one batch.

    Attributes:
        kind: "spout", "bolt" or "committer".
        class_name: class of the user's object.
        emitted: (stream id, values) of every tuple, by task.
    """

    component_id: str
    kind: str
    class_name: str
    emitted: tuple[Emission, ...]


@dataclass(frozen=True, slots=True)
class DryChange:
    """One change of a state.

    Attributes:
        operation: "put", "increment", "delete" or "append".
        field: the field, or the member of a set; "" for a value or a list.
        value: the new value, the amount, or the appended item; None for a deletion.
    """

    operation: str
    field: Any
    value: Any


@dataclass(frozen=True, slots=True)
class DryWrites:
    """The changes that the tasks of a committer would write to one state.

    Attributes:
        component_id: the committer.
        state: name of the state.
        key: Redis key of the state, or of one part of it.
        redis_type: the type that Redis gives the key.
        changes: the changes, task by task, and by kind of change.
    """

    component_id: str
    state: str
    key: str
    redis_type: str
    changes: tuple[DryChange, ...]


@dataclass(frozen=True, slots=True)
class DryBatch:
    """One batch on its way through the whole topology.

    Attributes:
        txid: the transaction, from 1.
        components: the components' tuples, in flow order.
        writes: the committers' changes; None if the commit phase was not run.
        dead_letters: the dead letters; none if the commit phase was not run.
        expired_parts: how many parts and fields of states had already expired when they were written.
    """

    txid: int
    components: tuple[DryComponent, ...]
    writes: tuple[DryWrites, ...] | None = None
    dead_letters: tuple[DeadLetter, ...] = ()
    expired_parts: int = 0


def dry_run(topology: Topology | PlainTopology, *, batches: int = 1) -> Iterator[DryBatch]:
    """Yields the first batches of a topology, each as soon as it has run (driver).

    A batch that fails is yielded as far as it got, and then its error is raised. A topology with external effects stops
    before the commit phase. The input may have fewer batches, or none yet.

    Args:
        topology: a transactional topology whose source can be read from this process.
        batches: most batches to run.

    Raises:
        TopologyError: this topology cannot be run dry; the message says why.
        TransactionError: a batch fails as in a run, for example with a `UserCodeError` with component and traceback.
    """
    checked = runnable(topology)
    has_effects = any(component.has_external_effects for component in checked.components)
    options = RunOptions(
        max_spout_pending=batches if has_effects else 1, commit_group_max=1, last_txid=batches, notifies_spout=False
    )
    with LocalCluster() as cluster:
        run = cluster.submit(checked, options=options)
        run.hold("processing" if has_effects else "commit")
        yield from _processed(run, checked, batches) if has_effects else _whole(run, checked, batches)


def runnable(topology: Topology | PlainTopology) -> Topology:
    """Returns the topology if it can be run dry; otherwise raises a TopologyError that says why it cannot."""
    if isinstance(topology, PlainTopology):
        raise TopologyError(
            f"topology {topology.topology_id!r} is a plain one: its bolts write where they like, so it cannot be run "
            "without effects; try its bolts on a LocalCluster, or run it on data that does not matter"
        )
    if not isinstance(topology, Topology):
        raise TopologyError(f"dry_run got {described(topology)}; give the result of a builder's build()")
    if isinstance(topology.spout.spec, RowSpout):
        raise TopologyError(
            f"component {topology.spout.component_id!r} reads DataFrames, which only Spark can read; try the bolts "
            "with run_bolt, or give a factory of the same bolts over a FixedBatchesSpout"
        )
    return topology


def _whole(run: TransactionalRun, topology: Topology, batches: int) -> Iterator[DryBatch]:
    """Yields batches that run through both phases; each is then published to this run's state in memory."""
    for txid in range(1, batches + 1):
        yield from whole_batch(run, topology, txid)
        if run.statistics.last_txid < txid:
            return


def whole_batch(run: TransactionalRun, topology: Topology, txid: int) -> Iterator[DryBatch]:
    """Yields one batch of a run that holds its commits; none if the input has no more."""
    yield from _moved(run, topology, txid)
    if not run.held():
        return
    writes = tuple(_writes(run.held_reports(txid), topology))
    batch = DryBatch(txid, _components(run, topology, txid), writes)
    run.ack(txid)
    expired_before = run.statistics.expired_parts
    try:
        while run.statistics.last_txid < txid and run.tick():
            pass  # bounded: it has what it publishes
    except TransactionError:
        yield batch
        raise
    expired = run.statistics.expired_parts - expired_before
    letters = tuple(each for each in run.dead_letters() if each.txid == txid)
    yield replace(batch, dead_letters=letters, expired_parts=expired)


def _processed(run: TransactionalRun, topology: Topology, batches: int) -> Iterator[DryBatch]:
    """Yields batches that run only through the processing phase."""
    yield from _moved(run, topology, 1)
    for held in run.held()[:batches]:
        yield DryBatch(held.attempt.txid, _components(run, topology, held.attempt.txid))


def _moved(run: TransactionalRun, topology: Topology, txid: int) -> Iterator[DryBatch]:
    """Advances the run until it is idle; if it fails, yields the batch as far as it got."""
    try:
        run.run_until_idle()
    except TransactionError:
        yield DryBatch(txid, _components(run, topology, txid))
        raise


def _components(run: TransactionalRun, topology: Topology, txid: int) -> tuple[DryComponent, ...]:
    return tuple(
        DryComponent(
            component.component_id,
            component.kind.value,
            class_name(component.spec),
            tuple(run.emitted(component.component_id, txid)),
        )
        for component in topology.components
    )


def _writes(reports: Sequence[TaskReport], topology: Topology) -> Iterator[DryWrites]:
    keys, changes = Keys(topology.topology_id), dict[tuple[str, str, str, str], list[DryChange]]()
    forms = {
        handle.name: form_of(
            handle.value_type, handle.template.scale if isinstance(handle, StateFamily) else handle.scale
        )
        for handle in topology.states
    }
    for report in reports:
        for write_set in report.write_sets:
            for name, writes in write_set.states.items():
                state = split_member(name)[0]
                shown = keys.shown(name, topology.shard_count)
                key = (report.component_id, state, shown, writes.kind.value)
                changes.setdefault(key, []).extend(_changes(unpacked(writes), forms[state]))
    components = [report.component_id for report in reports]
    ordered = sorted(changes, key=lambda key: (components.index(key[0]), key))
    yield from (DryWrites(*key, tuple(_added_up(changes[key]))) for key in ordered if changes[key])


def _changes(writes: StateWrites, form: ValueForm | None) -> Iterator[DryChange]:
    """Yields the changes of one task, with the values that the committer wrote."""

    def given(value: Any) -> Any:
        return value if form is None else form.from_stored(value)

    yield from (DryChange("delete", field, None) for field in writes.deletes if field not in writes.puts)
    yield from (DryChange("put", field, given(value)) for field, value in writes.puts.items())
    for field, amount in writes.increments.items():
        yield DryChange("increment", field, given(sum(amount) if isinstance(amount, list) else amount))
    if writes.kind is StateKind.STREAM:
        for txid, number, *fields in writes.appends:
            entry = dict(zip(fields[::2], map(given, fields[1::2]), strict=True))
            yield DryChange("append", f"{txid}-{number}", entry)
        return
    yield from (DryChange("append", "", given(value)) for value in writes.appends)


def _added_up(changes: Sequence[DryChange]) -> list[DryChange]:
    """Returns changes with those of several tasks and calls combined for each field; appends stay separate."""
    found: dict[Any, DryChange] = {}
    for place, change in enumerate(changes):
        key = place if change.operation == "append" else (change.operation, change.field)
        former = found.get(key)
        if former is not None and change.operation == "increment":
            change = replace(change, value=former.value + change.value)  # noqa: PLW2901
        found[key] = change
    return list(found.values())
