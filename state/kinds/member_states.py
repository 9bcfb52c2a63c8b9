"""States of members: sets, sorted sets, and HyperLogLogs, which only count their members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from state.errors import TopologyError
from state.kinds.keyed_state import KeyedState
from state.kinds.session import MISSING
from state.kinds.state_handle import DeclaredType, FieldGiven, Item, StateHandle, check_most
from state.values.first_wrong import Wrong, first_wrong
from state.values.state_kind import KEEP_ALL, KeptEnd, Retention, StateKind, ValueType


class SetState(KeyedState[Item]):
    """A Redis set of members.

    Args:
        name: state name.
        value: type of the members, one of those for fields of a `HashState`.
    """

    kind = StateKind.SET

    @overload
    def __init__(self, name: str, value: type[Item] = ...) -> None: ...

    @overload
    def __init__(self: SetState[Any], name: str, value: str | tuple[type | str, ...]) -> None: ...

    def __init__(self, name: str, value: FieldGiven = str) -> None:
        super().__init__(name)
        self._declare_field("member", value)

    def add(self, member: Item) -> None:
        """Adds `member` to the set."""
        self._open().put(self._fields.to_stored("member", member), True)

    def add_many(self, members: Iterable[Item]) -> None:
        """Adds many members; like calling `add` for each, but many times faster.

        Raises:
            TypeError, ValueError: as `add`, and some members may already be added; or the argument is text.
        """
        column = self._members("add_many", members)
        if not self._put_plain(column, [True] * len(column)):
            for member in column:
                self.add(member)

    def remove(self, member: Item) -> None:
        """Removes `member` if it is in the set."""
        self._open().delete(self._fields.to_stored("member", member))

    def contains(self, member: Item) -> bool:
        """Returns whether `member` is in the set.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        (is_member,) = self.contains_many([member]).values()
        return is_member

    def contains_many(self, members: Iterable[Item]) -> dict[Item, bool]:
        """Returns member -> whether it is in the set, in one round trip."""
        wanted = list(dict.fromkeys(self._fields.many_to_stored("member", list(members))))
        found: dict[Any, Any] = self._read(wanted) if wanted else {}
        return {self._fields.from_stored(member): value is not MISSING for member, value in found.items()}


class HyperLogLogState(StateHandle[Item]):
    """A Redis HyperLogLog: an estimate of the number of different members, with a standard error of 0.81 %.

    Write-only: a transaction never reads the estimate. Outside readers use ``PFCOUNT``, which also takes several keys,
    or `snapshot`, which returns the count.

    Args:
        name: state name.
        value: type of the members, one of those for fields of a `HashState`.
    """

    kind = StateKind.HYPERLOGLOG

    @overload
    def __init__(self, name: str, value: type[Item] = ...) -> None: ...

    @overload
    def __init__(self: HyperLogLogState[Any], name: str, value: str | tuple[type | str, ...]) -> None: ...

    def __init__(self, name: str, value: FieldGiven = str) -> None:
        super().__init__(name)
        self._declare_field("member", value)

    def add(self, member: Item) -> None:
        """Counts `member`, unless it was counted before.

        Raises:
            TypeError, ValueError: the member has the wrong type or is out of range.
        """
        self._open().put(self._fields.to_stored("member", member), True)

    def add_many(self, members: Iterable[Item]) -> None:
        """Counts many members; like calling `add` for each, but many times faster.

        Raises:
            TypeError, ValueError: as `add`, and some members may already be added; or the argument is text.
        """
        column = self._members("add_many", members)
        if not self._put_plain(column, [True] * len(column)):
            for member in column:
                self.add(member)


class SortedSetState(KeyedState[Item]):
    """A Redis sorted set: member -> score, a finite float.

    Args:
        name: state name.
        value: type of the members, one of those for fields of a `HashState`.
        keep_highest: how many members stay: each commit cuts off the lowest scores, among equal scores the first
            members by their bytes. Such a state takes only `put` and `put_many`, which keep a member's best score; the
            result of any other call would depend on when members were cut off.
        keep_lowest: the same for the lowest scores; among equal scores the last members are cut off.

    Raises:
        TopologyError: both limits are given, or one is not a valid number.
    """

    kind = StateKind.SORTED_SET
    value_type = stored_type = ValueType.FLOAT

    @overload
    def __init__(
        self, name: str, value: type[Item] = ..., *, keep_highest: int | None = None, keep_lowest: int | None = None
    ) -> None: ...

    @overload
    def __init__(
        self: SortedSetState[Any],
        name: str,
        value: str | tuple[type | str, ...],
        *,
        keep_highest: int | None = None,
        keep_lowest: int | None = None,
    ) -> None: ...

    def __init__(
        self,
        name: str,
        value: FieldGiven = str,
        *,
        keep_highest: int | None = None,
        keep_lowest: int | None = None,
    ) -> None:
        super().__init__(name)
        self.retention = _retention(name, keep_highest, keep_lowest)
        self._declare_field("member", value)
        self._values = DeclaredType(name, ValueType.FLOAT)

    def first_wrong_value(self, values: Sequence[Any]) -> Wrong | None:
        return None if self._values.are_stored_as_given(values) else first_wrong(values, self._score)

    def put(self, member: Item, score: float) -> None:
        """Sets a member's score; in a bounded set only if it is better than the current one.

        Raises:
            TypeError, ValueError: member or score has the wrong type, or the score is not finite.
        """
        score = self._score(score)
        if self.retention.is_ranked:
            score += 0.0  # -0.0 and 0.0 are equal, so neither is better: keep one of them
        self._open().put(self._fields.to_stored("member", member), score)

    def put_many(self, members: Mapping[Item, float] | Iterable[Item], scores: Iterable[float] | None = None) -> None:
        """Sets the scores of many members; like calling `put` for each in order, but many times faster.

        Args:
            members: the members; if one repeats, its last score counts. Or a mapping of members to scores.
            scores: one for each member.

        Raises:
            TypeError, ValueError: as `put`, and some scores may already be set; or the columns differ in length.
        """
        keys, column = self._columns("put_many", members, scores)
        if not self._put_plain(keys, column):
            for member, score in zip(keys, column, strict=True):
                self.put(member, score)

    def increment_many(
        self, members: Mapping[Item, float] | Iterable[Item], amounts: Iterable[float] | None = None
    ) -> None:
        """Adds to the scores of many members; like calling `increment` for each in order.

        Raises:
            TypeError, ValueError: as `increment`, and some scores may already be incremented; or the columns differ in
                length.
        """
        keys, deltas = self._columns("increment_many", members, amounts)
        if self.retention.is_ranked or not self._add_plain_floats(keys, deltas):
            for member, by in zip(keys, deltas, strict=True):
                self.increment(member, by)

    def increment(self, member: Item, by: float = 1.0) -> None:
        """Adds `by` to a member's score, starting from 0 if it is missing.

        Raises:
            TypeError, ValueError: member or amount has the wrong type or is out of range; or the set is bounded.
        """
        self._refuse_if_bounded("increment")
        by = self._check_delta(by)
        self._add(self._fields.to_stored("member", member), by)

    def remove(self, member: Item) -> None:
        """Removes `member` if it exists.

        Raises:
            TypeError, ValueError: the member has the wrong type; or the set is bounded.
        """
        self._refuse_if_bounded("remove")
        self._open().delete(self._fields.to_stored("member", member))

    def score(self, member: Item) -> float | None:
        """Returns the member's score, or None.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
            TypeError: the set is bounded.
        """
        self._refuse_if_bounded("score")
        (value,) = self._read([self._fields.to_stored("member", member)]).values()
        return None if value is MISSING else float(value)

    def _score(self, score: Any) -> Any:
        return self._values.to_stored("score", self._values.as_float("score", score))

    def _refuse_if_bounded(self, call: str) -> None:
        if self.retention.is_ranked:
            raise TypeError(
                f"state {self.name!r} keeps only {self.retention.most:,} members and cannot {call}: the result would "
                "depend on when the others were cut off; keep the scores in a HashState, and put them here"
            )


def _retention(name: str, keep_highest: int | None, keep_lowest: int | None) -> Retention:
    if keep_highest is not None and keep_lowest is not None:
        raise TopologyError(f"state {name!r} is given keep_highest and keep_lowest; give one of them")
    if keep_highest is not None:
        return Retention(KeptEnd.HIGHEST, check_most(f"keep_highest of state {name!r}", keep_highest))
    if keep_lowest is not None:
        return Retention(KeptEnd.LOWEST, check_most(f"keep_lowest of state {name!r}", keep_lowest))
    return KEEP_ALL
