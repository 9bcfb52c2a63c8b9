"""The state that a committer's task may read and change while one of its `finish_batch` calls runs.

A read sees the state committed when the group started, overlaid with this task's earlier writes of the same commit
group and with its writes of this transaction. Reads are recorded, because the group must end before a transaction that
has read a value written by another task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Any, Protocol

from state.commits.packed_writes import unpacked
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.errors import ProtocolError, TopologyError
from state.values.state_kind import Field, StateKind, ValueType
from state.values.value_form import decode_stored

PREFETCH_MAX = 10_000
"""Most fields that one read prefetches for other transactions; the next read that misses a field prefetches more."""

WaitingValues = Callable[[Sequence[str]], Iterator[Sequence[Any]]]
"""Names of tuple fields -> their values, column by column, in the group's tuples that wait to be executed."""
Prefetched = Callable[[WaitingValues], Iterator[Field]]
"""Waiting values -> the fields that a state will be asked for; fields may repeat."""


class StateReader(Protocol):
    """Reads committed state; `RedisReader` on executors, a fake in tests."""

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> list[bytes | None]:
        """Returns the stored bytes of each field; raises StaleReadError if the state is no longer at that txid."""
        ...


def nothing_waits(_names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """`WaitingValues` of a task that gets its tuples one by one: none."""
    return iter(())


class CommittedValues:
    """The committed values that one task has read during one group; without a reader, reads are impossible.

    All reads are as of `as_of_txid`; `waiting` has the tuples that the group still has to execute.
    """

    def __init__(self, reader: StateReader | None, as_of_txid: int = 0, waiting: WaitingValues = nothing_waits) -> None:
        self._reader = reader
        self._as_of_txid = as_of_txid
        self._waiting = waiting
        self._known: dict[str, dict[Field, bytes | None]] = {}
        self._prefetched: dict[str, Iterator[Field]] = {}

    def read(
        self, name: str, kind: StateKind, fields: Sequence[Field], prefetched: Prefetched | None = None
    ) -> list[bytes | None]:
        """Returns the stored bytes of each field, in at most one round trip.

        If any field has to be read, fields from `prefetched` are read with it.
        """
        known = self._known.setdefault(name, {})
        missing = [field for field in fields if field not in known]
        if missing:
            if self._reader is None:
                raise ProtocolError(f"state {name!r} was read in a task that has no reader")
            if prefetched is not None:
                missing = list(dict.fromkeys([*missing, *self._next_prefetched(name, prefetched, known)]))
            known.update(zip(missing, self._reader.read(name, kind, missing, self._as_of_txid), strict=True))
        return [known[field] for field in fields]

    def _next_prefetched(self, name: str, prefetched: Prefetched, known: dict[Field, bytes | None]) -> Iterator[Field]:
        upcoming = self._prefetched.get(name)
        if upcoming is None:
            upcoming = self._prefetched[name] = prefetched(self._waiting)
        return islice((field for field in upcoming if field not in known), PREFETCH_MAX)


MISSING = object()
"""Stands for the value of a field that does not exist."""


class Declared(Protocol):
    """A state as a committer class declares it."""

    def bind(self, session: StateSession) -> object:
        """Returns a live handle that follows the session."""
        ...


class Binding(Protocol):
    """A live handle; its session calls it when it opens and closes."""

    name: str

    def attach(self, write_set: WriteSet) -> None:
        """The session has opened; changes go to `write_set`."""
        ...

    def detach(self) -> None:
        """The session has closed; any use raises until it opens again."""
        ...


class StateSession:
    """The state of one committer task; its executor opens it around each `finish_batch`.

    Attributes:
        writes: changes made by the current, or just ended, transaction.
        reads: every (state name, field) that the transaction read and another task may have written.
        earlier: this task's composed writes in lower transactions of the group.
        place: the transaction's txid and the task's index, which form the ids of stream entries.
    """

    def __init__(self, reader: StateReader | None = None) -> None:
        self._reader = reader
        self._committed = CommittedValues(reader)
        self.writes, self.earlier = WriteSet(), WriteSet()
        self.reads: set[tuple[str, Field]] = set()
        self.place = (0, 0)
        self.is_open = False
        self._bindings: dict[str, Binding] = {}

    def bind(self, committer: object, states: Mapping[str, Declared]) -> None:
        """Puts a live handle for each state into a committer instance; the executor calls it once for every instance.

        `states` are the committer's states by attribute name.
        """
        if states and not hasattr(committer, "__dict__"):
            raise TopologyError(f"committer {type(committer).__name__} has __slots__; remove them to use state")
        for attribute, declared in states.items():
            committer.__dict__[attribute] = declared.bind(self)

    def begin_group(self, as_of_txid: int, waiting: WaitingValues = nothing_waits) -> None:
        """Forgets all reads; called before the first transaction of a group, with the committed txid below it.

        `waiting` has the group's tuples that wait to be executed, for states that prefetch.
        """
        self._committed = CommittedValues(self._reader, as_of_txid, waiting)

    def open(self, earlier: WriteSet | None = None) -> None:
        """Starts a transaction with nothing written and nothing read; handles become usable.

        `earlier` has this task's writes in lower transactions of the group; it is not changed.
        """
        self.writes, self.earlier = WriteSet(), earlier if earlier is not None else WriteSet()
        self.reads = set()
        self.is_open = True
        for binding in self._bindings.values():
            binding.attach(self.writes)

    def close(self) -> WriteSet:
        """Ends the transaction and returns its writes; handles raise until the next `open`."""
        self.is_open = False
        for binding in self._bindings.values():
            binding.detach()
        self.writes.drop_empty()
        return self.writes

    def register(self, binding: Binding) -> None:
        """Makes a live handle follow this session; it replaces an earlier one of the same state."""
        former = self._bindings.get(binding.name)
        if former is not None and self.is_open:
            former.detach()
        self._bindings[binding.name] = binding
        if self.is_open:
            binding.attach(self.writes)

    def read(
        self,
        name: str,
        kind: StateKind,
        value_type: ValueType,
        fields: Sequence[Field],
        prefetched: Prefetched | None = None,
    ) -> dict[Field, Any]:
        """Returns field -> decoded value or `MISSING`, in at most one round trip; called by handles."""
        layers = [unpacked(self.earlier.states[name])] if name in self.earlier.states else []
        own = unpacked(self.writes.states[name]).settled() if name in self.writes.states else None
        if own is not None:
            layers.append(own)
        open_fields = fields if own is None else _undecided(own, fields)
        self.reads.update((name, field) for field in open_fields)
        needed = reduce(lambda fields, layer: _undecided(layer, fields), layers, open_fields)
        values: dict[Field, Any] = dict.fromkeys(fields, MISSING)
        if needed:
            raw = self._committed.read(name, kind, needed, prefetched)
            for field, stored in zip(needed, raw, strict=True):
                if stored is not None:
                    is_member = kind is StateKind.SET
                    values[field] = is_member or decode_stored(stored, value_type, f"field {field!r} of state {name!r}")
        for layer in layers:
            for changes in (layer.puts, layer.deletes, layer.increments):  # few of them concern these fields
                for field in values.keys() & changes.keys():
                    values[field] = _overlaid(layer, field, values[field])
        return values


def _undecided(writes: StateWrites, fields: Sequence[Field]) -> Sequence[Field]:
    """Returns the fields whose value does not follow from these writes alone."""
    return [field for field in fields if field not in writes.puts and field not in writes.deletes]


def _overlaid(writes: StateWrites, field: Field, value: Any) -> Any:
    """Returns the value after these writes; floats are added one by one, as the server does."""
    if field in writes.puts:
        return writes.puts[field]
    if field in writes.deletes:
        return MISSING
    deltas = writes.increments.get(field)
    if deltas is None:
        return value
    total = 0 if value is MISSING else value
    for delta in deltas if isinstance(deltas, list) else (deltas,):
        total = total + delta
    return total
