"""A Redis set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from state.kinds.keyed_state import KeyedState
from state.kinds.session import MISSING
from state.kinds.state_handle import FIELD_TYPES, StateHandle, declared_type
from state.values.state_kind import StateKind


class SetState(KeyedState):
    """A Redis set of members.

    Args:
        name: state name.
        value: type of the members, ``str``, ``int`` or ``bytes``, or its name.
    """

    kind = StateKind.SET

    def __init__(self, name: str, value: type | str = str) -> None:
        super().__init__(name)
        self.value_type = self.field_type = declared_type(f"member of state {name!r}", value, FIELD_TYPES)

    def add(self, member: Any) -> None:
        """Adds `member` to the set."""
        self._open().put(self._check("member", member, self.field_type), True)

    def add_many(self, members: Iterable[Any]) -> None:
        """Adds many members; like calling `add` for each, but many times faster.

        Raises:
            TypeError, ValueError: as `add`; some members may already be added. Or this is text, not members.
        """
        column = self._members("add_many", members)
        if not self._put_plain(column, [True] * len(column)):
            for member in column:
                self.add(member)

    def remove(self, member: Any) -> None:
        """Removes `member` if it is in the set."""
        self._open().delete(self._check("member", member, self.field_type))

    def contains(self, member: Any) -> bool:
        """Returns whether `member` is in the set.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        (is_member,) = self.contains_many([member]).values()
        return is_member

    def contains_many(self, members: Iterable[Any]) -> dict[Any, bool]:
        """Returns member -> whether it is in the set, in one round trip."""
        wanted = list(dict.fromkeys(self._check("member", member, self.field_type) for member in members))
        found = self._read(wanted) if wanted else {}
        return {member: value is not MISSING for member, value in found.items()}


class HyperLogLogState(StateHandle):
    """A Redis HyperLogLog: an estimate of the number of different members, with a standard error of 0.81 %.

    Write-only: a transaction never reads the estimate. Readers outside ask ``PFCOUNT``, for several keys at once if
    they like, or `snapshot`, which returns the count.

    Args:
        name: state name.
        value: type of the members, ``str``, ``int`` or ``bytes``, or its name.
    """

    kind = StateKind.HYPERLOGLOG

    def __init__(self, name: str, value: type | str = str) -> None:
        super().__init__(name)
        self.value_type = self.field_type = declared_type(f"member of state {name!r}", value, FIELD_TYPES)

    def add(self, member: Any) -> None:
        """Counts `member`, unless it was counted before.

        Raises:
            TypeError, ValueError: the member has the wrong type or is out of range.
        """
        self._open().put(self._check("member", member, self.field_type), True)

    def add_many(self, members: Iterable[Any]) -> None:
        """Counts many members; like calling `add` for each, but many times faster.

        Raises:
            TypeError, ValueError: as `add`; some members may already be added. Or this is text, not members.
        """
        column = self._members("add_many", members)
        if not self._put_plain(column, [True] * len(column)):
            for member in column:
                self.add(member)
