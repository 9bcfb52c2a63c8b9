"""Checks the keys below a topology's hash tag: whose they are, their types, and that none expires. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from coordinator.building.topology_description import DescribedState
from coordinator.inspection.finding import Finding, fail, ok, warn
from coordinator.inspection.verify.bounded import Faults
from coordinator.inspection.verify.control_check import restore
from coordinator.inspection.verify.declared_keys import state_of_key
from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.commits.write_set import StateKind
from state.keys import Keys
from state.printable import counted, one_line
from state.records.stored_records import StoredKey

SUBJECT = "keys"
HASH = "hash"


def own_keys(keys: Keys) -> dict[str, str]:
    """Returns the keys of txbatch itself -> their Redis type.

    Records of a new kind are named here; what is in them has a check of its own, called by `verifier`.
    """
    records = (keys.control, keys.metadata, keys.receipts, keys.history, keys.offsets, keys.quarantine)
    hashes = (*records, keys.pulse, keys.stories)
    return dict.fromkeys(hashes, HASH) | {keys.state(DEAD_LETTERS_STATE): StateKind.SORTED_SET.value}


def check_keys(keys: Keys, found: Iterable[StoredKey], states: Mapping[str, DescribedState] | None) -> list[Finding]:
    """Returns what is wrong with the keys, or one finding that says how many there are.

    Args:
        keys: of the topology.
        found: every key below its tag.
        states: its states as declared; None if that is unknown, and no key can be called foreign.
    """
    declared = {name: state for name, state in (states or {}).items() if state.part_type is None}
    own, foreign, mistyped, expiring, lasting = own_keys(keys), Faults(), Faults(), Faults(), Faults()
    present: set[str] = set()
    for each in found:
        present.add(each.key)
        shown = repr(one_line(each.key, 100))
        state = state_of_key(keys, each.key, states or {})
        if each.ttl_ms >= 0 and not (state and state.expires):
            expiring.add(f"{shown} in {each.ttl_ms / 1000:,.0f} s")
        elif each.ttl_ms < 0 and state and state.expires:
            lasting.add(shown)
        expected = own.get(each.key) or (state and state.kind.redis_type)
        if not expected:
            foreign.add(f"{shown}, a {each.kind}")
        elif each.kind != expected:
            mistyped.add(f"{shown} is a {each.kind}, expected a {expected}")
    findings = _faulty(keys, mistyped, expiring)
    if lasting.count:
        why = "every commit to it sets its expiry; something else has removed that, so the key stays for good"
        findings.append(
            warn(SUBJECT, f"keys were declared to expire and do not: {lasting}", why, "set it by PEXPIREAT")
        )
    if foreign.count and states is not None:
        what = f"{counted(foreign.count, 'key')} below the topology's tag that it has not declared: {foreign}"
        why = "a state that was declared once keeps its key, and anything else there is deleted by `txbatch drop`"
        findings.append(warn(SUBJECT, what, why, "remove what you do not need, or declare it"))
    return findings or [ok(SUBJECT, _present(keys, present, states or {}, declared))]


def _faulty(keys: Keys, mistyped: Faults, expiring: Faults) -> list[Finding]:
    findings = []
    if mistyped.count:
        why = "something else wrote the key; the next commit to it is refused, and what it held is lost"
        findings.append(fail(SUBJECT, str(mistyped), why, restore(keys)))
    if expiring.count:
        why = "nothing declares that these expire; when their time has passed, committed state disappears silently"
        findings.append(fail(SUBJECT, f"keys expire: {expiring}", why, "run PERSIST on each, now"))
    return findings


def _present(
    keys: Keys, present: Collection[str], states: Mapping[str, DescribedState], declared: Mapping[str, DescribedState]
) -> str:
    there = sum(state_of_key(keys, key, states) is not None for key in present)
    missing = sum(keys.state(name) not in present for name in declared)
    empty = f", {missing} declared ones hold nothing" if missing else ""
    expiry = "none expires" + (" but those declared to" if any(state.expires for state in states.values()) else "")
    return f"{counted(len(present), 'key')}, {there} of them declared states{empty}; types match, {expiry}"
