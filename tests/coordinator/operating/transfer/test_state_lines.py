"""What a line of an export says of a key, and what it cannot say."""

from __future__ import annotations

import pytest

from coordinator.operating.transfer.state_lines import lines_of
from coordinator.topology.building.topology_description import DescribedState
from state.errors import StateRefusedError
from state.kinds.state_family import PartType
from state.records.stored_records import StoredPiece
from state.values.state_kind import StateKind, ValueType

VIEWS = DescribedState("views", StateKind.HASH, ValueType.INT, ValueType.STR, part_type=PartType.DATE)


def test_a_key_whose_part_does_not_have_the_declared_type_ends_an_export_and_is_named():
    piece = StoredPiece("views:yesterday", StateKind.HASH, [(b"a", b"1")], None)
    with pytest.raises(StateRefusedError, match=r"'views' has a key for the part 'yesterday'.*one for each date"):
        list(lines_of(piece, {"views": VIEWS}))


def test_an_entry_of_a_part_is_typed_as_declared():
    piece = StoredPiece("views:2026-11-21", StateKind.HASH, [(b"a", b"1")], 5)
    assert list(lines_of(piece, {"views": VIEWS})) == [
        {"state": "views", "part": "2026-11-21", "expires_ms": 5},
        {"state": "views", "part": "2026-11-21", "field": "a", "value": 1},
    ]
