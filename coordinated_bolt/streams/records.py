"""Rows as objects of a class of the user's, a NamedTuple or a dataclass, whose attributes are a stream's fields.

A bolt whose `execute` is annotated with such a class is given its objects, with the types that it names; a component
may name one as its `output_fields`, and emit its objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from coordinated_bolt.columns import Rows
from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import TupleOrigin, cut
from state.errors import TopologyError

_SCALARS = {
    str: frozenset({str}),
    bytes: frozenset({bytes}),
    bool: frozenset({bool}),
    int: frozenset({int, bool}),
    float: frozenset({float, int}),
    NoneType: frozenset({NoneType}),
}
"""The types of values that an annotation allows, as type checkers see it."""


class DataclassObject(Protocol):
    """An object of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


EmittedRow: TypeAlias = Sequence[Any] | DataclassObject
"""What `emit` takes: the values in the order of the stream's fields, or an object that has the fields as attributes."""


class WrongTypeError(TypeError):
    """A tuple has a value of another type than the record class that a bolt takes."""


def is_record_class(candidate: object) -> bool:
    """Returns whether this is a NamedTuple or a dataclass; not an object of one."""
    is_named_tuple = isinstance(candidate, type) and issubclass(candidate, tuple) and hasattr(candidate, "_fields")
    return is_named_tuple or (isinstance(candidate, type) and is_dataclass(candidate))


def record_fields(record_class: Any) -> tuple[str, ...]:
    """Returns the names of a record's values, in the order in which its class takes them."""
    if is_dataclass(record_class):
        return tuple(field.name for field in fields(record_class) if field.init)
    return tuple(record_class._fields)


def row_of(value: Any, stream_fields: Sequence[str]) -> list[Any] | None:
    """Returns a record as a row of a stream; None if it is no record, or has other fields than the stream."""
    kind: Any = type(value)
    get = _getter(kind, tuple(stream_fields))
    return None if get is None else get(value)


@lru_cache(maxsize=1024)
def _getter(kind: type[Any], stream_fields: tuple[str, ...]) -> Callable[[Any], list[Any]] | None:
    """Returns what makes a row of the objects of a class; None if they are no records of that stream."""
    if not is_record_class(kind) or sorted(record_fields(kind)) != sorted(stream_fields):
        return None
    get = attrgetter(*stream_fields)
    return (lambda value: [get(value)]) if len(stream_fields) == 1 else (lambda value: list(get(value)))


def record_class_taken(bolt: object) -> type[Any] | None:
    """Returns the record class that a bolt's `execute` is annotated to take; None if it takes a `Tuple`.

    Called on the driver, where the names that an annotation may use are known.

    Raises:
        TopologyError: the annotation cannot be understood.
    """
    execute: Any = getattr(type(bolt), "execute", None)
    annotations = [item for item in getattr(execute, "__annotations__", {}).items() if item[0] != "return"]
    if execute is None or not annotations or annotations[0][0] != execute.__code__.co_varnames[1]:
        return None
    name, annotation = annotations[0]
    try:
        taken: Any
        (taken,) = get_type_hints(SimpleNamespace(__annotations__={name: annotation}), execute.__globals__).values()
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        if "Tuple" in str(annotation):  # imported for type checkers only
            return None
        raise TopologyError(
            f"execute of {type(bolt).__name__} takes {annotation!r}, which its module does not know when it runs "
            f"({error}); define that class at the top of the module or import it there, or annotate a Tuple"
        ) from None
    if not is_record_class(taken):
        return None
    if is_dataclass(taken) and any(field.init and field.kw_only for field in fields(taken)):
        raise TopologyError(
            f"execute of {type(bolt).__name__} takes {annotation}, a dataclass with kw_only fields; make them "
            "positional"
        )
    return cast("type[Any]", taken)


class RecordReader:
    """Makes records of the rows that a bolt receives; one for a task, where it runs.

    Args:
        record_class: what is made.
    """

    def __init__(self, record_class: type[Any]) -> None:
        self._record_class = record_class
        self._is_named_tuple = "_make" in vars(record_class)
        try:
            hints = get_type_hints(record_class)
        except NameError:  # of a class that travels by value, without the module that knows the name
            hints = {}
        self._allowed = {name: _allowed(hints.get(name, Any)) for name in record_fields(record_class)}

    def read(self, rows: Rows, origin: TupleOrigin) -> Iterator[Any]:
        """Returns a record for each row of one origin, whose stream may have more fields, in any order.

        Raises:
            WrongTypeError: a value has another type than the class declares.
        """
        batch = TupleBatch(rows, origin)
        columns = {name: batch.column(name) for name in self._allowed}
        for name, allowed in self._allowed.items():
            if allowed and not allowed.issuperset(map(type, columns[name])):
                raise self._wrong_type(
                    name, next(value for value in columns[name] if type(value) not in allowed), origin
                )
        if self._is_named_tuple:  # whose own __new__ is a Python function around this one
            return map(tuple.__new__, repeat(self._record_class), zip(*columns.values(), strict=True))
        return map(self._record_class, *columns.values())

    def _wrong_type(self, name: str, value: Any, origin: TupleOrigin) -> WrongTypeError:
        allowed = " or ".join(sorted(kind.__name__ for kind in self._allowed[name]))
        return WrongTypeError(
            f"{name!r} is {cut(value, 60)} ({type(value).__name__}) on stream {origin.stream_id!r} of "
            f"{origin.source_component!r}, but {self._record_class.__name__} declares {allowed}; emit that, or declare "
            f"{type(value).__name__}"
        )


def _allowed(annotation: Any) -> frozenset[type]:
    """Returns the types of values that an annotation of scalars allows; none if it says something else."""
    if get_origin(annotation) in (Union, UnionType):
        each = [_allowed(part) for part in get_args(annotation)]
        return frozenset().union(*each) if all(each) else frozenset()
    return _SCALARS.get(annotation, frozenset())
