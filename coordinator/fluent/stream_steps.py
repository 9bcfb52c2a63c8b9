"""The steps of a stream so far: checks the arguments of the next step, and adds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinated_bolt.components.component import IComponent, declared_by
from coordinated_bolt.streams.records import field_types, is_record_class, record_fields
from coordinator.fluent.aggregations import Aggregation
from coordinator.fluent.fused_bolt import Refusal
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.row_steps import ChosenFields, MapStep, RowStep, layout_of
from coordinator.fluent.stream_nodes import Step, StreamNode, steps_for
from coordinator.fluent.user_function import UserFunction, current_user_call, id_of, module_of, name_of, step_of
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

    def to_here(self) -> list[StreamNode]:
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

    def given(self, names: Fields | None, *, to_function: bool = False) -> tuple[str, ...]:
        """Returns the named fields; for None all fields, or those of the rows' class, if a function is given them."""
        if not self.fields:
            raise self.wrong(f"there are no rows: {self.node.without_rows()}")
        if names is None and to_function and self.node.record_class is not None:
            return record_fields(self.node.record_class)
        given = self.fields if names is None else names_in(names)
        if unknown := [name for name in given if name not in self.fields]:
            raise self.wrong(f"fields {unknown} are unknown; the stream has {list(self.fields)}")
        if not given:
            raise self.wrong(f"no field is named in {names!r}; give a name, or a list of names")
        return given

    def function(self, function: Callable[..., Any], of: Fields | None = None) -> UserFunction:
        """Returns a user's function, wrapped to be called for rows; adds its module.

        Without `of`, it is given records if the rows have a class.
        """
        if not callable(function):
            raise self.wrong(f"{function!r} cannot be called; give a function of the values of a row")
        record_class = self.node.record_class if of is None else None
        self.modules.update(module_of(each) for each in (function, record_class) if each is not None)
        return UserFunction(function, current_user_call(), record_class)

    def next(
        self,
        step: Step,
        fields: tuple[str, ...],
        label: str,
        *others: StreamNode,
        types: Mapping[str, Any] = MappingProxyType({}),
        record_class: type[Any] | None = None,
    ) -> StreamSteps:
        """Adds a step that takes the rows of this step, and of `others`."""
        said = current_user_call()
        parents = (self.node, *others)
        node = StreamNode(step, said, fields, types, label or step_of(said), parents, record_class=record_class)
        for parent in node.parents:
            parent.children.append(node)
        self.nodes.append(node)
        return StreamSteps(self.nodes, node, self.modules)

    def chosen(self, given: tuple[str, ...], fields: tuple[str, ...]) -> StreamSteps:
        """Adds a step that keeps some fields, under names that may be new."""
        if len({*fields}) < len(fields):
            raise self.wrong(f"the rows would have fields {list(fields)}; give names that do not repeat")
        step = ChosenFields(tuple(map(self.fields.index, given)))
        return self.next(step, fields, "", record_class=self._class_of(zip(given, fields, strict=True)))

    def mapped(self, kind: type[MapStep], function: Callable[..., Any], to: Any, of: Fields | None) -> StreamSteps:
        """Adds a step that puts a function's results into fields, see `Stream.map`."""
        given = self.given(of, to_function=True)
        record_class = to if is_record_class(to) else None
        self.modules.update(() if record_class is None else (module_of(record_class),))
        new = given if to is None else names_in(to) if record_class is None else record_fields(record_class)
        if to is None and len(given) > 1:
            raise self.wrong(f"the function is given {list(given)}; name what it returns with to=…")
        fields, layout = layout_of(self.fields, given, new)
        if not new:
            raise self.wrong(f"to={to!r} names no field; give a name, or a list of names")
        if len({*fields}) < len(fields):
            raise self.wrong(f"the rows would have fields {list(fields)}; give new names that do not repeat")
        width = None if to is None or isinstance(to, str) else len(new)

        def step(called: UserFunction, places: tuple[int, ...]) -> MapStep:
            return kind(called, places, layout, width, record_class)

        types = {} if record_class is None else field_types(record_class)
        left = ((name, name) for name in fields if name not in new)
        return self.called(function, of, fields, step, types=types, record_class=record_class or self._class_of(left))

    def called(
        self,
        function: Callable[..., Any],
        of: Fields | None,
        fields: tuple[str, ...],
        make: Callable[[UserFunction, tuple[int, ...]], RowStep | Refusal],
        **more: Any,
    ) -> StreamSteps:
        """Adds a step that calls a function; rows keep their class, unless `more`, see `next`, has another."""
        positions = tuple(map(self.fields.index, self.given(of, to_function=True)))
        made = make(self.function(function, of), positions)
        return self.next(made, fields, id_of(name_of(function)), **{"record_class": self.node.record_class, **more})

    def _class_of(self, kept: Iterable[tuple[str, str]]) -> type[Any] | None:
        """Returns the class of the rows, None if not all its fields are `kept`, given as (former name, name)."""
        record_class, names = self.node.record_class, {*kept}
        is_whole = record_class is not None and all((name, name) in names for name in record_fields(record_class))
        return record_class if is_whole else None

    def wrong(self, text: str) -> TopologyError:
        """Returns an error that begins with the user's line."""
        return TopologyError(f"{current_user_call()}: {text}")


class DeclaredRows(NamedTuple):
    """The rows of one stream of a component, as it declares them; for the fields see `StreamNode`."""

    fields: tuple[str, ...] = ()
    types: Mapping[str, Any] = MappingProxyType({})
    record_class: type[Any] | None = None


def declared_rows(component: IComponent, component_id: str) -> dict[str, DeclaredRows]:
    """Returns stream id -> rows of that stream, for all streams that a component declares."""
    declared = declared_by(component, component_id)
    return {
        name: DeclaredRows(each.fields, each.types, declared.record_classes.get(name))
        for name, each in declared.streams.items()
    }
