"""The checks of the builders; each refuses with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from graphlib import CycleError, TopologicalSorter
from itertools import product

from coordinated_bolt.components.batch_bolts import BaseBatchBolt, FinishedCallback, TimeoutCallback
from coordinated_bolt.components.component import takes_batches
from coordinated_bolt.components.taken_records import record_class_taken
from coordinated_bolt.streams.records import record_fields
from coordinator.topology.building.component import Component, ComponentKind
from coordinator.topology.building.topology import ComponentGraph
from state.errors import TopologyError
from state.keys import NAME_LENGTH_MAX, check_name
from state.kinds.handles import declared_states
from state.values.shards import SHARDS_MAX
from state.values.whole import is_number, is_whole

MAX_PARALLELISM = 10_000
_FRAMEWORK = {*dir(BaseBatchBolt), *dir(FinishedCallback), *dir(TimeoutCallback)}
_HINTED = 0.7
"""How similar a name must be for a "did you mean", when a method is missing in any case."""
_SURELY_MEANT = 0.86
"""How similar a name must be to be refused for that alone; helpers named `finish` or `init_batch` are not."""


def check_parallelism(what: str, count: int, *, least: int = 1) -> None:
    """Refuses a count that is not an integer from `least` to `MAX_PARALLELISM`."""
    if not is_whole(count, least, MAX_PARALLELISM):
        raise TopologyError(f"{what} is {count!r}; give an integer from {least} to {MAX_PARALLELISM}")


def check_shard_count(topology_id: str, count: int) -> int:
    """Returns a topology's number of shards; the name of each shard has to be valid too."""
    if not is_whole(count, 1, SHARDS_MAX):
        raise TopologyError(f"shards of topology {topology_id!r} is {count!r}; give an integer from 1 to {SHARDS_MAX}")
    longest = NAME_LENGTH_MAX - len(f".{count - 1}")
    if count > 1 and len(topology_id) > longest:
        raise TopologyError(
            f"topology id {topology_id[:20]!r}… is too long for {count} shards: it has {len(topology_id)} characters; "
            f"use at most {longest}, since the name of a shard adds its number"
        )
    if count > 1:
        check_name("topology id, followed by the number of a shard,", f"{topology_id}.{count - 1}")
    return count


def check_message_timeout(seconds: float) -> float:
    """Returns the seconds; refuses anything but a finite number above 0."""
    if not is_number(seconds) or not 0 < seconds < float("inf"):
        raise TopologyError(f"message timeout is {seconds!r}; give a number of seconds above 0")
    return float(seconds)


def check_is_a(kind: type[ComponentGraph], topology: object, other_way: str) -> None:
    """Refuses a topology of another kind than the calling function runs."""
    if not isinstance(topology, kind):
        raise TopologyError(
            f"the topology is a {type(topology).__name__}, but this function runs a {kind.__name__}; {other_way}"
        )


def check_graph(components: Sequence[Component]) -> None:
    """Refuses a graph with subscriptions that are dangling, do not fit their stream, or form a cycle."""
    by_id = {component.component_id: component for component in components}
    if all(component.kind is ComponentKind.SPOUT for component in components):
        raise TopologyError("the topology has no bolt; add one with set_bolt")
    for component in components:
        if component.kind is not ComponentKind.SPOUT and not component.subscriptions:
            raise TopologyError(
                f"component {component.component_id!r} has no input; subscribe it to a component, for example with "
                ".shuffle_grouping(...)"
            )
        record_class = record_class_taken(component.spec)
        for subscription in component.subscriptions:
            _check_subscription(component, subscription.upstream_id, subscription.stream_id, by_id)
            stream = by_id[subscription.upstream_id].streams[subscription.stream_id]
            try:
                subscription.grouping.check(stream.fields, direct=stream.direct)
            except TopologyError as error:
                raise TopologyError(
                    f"component {component.component_id!r} cannot subscribe to stream {stream.stream_id!r} "
                    f"of {subscription.upstream_id!r}: {error}"
                ) from None
            if record_class and (missing := sorted({*record_fields(record_class)} - {*stream.fields})):
                raise TopologyError(
                    f"execute of {component.component_id!r} takes {record_class.__name__} with {missing}, which stream "
                    f"{stream.stream_id!r} of {subscription.upstream_id!r} lacks; it has {stream.fields}"
                )
    in_flow_order(components)


def in_flow_order(components: Sequence[Component]) -> list[Component]:
    """Returns the components, each after the components to which it subscribes.

    Raises:
        TopologyError: the components form a cycle.
    """
    sorter = TopologicalSorter({c.component_id: sorted({s.upstream_id for s in c.subscriptions}) for c in components})
    try:
        position = {component_id: place for place, component_id in enumerate(sorter.static_order())}
    except CycleError as error:
        path = " -> ".join(error.args[1])
        raise TopologyError(f"the topology has a cycle: {path}; remove a subscription, tuples flow one way") from None
    return sorted(components, key=lambda component: position[component.component_id])


def check_states(components: Sequence[Component]) -> None:
    """Refuses state outside committers, state that two components declare, and prefetched keys that no input has."""
    owners: dict[str, str] = {}
    by_id = {component.component_id: component for component in components}
    for component in components:
        states = declared_states(component.spec)
        if states and component.kind is not ComponentKind.COMMITTER:
            raise TopologyError(
                f"component {component.component_id!r} declares state {sorted(h.name for h in states.values())} but is "
                "not a committer, and only committers write state; make it an ICommitter or use set_committer_bolt"
            )
        for name in sorted(handle.name for handle in states.values()):
            if name in owners:
                raise TopologyError(
                    f"state {name!r} is declared by {owners[name]!r} and by {component.component_id!r}; only one "
                    "component may write a state, so rename one of them"
                )
            owners[name] = component.component_id
        streams = [by_id[each.upstream_id].streams[each.stream_id] for each in component.subscriptions]
        known = {field for stream in streams for field in stream.fields}
        for handle in states.values():
            unknown = sorted(set(handle.prefetched_by) - known)
            if unknown:
                raise TopologyError(
                    f"state {handle.name!r} of {component.component_id!r} prefetches by {unknown}, which no tuple of "
                    f"its inputs has; they have {sorted(known)}"
                )


def _check_subscription(component: Component, upstream_id: str, stream_id: str, by_id: dict[str, Component]) -> None:
    where = f"component {component.component_id!r} subscribes to"
    if upstream_id not in by_id:
        raise TopologyError(f"{where} the unknown component {upstream_id!r}; known: {sorted(by_id)}")
    if stream_id not in by_id[upstream_id].streams:
        known = sorted(by_id[upstream_id].streams) or "none; set its output_fields"
        raise TopologyError(f"{where} the unknown stream {stream_id!r} of {upstream_id!r}; declared: {known}")


def check_takes_tuples(component: Component) -> None:
    """Refuses a bolt of a plain topology that takes records: there tuples are acked, which takes a `Tuple`."""
    record_class = None if component.master_id else record_class_taken(component.spec)
    if record_class is not None:
        raise TopologyError(
            f"execute of {component.component_id!r} takes {record_class.__name__}, but a plain topology gives "
            "its bolts a Tuple; annotate that, and read fields as in tup['field']"
        )


def check_methods(component: Component) -> None:
    """Refuses a batch bolt that would ignore its tuples, or unintentionally do nothing at the end of a batch.

    With a misspelled name the methods of `BaseBatchBolt` do nothing, so the message names a method with a similar name.
    In every other kind of bolt `execute` is abstract, so Python itself refuses to make one without it.
    """
    bolt = component.spec
    if not isinstance(bolt, BaseBatchBolt):
        return
    where, kind = f"component {component.component_id!r}", type(bolt).__name__
    if not _overrides(bolt, "execute") and not takes_batches(type(bolt)):
        raise TopologyError(
            f"{where} would ignore every tuple: {kind} overrides neither execute nor execute_batch; "
            + (_meant(bolt, "execute", "execute_batch") or "define one of them, if only an execute that does nothing")
        )
    if _overrides(bolt, "finish_batch") or isinstance(bolt, FinishedCallback):
        return
    states = sorted(handle.name for handle in declared_states(bolt).values())
    if states and component.kind is ComponentKind.COMMITTER:
        raise TopologyError(
            f"{where} would write nothing: {kind} declares state {states} and does not override finish_batch; "
            + (_meant(bolt, "finish_batch") or "define it: only there is state open")
        )
    if (found := _near_miss(bolt, ("finish_batch",), _SURELY_MEANT)) and not found[0].startswith("_"):
        raise TopologyError(
            f"{where}: {kind} defines {found[0]} but not finish_batch; if that is what you meant, rename it"
        )


def _overrides(bolt: BaseBatchBolt, method: str) -> bool:
    return getattr(getattr(bolt, method), "__func__", None) is not getattr(BaseBatchBolt, method)


def _meant(bolt: BaseBatchBolt, *methods: str) -> str:
    """Returns a hint for a bolt that overrides none of the methods; "" if it has no method of a similar name."""
    for base in type(bolt).__mro__:
        for method in methods:
            if base not in BaseBatchBolt.__mro__ and method in vars(base):
                return f"{base.__name__} defines {method}: name it before BaseBatchBolt among the bases"
    found = _near_miss(bolt, methods, _HINTED)
    return f"it defines {found[0]}: did you mean {found[1]}?" if found else ""


def _near_miss(bolt: BaseBatchBolt, methods: tuple[str, ...], least: float) -> tuple[str, str] | None:
    """Returns a method that overrides none of txbatch's, and the given method with the most similar name."""
    names = {name for base in type(bolt).__mro__ for name, value in vars(base).items() if callable(value)}
    pairs = [(SequenceMatcher(None, *pair).ratio(), pair) for pair in product(sorted(names - _FRAMEWORK), methods)]
    likeness, found = max(pairs, default=(0.0, None))
    return found if likeness >= least else None
