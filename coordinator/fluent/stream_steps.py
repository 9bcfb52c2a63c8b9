"""The steps of a stream so far: checks the arguments of the next step, and adds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from coordinated_bolt.streams.declared import DEFAULT_STREAM, StreamSpec
from coordinator.fluent.aggregations import Aggregation
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.stream_nodes import Step, StreamNode, steps_for
from coordinator.fluent.user_function import UserFunction, current_user_call, module_of, step_of
from coordinator.option_checks import names_in
from state.errors import TopologyError
from state.kinds.handles import DeclaredState
from state.kinds.state_family import StateFamily
from state.kinds.state_handle import StateHandle

Fields = str | Sequence[str]
"""The name of one field, or of several."""


class StreamSteps:
    """All steps of a source's streams, and the step whose rows a stream has.

    Args:
        nodes: all steps; the next step is appended.
        node: the step whose rows the stream has.
        modules: modules of the user's functions; further ones are added.
    """

    def __init__(self, nodes: list[StreamNode], node: StreamNode, modules: set[str]) -> None:
        self.nodes, self.node, self.modules = nodes, node, modules

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a row's values, in order."""
        return self.node.fields

    def steps(self) -> list[StreamNode]:
        """Returns the steps from the source to these rows."""
        return steps_for(self.nodes, [self.node])

    def kept(
        self,
        kind: Callable[..., Aggregation],
        key: Fields | None,
        into: DeclaredState,
        takes: Iterable[str] = (),
        **more: Any,
    ) -> KeptAggregation:
        """Returns an aggregation with its state; raises TopologyError if they do not fit."""
        aggregation = kind(current_user_call(), *self.group(key, into), tuple(takes), **more)
        named = self.given((*aggregation.group, *aggregation.takes))
        state = aggregation.fitted(into)
        kept = KeptAggregation(aggregation, state, {name: self.node.origin_of(name) for name in named})
        kept.check_declared()
        return kept

    def group(self, key: Fields | None, into: DeclaredState) -> tuple[str | None, tuple[str, ...]]:
        """Returns the field with the part of a state, None if it has no parts, and the fields of the key."""
        if not isinstance(into, StateHandle | StateFamily):
            raise self.wrong(f"{into!r} is not a state; give one, as in HashState('counts')")
        names = () if key is None else names_in(key)
        if (key is not None and not names) or len({*names}) < len(names):
            raise self.wrong(f"key {key!r} names no fields, or one twice; give a field, a list of fields, or None")
        if isinstance(into, StateFamily) and into.expire_at is not None:
            self.modules.add(module_of(into.expire_at))
        return into.part_name if isinstance(into, StateFamily) else None, names

    def given(self, names: Fields | None) -> tuple[str, ...]:
        """Returns the named fields, or all fields for None."""
        if not self.fields:
            raise self.wrong(f"there are no rows: {self.node.without_rows()}")
        given = self.fields if names is None else names_in(names)
        if unknown := [name for name in given if name not in self.fields]:
            raise self.wrong(f"fields {unknown} are unknown; the stream has {list(self.fields)}")
        if not given:
            raise self.wrong(f"no field is named in {names!r}; give a name, or a list of names")
        return given

    def function(self, function: Callable[..., Any]) -> UserFunction:
        """Returns a user's function, wrapped to be called for rows; adds its module."""
        if not callable(function):
            raise self.wrong(f"{function!r} cannot be called; give a function of the values of a row")
        self.modules.add(module_of(function))
        return UserFunction(function, current_user_call())

    def next(
        self,
        step: Step,
        fields: tuple[str, ...],
        label: str,
        *others: StreamNode,
        types: Mapping[str, Any] = MappingProxyType({}),
    ) -> StreamSteps:
        """Adds a step that takes the rows of this step, and of `others`."""
        said = current_user_call()
        node = StreamNode(step, said, fields, types, label or step_of(said), (self.node, *others))
        for parent in node.parents:
            parent.children.append(node)
        self.nodes.append(node)
        return StreamSteps(self.nodes, node, self.modules)

    def wrong(self, text: str) -> TopologyError:
        """Returns an error that begins with the user's line."""
        return TopologyError(f"{current_user_call()}: {text}")


def default_rows(streams: Mapping[str, StreamSpec]) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Returns the fields of a component's default stream, and the types it declares for them."""
    found = streams.get(DEFAULT_STREAM)
    return (found.fields, found.types) if found else ((), {})
