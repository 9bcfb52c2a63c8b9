"""Golden case G2: one value per txid, made from the one before, in the order the case makes them."""

from __future__ import annotations

import pytest

from state.errors import ProtocolError
from state.metadata import RotatingTransactionalState, TransactionalState

pytestmark = pytest.mark.case(id="G2")


def make(value):
    return lambda txid, previous: value


def test_a_strict_state_is_made_in_the_order_of_txids():
    kept = TransactionalState()
    state = RotatingTransactionalState(kept, "coordinator")
    assert state.get_state(1, make(10)) == 10
    assert state.get_state(2, make(10)) == 10
    assert state.get_state(3, make(20)) == 20
    assert state.get_state(1, make(20)) == 10
    with pytest.raises(ProtocolError, match="out of order"):
        state.get_state(5, make(20))
    assert state.get_state(4, make(20)) == 20
    assert len(kept.values("coordinator")) == 4
    state.cleanup_before(3)
    assert sorted(kept.values("coordinator")) == [3, 4]
    assert state.get_state_or_create(5, make(20)) is None
    assert state.get_state_or_create(5, make(20)) == 20
    assert state.get_state_or_create(6, make(20)) is None
    state.cleanup_before(6)
    assert sorted(kept.values("coordinator")) == [6]


def test_a_state_that_is_not_strict_gives_none_below_what_it_has():
    state = RotatingTransactionalState(TransactionalState(), "partition.0", is_strict=False)
    assert state.get_state(10, make(20)) == 20
    assert state.get_state(20, make(20)) == 20
    assert state.get_state(12, make(20)) is None
    assert state.get_state(19, make(20)) is None
    assert state.get_state(12, make(20)) is None
    assert state.get_state(21, make(20)) == 20
