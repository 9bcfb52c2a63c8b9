"""What was set aside is checked too, and a refold says why it cannot compare."""

from __future__ import annotations

import pytest

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.record_checks import check_aside, check_metadata
from state.codec import pack
from state.commits.dead_letters import pack_letter
from state.keys import Keys
from state.metadata import MetadataSum
from state.records.declared_states import record_types
from state.records.stored_records import StoredRecords
from tests.support.stores.builders import record_of

KEYS = Keys("wc")
RECORD = record_of(3).packed()
LETTER = pack_letter(
    "check", 0, source_component="orders", stream_id="default", fields=("id",), values=(7,), reason="no such item"
)


def letter(txid, number=0, packed=LETTER):
    return f"{txid}.{number}:".encode() + packed


def test_what_can_be_read_is_counted_and_nothing_is_no_finding():
    (finding,) = check_aside(KEYS, {"3": RECORD}, [(letter(4), b"4"), (letter(4, 1), b"4")])
    assert finding.weight is Weight.OK
    assert finding.found == "1 record of quarantined batches and 2 dead letters can be read"
    assert check_aside(KEYS, {}, []) == []
    assert record_types(KEYS)["{wc}:txbatch:quarantine"] == "hash"
    assert record_types(KEYS)["{wc}:txbatch:dead_letters"] == "zset"


@pytest.mark.parametrize(
    ("quarantined", "letters", "part"),
    [
        ({"three": RECORD}, [], "three"),
        ({"3": RECORD[:-1]}, [], "3"),
        ({"3": pack({})}, [], "3"),
        ({}, [(letter(4), b"5")], "a dead letter of txid 5 has the number of another"),
        ({}, [(letter(4)[:-1], b"4")], "a dead letter of txid 4 cannot be read"),
        ({}, [(letter(4), b"inf")], "cannot convert float infinity"),
    ],
)
def test_what_cannot_be_read_is_named(quarantined, letters, part):
    (finding,) = check_aside(KEYS, quarantined, letters)
    assert finding.weight is Weight.FAIL
    assert part in finding.found
    assert finding.why
    assert finding.remedy


def test_the_count_of_replays_is_no_surplus_metadata():
    metadata = {"coordinator:1": pack(1), "replayed:1": pack([1, 0])}
    control = {"committed": "1", "metadata_sum": str(MetadataSum(metadata))}
    findings = check_metadata(KEYS, StoredRecords({}, control, metadata, {}))
    assert {finding.weight for finding in findings} == {Weight.OK}
