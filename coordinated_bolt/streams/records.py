"""Rows as objects of a user's NamedTuple or dataclass, whose attributes are a stream's fields.

A bolt annotated with such a class gets its objects, with the declared types; a component may use one as its
`output_fields`, and emit its objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from coordinated_bolt.streams.tuple_batch import TupleBatch
from coordinated_bolt.streams.tuples import TupleOrigin, cut
from state.errors import TopologyError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    RowT = TypeVar("RowT", default="Values")
else:
    from typing import TypeVar

    RowT = TypeVar("RowT")

_SCALARS = {
    str: frozenset({str}),
    bytes: frozenset({bytes}),
    bool: frozenset({bool}),
    int: frozenset({int, bool}),
    float: frozenset({float, int}),
    NoneType: frozenset({NoneType}),
}
"""Annotation -> the types of values it allows, as type checkers see it."""
_STANDS_FOR: dict[type, set[type]] = {int: {float}, bool: {int}}


class DataclassObject(Protocol):
    """An object of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


EmittedRow: TypeAlias = Sequence[Any] | DataclassObject
"""The argument of `emit`: values in the order of the stream's fields, or an object with the fields as attributes."""


class Values:
    """For type checkers: rows without a class, whose values functions are given as arguments."""


class RowsOf(Generic[RowT]):
    """For type checkers: a source of rows that are objects of a record class, or `Values`."""


class WrongTypeError(TypeError):
    """A tuple's value has another type than the bolt's record class declares."""


def is_record_class(candidate: object) -> bool:
    """Returns whether the candidate is a NamedTuple or dataclass itself, not an object of one."""
    is_named_tuple = isinstance(candidate, type) and issubclass(candidate, tuple) and hasattr(candidate, "_fields")
    return is_named_tuple or (isinstance(candidate, type) and is_dataclass(candidate))


def names_of(record_class: Any) -> tuple[str, ...]:
    """Returns the names of a record's values, even if its class cannot represent tuples."""
    if is_dataclass(record_class):
        return tuple(field.name for field in fields(record_class))
    return tuple(record_class._fields)


def record_fields(record_class: Any) -> tuple[str, ...]:
    """Returns the names of a record's values, in the order of its class's arguments.

    Raises:
        TopologyError: there are no fields, or not all of them are positional arguments.
    """
    found = fields(record_class) if is_dataclass(record_class) else ()
    if others := [field.name for field in found if not field.init or field.kw_only]:
        raise TopologyError(
            f"{record_class.__name__} stands for tuples, and its fields {others} are kw_only or not given at all "
            "(init=False); make them positional, or properties"
        )
    if not (names := names_of(record_class)):
        raise TopologyError(f"{record_class.__name__} stands for tuples and has no field; give it some")
    if found and (*inspect.signature(record_class).parameters,) != names:
        raise TopologyError(
            f"{record_class.__name__} stands for tuples, and its constructor takes other arguments than its fields "
            f"{list(names)}, in this order; leave out InitVar and an __init__ of your own"
        )
    return names


def field_types(record_class: Any) -> dict[str, Any]:
    """Returns name -> type of a record's values; empty if the names of types cannot be resolved here."""
    try:
        return get_type_hints(record_class)
    except NameError:  # the class travels by value
        return {}


def row_of(value: Any, stream_fields: Sequence[str]) -> list[Any] | None:
    """Returns a record as a row of a stream; None if it is not a record, or has other fields than the stream."""
    kind: Any = type(value)
    get = _getter(kind, tuple(stream_fields))
    return None if get is None else get(value)


@lru_cache(maxsize=1024)
def _getter(kind: type[Any], stream_fields: tuple[str, ...]) -> Callable[[Any], list[Any]] | None:
    """Returns a function from objects of a class to rows of a stream; None if they are not records of that stream."""
    if not is_record_class(kind) or sorted(names_of(kind)) != sorted(stream_fields):
        return None
    get = attrgetter(*stream_fields)
    return (lambda value: [get(value)]) if len(stream_fields) == 1 else (lambda value: list(get(value)))


def records_of(record_class: type[Any], columns: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Returns the records of some rows, whose columns are in the order of the class's fields, one after another."""
    rows = zip(*columns, strict=True)
    if "_make" in vars(record_class):  # a NamedTuple, whose __new__ is a Python function around this call
        return map(tuple.__new__, repeat(record_class), rows)
    return _made(record_class, rows)


def _made(record_class: type[Any], rows: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Yields records; `map` would end silently at a StopIteration from the user's `__post_init__`."""
    for values in rows:
        try:
            yield record_class(*values)
        except StopIteration as error:
            name = record_class.__name__
            raise RuntimeError(f"{name} raised StopIteration; give next() a default, or raise another") from error


class RecordReader:
    """Makes records from the rows that a bolt receives; one reader per task, where it runs.

    Args:
        record_class: the class of the records.
    """

    def __init__(self, record_class: type[Any]) -> None:
        self._record_class = record_class
        self._allowed = allowed_types(record_class)

    def read(self, batch: TupleBatch) -> tuple[Iterator[Any], Iterator[Any]]:
        """Returns a record for each tuple of a batch; its stream may have more fields, in any order.

        Also returns an iterator whose length hint is the number of records still to come.

        Raises:
            WrongTypeError: a value has another type than the class declares.
        """
        columns: dict[str, Sequence[Any]] = {name: batch.column(name) for name in self._allowed}
        for name, allowed in self._allowed.items():
            if allowed and not allowed.issuperset(map(type, columns[name])):
                wrong = next(value for value in columns[name] if type(value) not in allowed)
                raise self._wrong_type(name, wrong, batch.origin)
        first, *others = columns.values()
        left = iter(first)
        return records_of(self._record_class, [left, *others]), left

    def _wrong_type(self, name: str, value: Any, origin: TupleOrigin) -> WrongTypeError:
        kinds: list[type] = [kind for kind in (str, bytes, float, int, bool) if kind in self._allowed[name]]
        allowed = " or ".join(kind.__name__ for kind in kinds if not {*kinds} & _STANDS_FOR.get(kind, set()))
        found = "a union with None" if value is None else type(value).__name__
        return WrongTypeError(
            f"{name!r} is {cut(value, 60)} ({type(value).__name__}) on stream {origin.stream_id!r} of "
            f"{origin.source_component!r}, but {self._record_class.__name__} declares {allowed}; emit that, or declare "
            f"{found}"
        )


def allowed_types(record_class: type[Any]) -> dict[str, frozenset[type]]:
    """Returns name -> types that its values may have, for each field; empty if its annotation is not of scalars."""
    hints = field_types(record_class)
    return {name: _allowed(hints.get(name, Any)) for name in record_fields(record_class)}


def _allowed(annotation: Any) -> frozenset[type]:
    """Returns the types of values that an annotation of scalars allows; empty for any other annotation."""
    if get_origin(annotation) in (Union, UnionType):
        each = [_allowed(part) for part in get_args(annotation)]
        return frozenset().union(*each) if all(each) else frozenset()
    return _SCALARS.get(annotation, frozenset())
