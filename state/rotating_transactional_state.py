"""One value per txid, made from the one before: how a source remembers where each transaction starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.errors import ProtocolError
from state.transactional_state import TransactionalState

StateInitializer = Callable[[int, Any], Any]
"""(txid, value of the greatest lower txid or None) -> value for txid."""


class RotatingTransactionalState:
    """The sorted map txid -> value of one scope; used by the coordinator and per partition by emitters.

    A value once made for a txid is what every replay of it gets. None is a value like any other: it says
    that a later batch was already emitted, so this one has to be empty.

    Args:
        state: where values are kept.
        scope: which map of it.
        is_strict: values must be made in txid order from 1 without gaps.

    Source: backtype.storm.transactional.state.RotatingTransactionalState.
    """

    def __init__(self, state: TransactionalState, scope: str, *, is_strict: bool = True) -> None:
        self._state, self._scope, self._is_strict = state, scope, is_strict

    def get_state(self, txid: int, initialize: StateInitializer) -> Any:
        """The value of a txid, made by `initialize` the first time it is asked for.

        With a greater txid already there, `initialize` is not called and the value is None.

        Raises:
            ProtocolError: strict, and the txid does not follow the greatest one there.
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
        """The value of a txid if it was there before; otherwise makes it and returns None.

        Raises:
            ProtocolError: as `get_state`.
        """
        values = self._state.values(self._scope)
        if txid in values:
            return values[txid]
        self.get_state(txid, initialize)
        return None

    def has_cache(self, txid: int) -> bool:
        """Whether the txid has a value, None included."""
        return txid in self._state.values(self._scope)

    def cleanup_before(self, txid: int) -> None:
        """Forgets every txid strictly below; called once what is committed no longer needs them."""
        self._state.remove(self._scope, [known for known in self._state.values(self._scope) if known < txid])

    def _check_order(self, txid: int, previous_txid: int | None, *, has_greater: bool) -> None:
        follows = txid == 1 if previous_txid is None else previous_txid == txid - 1
        if not follows:
            last = "none" if previous_txid is None else str(previous_txid)
            raise ProtocolError(f"txid {txid} of {self._scope!r} is initialised out of order, last known is {last}")
        if has_greater:
            raise ProtocolError(f"txid {txid} of {self._scope!r} is initialised after a greater one")
