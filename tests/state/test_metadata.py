"""Values by txid beyond golden case G2, and what the driver is told to store."""

from __future__ import annotations

import pytest

from state.errors import ProtocolError
from state.metadata import RotatingTransactionalState, TransactionalState


def make(value):
    return lambda txid, previous: value


def test_initialize_gets_the_value_before():
    state = RotatingTransactionalState(TransactionalState(), "coordinator")
    asked = []

    def count(txid, previous):
        asked.append((txid, previous))
        return (previous or 0) + txid

    assert [state.get_state(txid, count) for txid in (1, 2, 3)] == [1, 3, 6]
    assert asked == [(1, None), (2, 1), (3, 3)]


def test_strict_refuses_a_hole_below_a_greater_txid():
    kept = TransactionalState()
    state = RotatingTransactionalState(kept, "coordinator")
    for txid in (1, 2, 3):
        state.get_state(txid, make(txid))
    kept.remove("coordinator", [2])
    with pytest.raises(ProtocolError, match="after a greater one"):
        state.get_state(2, make(2))


def test_none_is_a_value_like_any_other():
    kept = TransactionalState()
    state = RotatingTransactionalState(kept, "partition.0", is_strict=False)
    state.get_state(5, make(50))
    assert state.get_state(3, make(30)) is None
    assert state.has_cache(3)
    assert state.get_state_or_create(3, make(99)) is None
    assert kept.values("partition.0") == {3: None, 5: 50}


def test_changes_are_told_once_and_only_in_their_last_form():
    kept = TransactionalState({"coordinator:1": 10, "partition.3:1": (0, 5)})
    state = RotatingTransactionalState(kept, "coordinator")
    assert not kept.take_changes()
    state.get_state(2, make(20))
    state.get_state(3, make(30))
    state.cleanup_before(3)
    changes = kept.take_changes()
    assert changes.puts == {"coordinator:3": 30}
    assert set(changes.forgets) == {"coordinator:1", "coordinator:2"}
    assert not kept.take_changes()
    assert kept.scopes() == ["coordinator", "partition.3"]


def test_a_removed_and_made_again_value_is_stored():
    kept = TransactionalState({"coordinator:1": 10})
    state = RotatingTransactionalState(kept, "coordinator")
    kept.remove("coordinator", [1])
    assert state.get_state(1, make(11)) == 11
    changes = kept.take_changes()
    assert changes.puts == {"coordinator:1": 11}
    assert changes.forgets == ()
