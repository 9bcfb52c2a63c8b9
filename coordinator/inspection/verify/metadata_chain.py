"""Checks stored metadata: its checksum, each entry's form, and that no transaction is missing from the chain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.inspection.finding import Finding, fail, ok, warn
from coordinator.inspection.verify.control_check import committed_of, restore
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE, is_own_scope
from coordinator.transactional.start.metadata_check import (
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

SUBJECT = "metadata"
WHY_SUM = "each write stores a checksum over all metadata, so entries were lost, altered or added since the last write"
WHY_CHAIN = "a run could not tell where the missing transaction begins: the next start is refused"


def check_metadata(keys: Keys, records: StoredRecords) -> list[Finding]:
    """Returns what is wrong with the metadata, or one finding that says how much there is."""
    found_sum, stored_sum = MetadataSum(records.metadata), records.control.get("metadata_sum", "")
    findings = []
    if str(found_sum) != stored_sum:
        found = (
            f"checksum over {counted(len(records.metadata), 'field')} of key {keys.metadata!r} is {found_sum}, "
            f"expected {stored_sum}"
        )
        findings.append(fail(SUBJECT, found, WHY_SUM, restore(keys)))
    readable: dict[str, Any] = {}
    for field, packed in sorted(records.metadata.items()):
        try:
            readable |= unpack_metadata(keys, {field: packed})
        except StateRefusedError as error:
            findings.append(fail(SUBJECT, _as_found(error), WHY_SUM, restore(keys)))
    committed = committed_of(records)
    if committed is not None:
        findings += _check_chain(keys, readable, committed)
    if findings:
        return findings
    pending = sum(parse_metadata_field(field)[1] > (committed or 0) for field in readable)
    return [
        ok(
            SUBJECT,
            f"{counted(len(readable), 'field')}, {pending:,} of them of transactions not committed yet; the checksum "
            "matches, no transaction is missing",
        )
    ]


def _check_chain(keys: Keys, metadata: Mapping[str, Any], committed: int) -> list[Finding]:
    scopes: dict[str, dict[int, Any]] = {}
    for field, value in metadata.items():
        scope, txid = parse_metadata_field(field)
        scopes.setdefault(scope, {})[txid] = value
    findings = []
    largest = max((txid for by_txid in scopes.values() for txid in by_txid), default=0)
    if largest > MAX_INTEGER:
        why = "txids beyond that are not exact on the server"
        findings.append(fail(SUBJECT, f"an entry has txid {largest}, beyond {MAX_INTEGER}", why, restore(keys)))
        return findings
    counts = scopes.pop(COORDINATOR_SCOPE, {})
    partitions = {scope: by_txid for scope, by_txid in scopes.items() if not is_own_scope(scope)}
    findings += _refused(lambda: check_scopes(keys.topology_id, partitions), keys)
    if counts:
        findings += _refused(
            lambda: check_coordinator_metadata(keys.topology_id, counts, committed_txid=committed), keys
        )
        if partitions:
            findings += _refused(
                lambda: check_partition_metadata(keys.topology_id, partitions, counts, committed_txid=committed), keys
            )
    elif committed and not partitions:
        found = f"committed up to txid {committed}, but no position in the input is stored"
        why = "only an opaque spout without partitions leaves it so; after any other, the next run is refused"
        findings.append(warn(SUBJECT, found, why, restore(keys)))
    return findings


def _refused(check: Callable[[], None], keys: Keys) -> list[Finding]:
    """Runs one of the checks that a start makes."""
    try:
        check()
    except StateRefusedError as error:
        return [fail(SUBJECT, _as_found(error), WHY_CHAIN, restore(keys))]
    return []


def _as_found(error: StateRefusedError) -> str:
    """Returns an error's message without its last part, the remedy, which the finding has itself."""
    return str(error).rpartition("; ")[0] or str(error)
