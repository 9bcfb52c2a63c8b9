"""One value per txid, each made from the one before: how a source remembers where each transaction starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.errors import ProtocolError
from state.metadata.transactional_state import TransactionalState

StateInitializer = Callable[[int, Any], Any]
"""(txid, value of the greatest lower txid, or None) -> value for txid."""


class RotatingTransactionalState:
    """The sorted map txid -> value of one scope; used by the coordinator, and by emitters for each partition.

    Once a txid has a value, every replay gets that value. None is a value too: it says that a later batch was
    already emitted, so this one must be empty.

    Args:
        state: where the values are kept.
        scope: which map of `state` this is.
        is_strict: whether values must be made in txid order from 1 without gaps.

    Source: backtype.storm.transactional.state.RotatingTransactionalState.
    """

    def __init__(self, state: TransactionalState, scope: str, *, is_strict: bool = True) -> None:
        self._state, self._scope, self._is_strict = state, scope, is_strict

    def get_state(self, txid: int, initialize: StateInitializer) -> Any:
        """Returns the value of a txid; `initialize` makes it on the first call.

        If a greater txid has a value, `initialize` is not called and the value is None.

        Raises:
            ProtocolError: the state is strict and the txid does not follow the greatest known one.
        """
        values = self._state.values(self._scope)
        if txid in values:
            return values[txid]
        previous_txid = max((known for known in values if known < txid), default=None)
        has_greater = any(known > txid for known in values)
        if self._is_strict:
            self._check_order(txid, previous_txid, has_greater=has_greater)
        value = None
        if not has_greater:
            value = initialize(txid, None if previous_txid is None else values[previous_txid])
        self._state.put(self._scope, txid, value)
        return value

    def get_state_or_create(self, txid: int, initialize: StateInitializer) -> Any:
        """Returns the value of a txid if it has one; otherwise makes it and returns None.

        Raises:
            ProtocolError: as `get_state`.
        """
        values = self._state.values(self._scope)
        if txid in values:
            return values[txid]
        self.get_state(txid, initialize)
        return None

    def has_cache(self, txid: int) -> bool:
        """Returns whether the txid has a value, None included."""
        return txid in self._state.values(self._scope)

    def cleanup_before(self, txid: int) -> None:
        """Removes every lower txid; called once committed transactions no longer need them."""
        self._state.remove(self._scope, [known for known in self._state.values(self._scope) if known < txid])

    def _check_order(self, txid: int, previous_txid: int | None, *, has_greater: bool) -> None:
        follows = txid == 1 if previous_txid is None else previous_txid == txid - 1
        if not follows:
            last = "none" if previous_txid is None else str(previous_txid)
            raise ProtocolError(f"txid {txid} of {self._scope!r} is initialised out of order; the last known is {last}")
        if has_greater:
            raise ProtocolError(f"txid {txid} of {self._scope!r} is initialised after a greater one")
