"""Checks stored metadata: its checksum, each entry's form, and that no transaction is missing from the chain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.operating.inspection.finding import Finding
from coordinator.operating.inspection.verify.part_check import PartCheck, restore
from coordinator.operating.inspection.verify.record_checks import committed_of
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE, is_own_scope
from coordinator.transactional.start.input_checks import (
    check_coordinator_metadata,
    check_partition_metadata,
    check_scopes,
)
from state.commits.write_set import MAX_INTEGER
from state.errors import StateRefusedError
from state.keys import Keys, parse_metadata_field
from state.metadata.metadata_sum import MetadataSum
from state.metadata.stored_metadata import unpack_metadata
from state.printable import counted
from state.records.stored_records import StoredRecords

_WHY_SUM = "each write stores a checksum over all metadata, so entries were lost, altered or added since the last write"
_WHY_CHAIN = "a run could not tell where the missing transaction begins: the next start is refused"


def check_metadata(keys: Keys, records: StoredRecords) -> list[Finding]:
    """Returns what is wrong with the metadata, or one finding that says how much there is."""
    check = PartCheck(keys, "metadata")
    found_sum, stored_sum = MetadataSum(records.metadata), records.control.get("metadata_sum", "")
    if str(found_sum) != stored_sum:
        fields = counted(len(records.metadata), "field")
        check.damaged(
            f"checksum over {fields} of key {keys.metadata!r} is {found_sum}, expected {stored_sum}", _WHY_SUM
        )
    readable: dict[str, Any] = {}
    for field, packed in sorted(records.metadata.items()):
        try:
            readable |= unpack_metadata(keys, {field: packed})
        except StateRefusedError as error:
            check.damaged(_without_remedy(error), _WHY_SUM)
    committed = committed_of(records)
    if committed is not None:
        _check_chain(check, readable, committed)
    pending = sum(parse_metadata_field(field)[1] > (committed or 0) for field in readable)
    return check.findings(
        f"{counted(len(readable), 'field')}, {pending:,} of them of transactions not committed yet; the checksum "
        "matches, no transaction is missing"
    )


def _check_chain(check: PartCheck, metadata: Mapping[str, Any], committed: int) -> None:
    """Runs the checks that a start makes."""
    scopes: dict[str, dict[int, Any]] = {}
    for field, value in metadata.items():
        scope, txid = parse_metadata_field(field)
        scopes.setdefault(scope, {})[txid] = value
    largest = max((txid for by_txid in scopes.values() for txid in by_txid), default=0)
    if largest > MAX_INTEGER:
        found = f"an entry has txid {largest}, beyond {MAX_INTEGER}"
        check.damaged(found, "txids beyond that are not exact on the server")
        return
    topology_id = check.keys.topology_id
    counts = scopes.pop(COORDINATOR_SCOPE, {})
    partitions = {scope: by_txid for scope, by_txid in scopes.items() if not is_own_scope(scope)}

    def run(start_check: Callable[[], None]) -> None:
        try:
            start_check()
        except StateRefusedError as error:
            check.damaged(_without_remedy(error), _WHY_CHAIN)

    run(lambda: check_scopes(topology_id, partitions))
    if counts:
        run(lambda: check_coordinator_metadata(topology_id, counts, committed_txid=committed))
        if partitions:
            run(lambda: check_partition_metadata(topology_id, partitions, counts, committed_txid=committed))
    elif committed and not partitions:
        check.doubtful(
            f"committed up to txid {committed}, but no position in the input is stored",
            "only an opaque spout without partitions leaves it so; after any other, the next run is refused",
            restore(check.keys),
        )


def _without_remedy(error: StateRefusedError) -> str:
    """Returns an error's message without its last part: the finding has a remedy of its own."""
    return str(error).rpartition("; ")[0] or str(error)
