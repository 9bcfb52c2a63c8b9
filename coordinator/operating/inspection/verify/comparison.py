"""Compares a topology with its refold: descriptions, the position in the input, and every state. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coordinator.operating.inspection.finding import Finding, fail, has_failed, ok, warn
from coordinator.operating.inspection.verify.content_checks import Faults, bytes_shown, first_few, restore
from coordinator.topology.building.topology_description import TopologyChange
from state.keys import Keys
from state.printable import counted, one_line
from state.records.stored_records import Content, StateImage

SUBJECT = "refold"


@dataclass(frozen=True, slots=True)
class Refolded:
    """The result of a refold; `moved` holds the metadata fields of committed transactions that name other input."""

    state: StateImage
    moved: tuple[str, ...] = ()


def compare(keys: Keys, stored: StateImage, refold: Refolded) -> list[Finding]:
    """Returns the differences between the stored topology and its refold up to the same txid.

    States are compared only if both sides have read the input up to the same position: otherwise a difference would
    mean nothing.
    """
    refolded = refold.state
    committed = int(stored.committed)
    remedy = f"restore the input and the parameters of the factory, or {restore(keys)}"
    if refolded.committed != stored.committed:
        found = (
            f"the input gives no more than txid {refolded.committed}, but txid {committed} is committed; "
            "no state was compared"
        )
        why = "input that was read is gone or was cut into smaller transactions, or the committed txid was altered"
        return [fail(SUBJECT, found, why, remedy)]
    if refold.moved:
        fields = first_few(repr(one_line(field, 60)) for field in refold.moved)
        found = (
            f"the input was cut differently, or holds other data now: metadata {fields} differs; no state was compared"
        )
        why = (
            "the stored position was altered, or the input or the parameters that cut it have changed since; a state "
            "is comparable only if both sides have read the same"
        )
        return [fail(SUBJECT, found, why, remedy)]
    findings = _other_input(stored, refolded) if committed else []
    for name in sorted(stored.states.keys() | refolded.states.keys()):
        findings += _compare_state(keys, name, stored.states.get(name), refolded.states.get(name))
    count = len(stored.states)
    if has_failed(findings):
        return findings
    equal = "its state is equal" if count == 1 else f"all {count} states are equal"
    return [*findings, ok(SUBJECT, f"recomputed up to txid {committed}: {equal}")]


def check_same_topology(change: TopologyChange) -> list[Finding]:
    """Returns how the topology to refold differs from the stored one; fails if it has other states."""
    remedy = "give the factory and the parameters of the last run"
    if change.states:
        found = f"the factory's topology has other states than the stored one: {first_few(change.states)}"
        return [fail(SUBJECT, found, "other states cannot be compared, so nothing was recomputed", remedy)]
    if change.said:
        found = f"the factory's topology differs from the stored one: {first_few(change.said)}"
        why = "if this changes what is computed, the states differ for that reason alone"
        return [warn(SUBJECT, found, why, remedy)]
    return []


def _other_input(stored: StateImage, refolded: StateImage) -> list[Finding]:
    before, now = (image.control.get("source_fingerprint", "") for image in (stored, refolded))
    if before == now:
        return []
    found = f"the input has another fingerprint now: stored {one_line(before, 200)!r}, given {one_line(now, 200)!r}"
    why = "what was read may still be unchanged, as when lines were appended; a difference between states would show it"
    return [warn(SUBJECT, found, why, "restore the input if it should be the same")]


def _compare_state(keys: Keys, name: str, stored: Content, refolded: Content) -> list[Finding]:
    faults = Faults()
    for difference in _differences(stored, refolded):
        faults.add(difference)
    if not faults:
        return []
    found = f"state {keys.state(name)!r} differs from its refold in {counted(faults.count, 'place')}: {faults}"
    why = (
        "the value was changed, deleted or added outside txbatch, or lost; or the topology's code has changed, or does "
        "not compute the same twice"
    )
    return [fail(SUBJECT, found, why, f"make sure that the code is unchanged and repeatable, then {restore(keys)}")]


def _differences(stored: Content, refolded: Content) -> Iterator[str]:
    match stored, refolded:
        case Mapping(), Mapping():
            for field in sorted(stored.keys() | refolded.keys()):
                if stored.get(field) != refolded.get(field):
                    yield f"field {bytes_shown(field)} {_both(stored.get(field), refolded.get(field))}"
        case frozenset(), frozenset():
            for member in sorted(stored ^ refolded):
                yield f"member {bytes_shown(member)} is " + ("surplus" if member in stored else "missing")
        case tuple(), tuple():
            yield from _list_differences(stored, refolded)
        case _ if stored != refolded:
            yield _both(stored, refolded)


def _list_differences(stored: tuple[bytes, ...], refolded: tuple[bytes, ...]) -> Iterator[str]:
    """Yields items that only one list has or, if both have the same items, the first index where the order differs."""
    surplus, missing = Counter(stored) - Counter(refolded), Counter(refolded) - Counter(stored)
    for word, items in (("surplus", surplus), ("missing", missing)):
        for item in sorted(items):
            yield f"item {bytes_shown(item)} is {word}" + (f" {items[item]} times" if items[item] > 1 else "")
    if not surplus and not missing and stored != refolded:
        place = next(i for i, (ours, theirs) in enumerate(zip(stored, refolded, strict=True)) if ours != theirs)
        yield f"the order differs from item {place} on"


def _both(stored: Content, refolded: Content) -> str:
    held, expected = (bytes_shown(each if isinstance(each, bytes) else None) for each in (stored, refolded))
    return f"holds {held}, expected {expected}"
