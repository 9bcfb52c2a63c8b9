"""States divided into parts, such as a hash per day or a set per customer. Each part has its own Redis key.

The expiry of a part's key is a function of the part alone. If it were set call by call, the outcome would depend on
when a commit happens to run: a key might be extended before it expires, or be empty in between. Instead, a key holds
exactly what was committed to it until its expiry, and nothing afterwards: a later or repeated commit writes the key and
ends it in the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from operator import index
from typing import Any, Generic, Protocol, Self, TypeVar

from state.commits.write_set import WriteSet
from state.errors import TopologyError
from state.keys import RESERVED_NAME, check_name, member_name, split_member
from state.kinds.session import StateSession
from state.values.expiry import When, expiry_ms
from state.values.first_wrong import Wrong, first_wrong
from state.values.state_kind import FieldType, Retention, StateKind, ValueType


class PartTemplate(Protocol):
    """The state that each part of a family is; see `StateHandle`."""

    name: str
    kind: StateKind
    value_type: ValueType
    field_type: FieldType
    fields_expire: bool
    prefetched_by: tuple[str, ...]
    retention: Retention

    def copied(self, session: StateSession) -> Self: ...
    def attach(self, write_set: WriteSet) -> None: ...
    def detach(self) -> None: ...


Handle = TypeVar("Handle", bound=PartTemplate)
ExpireAt = Callable[[Any], When]
"""Part -> when its key expires."""


class PartType(StrEnum):
    STR = "str"
    INT = "int"
    DATE = "date"


_TYPES: dict[PartType, type[Any]] = {PartType.STR: str, PartType.INT: int, PartType.DATE: date}


class StateFamily(Generic[Handle]):
    """A state with one Redis key for each part, declared with ``per``: ``self.views[day]`` is the state of one part.

    Each part is read, written and committed like a state of its own. Parts need not be known in advance; the first
    commit that writes to a part creates its key.

    Args:
        template: the state that each part is.
        part_name: what a part stands for, such as "day".
        part: type of the parts.
        expire_at: returns when the key of a part expires.

    Raises:
        TopologyError: an argument is not valid.
    """

    def __init__(self, template: Handle, part_name: str, part: type | str, expire_at: ExpireAt | None) -> None:
        self.template = template
        self.name = template.name
        self.part_name = check_name(f"part name of state {self.name!r}", part_name)
        if self.name == RESERVED_NAME:
            raise TopologyError(
                f"state {self.name!r} cannot have parts: keys of that form belong to txbatch; rename it"
            )
        if template.prefetched_by:
            raise TopologyError(
                f"state {self.name!r} has parts and prefetches: which part a key belongs to, no tuple field says; "
                "remove prefetch"
            )
        declared = part.__name__ if isinstance(part, type) else part
        if declared not in list(PartType):
            raise TopologyError(
                f"{part_name} of state {self.name!r} is declared as {declared!r}; use one of {', '.join(PartType)}"
            )
        if expire_at is not None and not callable(expire_at):
            raise TopologyError(
                f"expire_at of state {self.name!r} is {expire_at!r}; give a function of the {part_name}, as in "
                f"lambda {part_name}: {part_name} + timedelta(days=90)"
            )
        self.part_type = PartType(declared)
        self.expire_at = expire_at
        self._session: StateSession | None = None
        self._write_set: WriteSet | None = None
        self._open: dict[Any, Handle] = {}

    @property
    def prefetched_by(self) -> tuple[str, ...]:
        """Always empty: parts are read only when they are used."""
        return ()

    @property
    def kind(self) -> StateKind:
        """The Redis type of each part."""
        return self.template.kind

    @property
    def value_type(self) -> ValueType:
        """The type of the values of each part."""
        return self.template.value_type

    @property
    def field_type(self) -> FieldType:
        """The type of the fields of each part."""
        return self.template.field_type

    @property
    def fields_expire(self) -> bool:
        """Whether fields of a part expire by themselves."""
        return self.template.fields_expire

    def bind(self, session: StateSession) -> Self:
        """Returns a live copy that follows `session`; called by the executor for every instance."""
        live = object.__new__(type(self))
        live.__dict__.update(self.__dict__)
        live._session, live._write_set, live._open = session, None, {}
        session.register(live)
        return live

    def attach(self, write_set: WriteSet) -> None:
        """Called by the session when it opens."""
        self._write_set, self._open = write_set, {}

    def detach(self) -> None:
        """Called by the session when it closes."""
        for handle in self._open.values():
            handle.detach()
        self._write_set, self._open = None, {}

    def __getitem__(self, part: Any) -> Handle:
        """Returns the state of one part, used like any other state; valid until `finish_batch` returns.

        Raises:
            TopologyError: the state is not open.
            TypeError, ValueError: the part has another type than declared, or cannot be part of a key.
        """
        if type(part) is not _TYPES[self.part_type]:
            part = self._checked(part)  # checked first: it may equal an open part of another type, or not even itself
        found = self._open.get(part)
        if found is None:
            found = self._open[part] = self._opened(part)
        return found

    def __repr__(self) -> str:
        return f"{self.template!r}.per({self.part_name!r})"

    def first_wrong_part(self, parts: Sequence[Any]) -> Wrong | None:
        """Returns the first value that cannot be a part, and why (executor)."""
        if not {*map(type, parts)} <= {_TYPES[self.part_type]}:
            return first_wrong(parts, self._checked)
        different = list(dict.fromkeys(parts))
        wrong = first_wrong(different, self._member_of)
        return None if wrong is None else Wrong(parts.index(different[wrong.place]), wrong.error)

    def member(self, text: str) -> Handle:
        """Returns the declaration of the part with this text; for readers of stored state."""
        member = object.__new__(type(self.template))
        member.__dict__.update(self.template.__dict__)
        member.name = member_name(self.name, text)
        return member

    def _opened(self, part: Any) -> Handle:
        if self._write_set is None or self._session is None:
            raise TopologyError(
                f"state {self.name!r} is open only in finish_batch, as an attribute of self; collect in execute and "
                "write in finish_batch"
            )
        live = self.template.copied(self._session)
        live.name = self._member_of(part)
        if self.expire_at is not None:
            kept = self.template.retention
            live.retention = Retention(kept.side, kept.most, self._expiry_ms(part, self.expire_at))
        live.attach(self._write_set)
        return live

    def _member_of(self, part: Any) -> str:
        try:
            return member_name(self.name, part_text(part))
        except ValueError as error:
            raise ValueError(f"state {self.name!r} was given {self.part_name} {part!r:.250}, which {error}") from None

    def _checked(self, part: Any) -> Any:
        """Returns a part of the declared type."""
        if self.part_type is PartType.INT and type(part) is not bool and hasattr(type(part), "__index__"):
            part = index(part)
        if type(part) is not _TYPES[self.part_type]:
            raise TypeError(
                f"state {self.name!r} was given {self.part_name} {part!r} of type {type(part).__name__}, but declares "
                f"{self.part_type.value}"
            )
        return part

    def _expiry_ms(self, part: Any, expire_at: ExpireAt) -> int:
        given = expire_at(part)
        return expiry_ms(given, f"expire_at of state {self.name!r} returned {given!r} for {self.part_name} {part!r}")


def named_part(topology_id: str, text: str, part_types: Mapping[str, PartType | None]) -> tuple[str, str | None]:
    """Returns the name of the state in a user's text, and the part if there is one, escaped as in its key or not.

    `part_types` has the type of every state's parts, None for a state without parts.

    Raises:
        TopologyError: there is no such state, or it has no such part.
    """
    name, part = split_member(text)
    if part is None and ":" in text:  # the part as lists show it, not as in a key
        name, _, part = text.partition(":")
    if name not in part_types:
        known = ", ".join(sorted(part_types)) or "none"
        raise TopologyError(f"topology {topology_id!r} declares no state {name!r}; declared: {known}")
    part_type = part_types[name]
    if part is not None and part_type is None:
        raise TopologyError(f"state {name!r} of topology {topology_id!r} has no parts; name it without {part!r}")
    if part is not None and part_type is not None:
        try:
            part_of_text(part, part_type)
        except ValueError as error:
            raise TopologyError(f"part {part!r} of state {name!r} is not a {part_type.value}: {error}") from None
    return name, part


def part_text(part: Any) -> str:
    """Returns the text of a part; a date's is like 2026-11-21."""
    return part.isoformat() if isinstance(part, date) else str(part)


def part_of_text(text: str, part_type: PartType) -> Any:
    """Inverse of `part_text`, or a ValueError."""
    match part_type:
        case PartType.INT:
            part: Any = int(text)
        case PartType.DATE:
            part = date.fromisoformat(text)
        case PartType.STR:
            return text
    if part_text(part) != text:
        raise ValueError(f"{text!r} is not how {part!r} is spelled")
    return part
