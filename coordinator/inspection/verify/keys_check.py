"""Checks the keys below a topology's hash tag: whose they are, their types, and that none expires. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from coordinator.building.topology_description import DescribedState
from coordinator.inspection.finding import Finding, fail, ok, warn
from coordinator.inspection.verify.bounded import Faults
from coordinator.inspection.verify.control_check import restore
from state.dead_letters import DEAD_LETTERS_STATE
from state.keys import Keys
from state.printable import counted, one_line
from state.stored_records import StoredKey
from state.write_set import StateKind

SUBJECT = "keys"
HASH = "hash"


def own_keys(keys: Keys) -> dict[str, str]:
    """Returns the keys of txbatch itself -> their Redis type.

    Records of a new kind are named here; what is in them has a check of its own, called by `verifier`.
    """
    hashes = (keys.control, keys.metadata, keys.receipts, keys.offsets, keys.quarantine, keys.pulse, keys.stories)
    return dict.fromkeys(hashes, HASH) | {keys.state(DEAD_LETTERS_STATE): StateKind.SORTED_SET.value}


def check_keys(keys: Keys, found: Iterable[StoredKey], states: Mapping[str, DescribedState] | None) -> list[Finding]:
    """Returns what is wrong with the keys, or one finding that says how many there are.

    Args:
        keys: of the topology.
        found: every key below its tag.
        states: its states as declared; None if that is unknown, and no key can be called foreign.
    """
    declared = {keys.state(name): state.kind.value for name, state in (states or {}).items()}
    expected, foreign, mistyped, expiring = own_keys(keys) | declared, Faults(), Faults(), Faults()
    present: set[str] = set()
    for each in found:
        present.add(each.key)
        shown = repr(one_line(each.key, 100))
        if each.ttl_ms >= 0:
            expiring.add(f"{shown} in {each.ttl_ms / 1000:,.0f} s")
        if each.key not in expected:
            foreign.add(f"{shown}, a {each.kind}")
        elif each.kind != expected[each.key]:
            mistyped.add(f"{shown} is a {each.kind}, expected a {expected[each.key]}")
    findings = _faulty(keys, mistyped, expiring)
    if foreign.count and states is not None:
        what = f"{counted(foreign.count, 'key')} below the topology's tag that it has not declared: {foreign}"
        why = "a state that was declared once keeps its key, and anything else there is deleted by `txbatch drop`"
        findings.append(warn(SUBJECT, what, why, "remove what you do not need, or declare it"))
    return findings or [ok(SUBJECT, _present(present, declared))]


def _faulty(keys: Keys, mistyped: Faults, expiring: Faults) -> list[Finding]:
    findings = []
    if mistyped.count:
        why = "something else wrote the key; the next commit to it is refused, and what it held is lost"
        findings.append(fail(SUBJECT, str(mistyped), why, restore(keys)))
    if expiring.count:
        why = "txbatch gives no key a time to live; when it has passed, committed state is gone without a word"
        findings.append(fail(SUBJECT, f"keys expire: {expiring}", why, "run PERSIST on each, now"))
    return findings


def _present(present: Collection[str], declared: Mapping[str, str]) -> str:
    there = sum(key in present for key in declared)
    missing = len(declared) - there
    empty = f", {missing} declared ones hold nothing" if missing else ""
    return f"{counted(len(present), 'key')}, {there} of them declared states{empty}; types match, none expires"
