"""The record of a quarantined batch: read back as it was written, and refused if it was not written by us."""

from __future__ import annotations

import pytest

from state.codec import pack
from state.commits.quarantine import unpack_record
from state.errors import StateRefusedError
from state.keys import Keys
from tests.support.stores.builders import record_of


def test_a_record_is_read_back_as_it_was_written():
    record = record_of(7, metadata=[{"path": "a", "range": (3, 9)}, b"x", None], positions={"partition.0": (1, 2)})
    again = unpack_record(Keys("wc"), "7", record.packed())
    assert again == record
    assert again.packed() == record.packed(), "an operator's drop compares it with what is stored"


@pytest.mark.parametrize(
    ("field", "packed"),
    [
        ("7", b"\xc1"),
        ("7", pack(["no", "record"])),
        ("7", pack({"number": 7})),
        ("seven", record_of(7).packed()),
        ("0", record_of(7).packed()),
    ],
)
def test_what_is_not_a_record_is_refused_with_its_place(field, packed):
    with pytest.raises(StateRefusedError) as refused:
        unpack_record(Keys("wc"), field, packed)
    assert f"field '{field}' in key '{{wc}}:txbatch:quarantine', which is not a quarantined batch" in str(refused.value)
