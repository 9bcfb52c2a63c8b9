"""The changes of transactions to one state, as a value that composes: at most one operation per field.

There are two compositions, which must agree:

* `StateWrites.then` is *in order*: a later transaction's changes after an earlier one's. Always defined.
* `StateWrites.merge` joins the changes of two tasks over the same transactions. It is defined only if order cannot
  matter, and raises `OrderMattersError` otherwise; the caller then composes transaction by transaction.

Integers add exactly, so their increments collapse into one. Floats do not, so their increments stay a list that the
server adds one by one. The result is the same for every group size.

A ranked state keeps its best members and a bounded list its last items, by one cut after all writes of a commit. That
equals a cut after each transaction, because a member's score only ever improves: a member that was cut off stays below
the kept ones, unless it is put again with a better score.

Refusals must not depend on the group size either. Alone, a transaction that takes a number out of its range is refused;
in a group, a later one may bring the number back. `then` therefore tracks how far numbers may have moved meanwhile
(`StateWrites.reach`), and which increments were overwritten before the server could check them. If a number may have
left its range, the server refuses the group, and its transactions are committed one by one. If two tasks have both
deleted a field, their earlier changes to it are unknown, so `merge` refuses if either may have added to a field.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from state.errors import TransactionError
from state.values.state_kind import KEEP_ALL, MAX_INTEGER, VALUE_FIELD, Field, KeptEnd, Retention, StateKind, ValueType

_NUMBERED = (StateKind.HASH, StateKind.VALUE, StateKind.SORTED_SET)
_MEMBERS = (StateKind.SET, StateKind.HYPERLOGLOG)
REACH_MAX = 2**40
"""Columns whose amounts might sum to more than this are added one by one, so that their reach is known exactly. A
thousand transactions with less stay far within a field's range.
"""


class OrderMattersError(TransactionError):
    """Two tasks changed one field in ways that do not commute."""


@dataclass(slots=True)
class StateWrites:
    """The changes to one state. A field is in at most one of puts, increments and deletes.

    Two values are equal if they make the same changes, however they were composed. During a transaction, whole columns
    of increments may be held; everything else expects `settled` changes.

    Attributes:
        kind: Redis type of the state.
        value_type: declared type of its values; FLOAT for the scores of a sorted set.
        puts: field -> new value (set, HyperLogLog: member -> True; sorted set: member -> score).
        increments: field -> an integer to add, or a list of floats to add in order.
        deletes: fields to remove (`VALUE_FIELD` empties a list state first).
        appends: values to append to a list state, after `deletes`; or entries of a stream, in any order: the txid and
            the number that form the id, then fields and values, alternating.
        overwritten: field -> how far its increments reached before a later transaction's put or delete voided them.
        reach: the farthest that increments may have moved a field after any of the transactions composed here; 0 before
            any composition, infinite if a number has certainly left its range.
        retention: how much of the state is kept after this write, and for how long.
        expiries: field -> its expiry in milliseconds since 1970, of puts with one.
        held: columns to add to increments later: fields, amounts, and the farthest that a column may move one field.
    """

    kind: StateKind
    value_type: ValueType
    puts: dict[Field, Any] = field(default_factory=dict)
    increments: dict[Field, Any] = field(default_factory=dict)
    deletes: dict[Field, bool] = field(default_factory=dict)
    appends: list[Any] = field(default_factory=list)
    overwritten: dict[Field, float] = field(default_factory=dict, compare=False)
    reach: float = field(default=0, compare=False)
    retention: Retention = KEEP_ALL
    expiries: dict[Field, int] = field(default_factory=dict)
    held: list[tuple[Sequence[Field], Sequence[int], int]] = field(default_factory=list, compare=False)

    def hold(self, fields: Sequence[Field], amounts: Sequence[int]) -> bool:
        """Holds integers to add to fields, which may repeat, of a state that was only incremented so far.

        Returns whether it did; amounts other than small integers have to be added one by one.
        """
        if {*map(type, amounts)} - {int}:
            return False
        highest, lowest = max(amounts), min(amounts)
        reach = max(highest, -lowest) * len(amounts)
        if reach > REACH_MAX:
            return False
        self.held.append((fields, amounts, reach))
        return True

    def settled(self) -> StateWrites:
        """Adds the held columns to the increments, and returns itself."""
        for fields, amounts, _ in self.held:
            self._add_columns(fields, amounts)
        self.held.clear()
        return self

    def is_empty(self) -> bool:
        return not self.held and not self.operations()

    def most(self) -> float:
        return MAX_INTEGER if self.value_type is ValueType.INT else sys.float_info.max

    def put(self, key: Field, value: Any) -> None:
        """Sets a field, replacing earlier changes to it; a ranked member keeps the better score."""
        if self.retention.is_ranked and key in self.puts and not self.retention.is_better(value, self.puts[key]):
            return
        self.deletes.pop(key, None)
        self.increments.pop(key, None)
        self.puts[key] = value

    def expire(self, keys: Iterable[Field], expires_ms: int | None) -> None:
        """Sets when fields that were put expire; None removes an expiry set before."""
        if expires_ms is not None:
            self.expiries.update(dict.fromkeys(keys, expires_ms))
        elif self.expiries:
            for key in keys:
                self.expiries.pop(key, None)

    def _put_all(self, puts: dict[Field, Any]) -> None:
        if self.deletes or self.increments or self.retention.is_ranked:
            for key, value in puts.items():
                self.put(key, value)
        else:
            self.puts.update(puts)

    def delete(self, key: Field) -> None:
        """Removes a field, or empties a list state."""
        self.puts.pop(key, None)
        self.increments.pop(key, None)
        if self.kind is StateKind.LIST:
            self.appends.clear()
        self.deletes[key] = True
        self.expiries.pop(key, None)

    def increment(self, key: Field, deltas: Any) -> None:
        """Adds an integer, or a list of floats one by one, to a field."""
        if key in self.puts or key in self.deletes:
            start = self.puts.get(key, 0)
            self.deletes.pop(key, None)
            self.puts[key] = _add(start, deltas)
        elif key in self.increments:
            self.increments[key] = self.increments[key] + deltas
        else:
            self.increments[key] = deltas

    def operations(self) -> int:
        """Returns how many changes the server will make; each float of a list counts as one."""
        increments = self.increments
        added = sum(map(len, increments.values())) if self.value_type is ValueType.FLOAT else len(increments)
        written = len(self.puts) + added + len(self.deletes) + len(self.appends)
        return written + len(self.overwritten) + len(self.expiries)

    def fields(self) -> Iterator[Field]:
        """Yields every field this changes, each once."""
        yield from self.puts
        yield from self.increments
        yield from self.deletes
        if self.appends and VALUE_FIELD not in self.deletes:
            yield VALUE_FIELD

    def then(self, later: StateWrites) -> None:
        """Adds the changes of a later transaction."""
        self.retention = later.retention
        if later.held and not later.operations() and not self.puts and not self.deletes:
            for fields, amounts, reach in later.held:  # the usual case, without an intermediate sum
                self.reach = self.moved() + reach
                self._add_columns(fields, amounts)
            return
        later.settled()
        self.reach = self.moved() + later.moved()
        if self.puts or self.deletes or later.puts or later.deletes:
            self._overwrite(later)
            for key in later.deletes:
                self.delete(key)
            self._put_all(later.puts)
            self.expire(later.puts, None)
            self.expiries.update(later.expiries)
            for key, deltas in later.increments.items():
                self.increment(key, deltas)
            self._note_range(later)
        else:
            increments = self.increments
            none: Any = [] if self.value_type is ValueType.FLOAT else 0
            for key, delta in later.increments.items():
                increments[key] = increments.get(key, none) + delta
        self.appends.extend(later.appends)
        if self.kind is StateKind.LIST and self.retention.side is KeptEnd.LAST:
            del self.appends[: -self.retention.most]

    def merge(self, other: StateWrites) -> None:
        """Joins the changes of another task over the same transactions, or raises OrderMattersError."""
        self._check_commutes(other)
        self.reach = self.moved() + other.moved()
        for key in self.increments.keys() & other.increments.keys():
            other.increments[key] += self.increments[key]
        if self.retention.is_ranked:
            for key, score in other.puts.items():
                self.put(key, score)
        else:
            self.puts.update(other.puts)
        self.increments.update(other.increments)
        self.deletes.update(other.deletes)
        self.appends.extend(other.appends)
        self.overwritten.update(other.overwritten)
        self.expiries.update(other.expiries)

    def _add_columns(self, fields: Sequence[Field], amounts: Sequence[int]) -> None:
        increments, known = self.increments, self.increments.get
        for field_name, amount in zip(fields, amounts, strict=True):
            increments[field_name] = known(field_name, 0) + amount

    def moved(self) -> float:
        """Returns `reach`, or computes it for an uncomposed transaction; floats are checked when they are added."""
        if self.reach or not self.increments or self.value_type is not ValueType.INT:
            return self.reach
        amounts = self.increments.values()
        highest: int = max(amounts)
        lowest: int = min(amounts)
        return max(highest, -lowest)

    def _overwrite(self, later: StateWrites) -> None:
        """Records the increments that `later` voids: alone, their transaction is refused if they reach too far."""
        if not self.increments and not later.overwritten:
            return
        is_int = self.value_type is ValueType.INT
        for changed in (later.puts, later.deletes):
            if self.increments.keys().isdisjoint(changed):
                continue
            for key in filter(self.increments.__contains__, changed):
                self.overwritten[key] = self.reach if is_int else sum(map(abs, self.increments[key]))
        for key, reach in later.overwritten.items():
            if key not in self.puts and key not in self.deletes:
                before = 0 if is_int else sum(map(abs, self.increments.get(key, ())))
                self.overwritten[key] = max(self.overwritten.get(key, 0), before + reach)
        if not is_int and max(self.overwritten.values(), default=0) > self.most():
            self.reach = math.inf

    def _note_range(self, later: StateWrites) -> None:
        """Records that a put number is out of its range now; a later transaction may bring it back."""
        if self.value_type not in (ValueType.INT, ValueType.FLOAT) or self.kind not in _NUMBERED:
            return
        most = self.most()
        put, moved = later.puts.values(), self.puts.keys() & later.increments.keys()
        if (put and not -most <= min(put) <= max(put) <= most) or not all(
            -most <= self.puts[key] <= most for key in moved
        ):
            self.reach = math.inf

    def _check_commutes(self, other: StateWrites) -> None:
        if self.kind is StateKind.LIST:
            clash = bool(self.operations() and other.operations())
        else:
            mine = (self.puts, self.increments, self.deletes)
            theirs = (other.puts, other.increments, other.deletes)
            pairs = [(a, b) for a in mine for b in theirs if not a.keys().isdisjoint(b.keys())]
            clash = not all(self._same_effect(a, b, other) for a, b in pairs)
        if clash:
            raise OrderMattersError(f"two tasks changed the same field of a {self.kind} state")

    def _same_effect(self, mine: dict[Field, Any], theirs: dict[Field, Any], other: StateWrites) -> bool:
        if mine is self.puts and theirs is other.puts:
            return self.kind in _MEMBERS or self.retention.is_ranked
        if mine is self.deletes and theirs is other.deletes:
            return not (self._may_add() or other._may_add())  # one may have added to a value that the other one put
        both_add = mine is self.increments and theirs is other.increments
        return both_add and self.value_type is ValueType.INT

    def _may_add(self) -> bool:
        """Returns whether a transaction may have added to a field, even to one put or deleted since."""
        if self.value_type is ValueType.FLOAT:
            return self.kind in _NUMBERED  # floats added to a put value leave no trace
        return self.moved() > 0

    def to_wire(self) -> list[Any]:
        return [
            self.kind.value,
            self.value_type.value,
            self.puts,
            self.increments,
            list(self.deletes),
            self.appends,
            self.overwritten,
            self.reach,
            self.retention.to_wire(),
            self.expiries,
        ]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> StateWrites:
        kind, value_type, puts, increments, deletes, appends, overwritten, reach, retention, expiries = wire
        changes = puts, increments, dict.fromkeys(deletes, True), appends
        kept = Retention.from_wire(retention)
        return cls(StateKind(kind), ValueType(value_type), *changes, overwritten, reach, kept, expiries)


def _add(start: Any, deltas: Any) -> Any:
    """Computes the same sum as the server: adds one integer, or floats one by one."""
    if isinstance(deltas, list):
        for delta in deltas:
            start = start + delta
        return start
    return start + deltas
