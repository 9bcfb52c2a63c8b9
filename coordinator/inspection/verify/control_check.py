"""Checks the control record: format, owner, revision, position and descriptions. Pure."""

from __future__ import annotations

import re

from coordinator.building.topology_description import declared_states_of
from coordinator.inspection.finding import Finding, fail, ok, warn
from state.commits.write_set import MAX_INTEGER
from state.keys import Keys
from state.printable import one_line
from state.records.stored_records import StoredRecords

SUBJECT = "control"
NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_FORMS = {
    "fence": (re.compile(r"[1-9][0-9]*:[0-9a-f]{32}"), "a number, a colon and 32 hexadecimal digits"),
    "generation": (re.compile(r"[0-9a-f]{32}"), "32 hexadecimal digits"),
    "committed": (NUMBER, "a whole number"),
    "revision": (NUMBER, "a whole number"),
    "metadata_sum": (re.compile(r"[0-9a-f]{16}"), "16 hexadecimal digits"),
    "last_call": (re.compile(r"|[0-9a-f]{16}"), "16 hexadecimal digits or nothing"),
}
RESTORE = "restore the server's data from a copy taken at one moment, or start over with `txbatch drop {id}`"
"""The remedy for damaged records; the name of the topology is filled in."""


def restore(keys: Keys) -> str:
    """Returns the remedy for damaged records of a topology."""
    return RESTORE.format(id=keys.topology_id)


def committed_of(records: StoredRecords) -> int | None:
    """Returns the committed txid, or None if it cannot be read."""
    return _number(records, "committed")


def check_control(keys: Keys, records: StoredRecords, *, known_format: str) -> list[Finding]:
    """Returns what is wrong with the control record, or one finding that says what it holds.

    Args:
        keys: of the topology.
        records: what is stored.
        known_format: the format that this version of txbatch reads and writes.
    """
    control = records.control
    if control.get("format") != known_format:
        found = f"stored format is {control.get('format', '')!r}, expected {known_format!r}"
        why = "another version of txbatch wrote it, or it is damaged; nothing else can be judged"
        return [fail(SUBJECT, found, why, f"use the version that wrote it, or {restore(keys)}")]
    findings = [
        fail(
            SUBJECT,
            f"field {name!r} of key {keys.control!r} holds {one_line(control.get(name, ''), 100)!r}, expected {form}",
            "the next run would be refused, or continue from a wrong place",
            restore(keys),
        )
        for name, (pattern, form) in _FORMS.items()
        if not pattern.fullmatch(control.get(name, ""))
    ]
    findings += _check_numbers(keys, records)
    findings += _check_descriptions(keys, records)
    if control.get("begun") != control.get("ended"):
        found = f"write {control.get('begun', '')} was applied over {control.get('ended', '')}"
        why = "part of a write that was lost in a power failure is in the state; a run would be refused as TORN"
        findings.append(fail(SUBJECT, found, why, restore(keys)))
    if "dropping" in control:
        why = "until that drop is finished, the topology cannot run"
        findings.append(
            warn(SUBJECT, "a drop was begun and not finished", why, f"run `txbatch drop {keys.topology_id}`")
        )
    held = f"committed up to txid {control.get('committed', '')}, revision {control.get('revision', '')}"
    return findings or [
        ok(SUBJECT, f"{held}, owner {control.get('fence', '').partition(':')[0]}, descriptions readable")
    ]


def _number(records: StoredRecords, field: str) -> int | None:
    text = records.control.get(field, "")
    return int(text) if NUMBER.fullmatch(text) else None


def _check_numbers(keys: Keys, records: StoredRecords) -> list[Finding]:
    committed, revision = _number(records, "committed"), _number(records, "revision")
    if committed is None or revision is None:
        return []
    findings = []
    if max(committed, revision) > MAX_INTEGER:
        found = f"committed is {committed} and revision {revision}, one of them beyond {MAX_INTEGER}"
        findings.append(fail(SUBJECT, found, "numbers beyond that are not exact on the server", restore(keys)))
    owners = int(records.control.get("fence", "").partition(":")[0] or 0) if _has_fence(records) else 0
    groups = len({text.partition(" ")[2] for text in records.receipts.values()})
    if revision < owners + groups and "dropping" not in records.control:
        found = (
            f"revision is {revision}, fewer writes than the {owners} starts of runs and {groups} commits on record need"
        )
        why = "the revision counts every write; an older one would let writes be applied a second time"
        findings.append(fail(SUBJECT, found, why, restore(keys)))
    return findings


def _has_fence(records: StoredRecords) -> bool:
    return _FORMS["fence"][0].fullmatch(records.control.get("fence", "")) is not None


def _check_descriptions(keys: Keys, records: StoredRecords) -> list[Finding]:
    findings = []
    description = records.control.get("topology", "")
    try:
        declared_states_of(description)
    except ValueError as error:
        found = f"the stored description {one_line(description, 100)!r} of the topology cannot be read ({error})"
        why = "the types of its states are unknown, so their content is not checked"
        findings.append(fail(SUBJECT, found, why, restore(keys)))
    if not records.control.get("source_fingerprint"):
        why = "the next run cannot tell whether its input is the same"
        findings.append(fail(SUBJECT, "the fingerprint of the input is missing", why, restore(keys)))
    return findings
