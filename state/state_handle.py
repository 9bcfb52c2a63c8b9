"""What all typed state handles share: name, declared types, checks, and the session they live in."""

from __future__ import annotations

import math
from operator import index
from typing import Any, Self

from state.errors import TopologyError
from state.keys import check_name
from state.session import StateSession
from state.write_set import MAX_INTEGER, Field, StateKind, StateWrites, ValueType

_TYPES: dict[ValueType, type[Any]] = {
    ValueType.INT: int,
    ValueType.FLOAT: float,
    ValueType.STR: str,
    ValueType.BYTES: bytes,
}


class StateHandle:
    """What all handles share: a name, a Redis type, declared types and the session they live in.

    Args:
        name: state name; the plain Redis key is ``{topology_id}:name``.

    Raises:
        TopologyError: the name or a type cannot be used.
    """

    kind: StateKind
    value_type: ValueType
    field_type: ValueType

    def __init__(self, name: str) -> None:
        self.name = check_name("state name", name)
        self._is_declared = False
        self._session: StateSession | None = None
        self._writes: StateWrites | None = None

    def __set_name__(self, owner: type, attribute: str) -> None:
        """The handle stands in a class body."""
        self._is_declared = True

    def bind(self, session: StateSession) -> Self:
        """A live copy that follows `session`; called by the executor for every instance."""
        live = object.__new__(type(self))
        live.__dict__.update(self.__dict__)
        live._session, live._writes = session, None
        live.detach()
        session.register(live)
        return live

    def attach(self, writes: StateWrites) -> None:
        """Called by the session when it opens."""
        self._writes = writes

    def detach(self) -> None:
        """Called by the session when it closes."""
        self._writes = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _open(self) -> StateWrites:
        if self._writes is None:
            if self._session is None and not self._is_declared:
                made = f"{type(self).__name__}({self.name!r})"
                raise TopologyError(
                    f"state {self.name!r} is not declared: {made} was made by code that ran, and state belongs to a "
                    f"committer's class; write `{self.name} = {made}` in the class body, and use self.{self.name}"
                )
            raise TopologyError(
                f"state {self.name!r} is only open while finish_batch runs, and as an attribute of self; gather in "
                "execute, and write there"
            )
        return self._writes

    def _read(self, fields: list[Any]) -> dict[Field, Any]:
        self._open()
        assert self._session is not None
        return self._session.read(self.name, self.kind, self.value_type, fields)

    def _check(self, what: str, value: Any, declared: ValueType) -> Any:
        """`value` if it is exactly of the declared type and can be stored; an int for what stands for one."""
        if declared is ValueType.INT:
            value = _as_int(value)
        if type(value) is not _TYPES[declared]:
            raise TypeError(
                f"state {self.name!r} was given {what} {value!r} of type {type(value).__name__}, "
                f"declared is {declared.value}"
            )
        if declared is ValueType.INT and not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise ValueError(f"state {self.name!r} was given {what} {value}, outside ±{MAX_INTEGER}")
        if declared is ValueType.FLOAT and not math.isfinite(value):
            raise ValueError(f"state {self.name!r} was given {what} {value}, which is not a finite number")
        if declared is ValueType.STR:
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"state {self.name!r} was given {what} {value!r}, which is not Unicode") from None
        return value

    def _check_delta(self, by: Any) -> Any:
        if self.value_type is ValueType.FLOAT:
            by = as_float(by)
        if self.value_type not in (ValueType.INT, ValueType.FLOAT):
            raise TypeError(f"state {self.name!r} of {self.value_type.value} values cannot be incremented by {by!r}")
        return self._check("increment", by, self.value_type)

    def _add(self, field: Field, by: Any) -> None:
        """Adds a checked delta; floats of one transaction collapse by addition to one delta."""
        writes = self._open()
        if self.value_type is ValueType.INT or field in writes.puts or field in writes.deletes:
            writes.increment(field, by)
        elif field in writes.increments:
            writes.increments[field][0] += by
        else:
            writes.increments[field] = [by]


def _as_int(value: Any) -> Any:
    """An int for what `operator.index` accepts, such as NumPy's integers; not for a bool, which is a mistake here."""
    if type(value) is int or type(value) is bool:
        return value
    try:
        return index(value)
    except TypeError:
        return value


def as_float(value: Any) -> Any:
    """A float for an integer, however it is given; anything else as it is."""
    value = _as_int(value)
    return float(value) if type(value) is int else value


def declared_type(what: str, given: type | str, allowed: tuple[ValueType, ...] = tuple(ValueType)) -> ValueType:
    """The value type a handle was declared with, given as a type or its name.

    Raises:
        TopologyError: the type cannot be stored there.
    """
    name = given.__name__ if isinstance(given, type) else given
    if name not in [value_type.value for value_type in allowed]:
        raise TopologyError(f"{what} is declared as {name!r}, use one of {', '.join(allowed)}")
    return ValueType(name)


FIELD_TYPES = (ValueType.STR, ValueType.INT, ValueType.BYTES)
