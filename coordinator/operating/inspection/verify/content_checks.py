"""Checks the keys below a topology's hash tag, and every value of its states against its declaration. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from coordinator.operating.inspection.finding import Finding, fail, ok, warn
from state.codec import unpack
from state.errors import StateRefusedError
from state.keys import Keys
from state.printable import counted, one_line
from state.records.declared_states import DescribedState, OwnedKeys, record_types
from state.records.stored_records import StoredKey
from state.values.state_kind import MAX_INTEGER, FieldType, StateKind, ValueType
from state.values.value_form import decode_stored

SHOWN = 5
"""How many items one finding names at most."""


def restore(keys: Keys) -> str:
    """Returns the remedy for damaged records of a topology."""
    return (
        f"restore the server's data from a copy taken at one moment, or start over with `txbatch drop {keys.owner_id}`"
    )


class PartCheck:
    """Collects the findings about one subject."""

    def __init__(self, keys: Keys, subject: str) -> None:
        self.keys, self._subject = keys, subject
        self._findings: list[Finding] = []

    def damaged(self, found: object, why: str, remedy: str = "") -> None:
        """Adds a finding that has to be fixed; the default remedy is to restore the server's data."""
        self._findings.append(fail(self._subject, str(found), why, remedy or restore(self.keys)))

    def doubtful(self, found: str, why: str, remedy: str) -> None:
        self._findings.append(warn(self._subject, found, why, remedy))

    def findings(self, sound: str = "") -> list[Finding]:
        """Returns the findings; if there are none, one good finding with the text `sound`, unless that is empty."""
        return self._findings or ([ok(self._subject, sound)] if sound else [])


class Faults:
    """Collects faults of one kind: keeps the text of the first few, and counts all."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        self.count += 1
        if len(self._shown) < SHOWN:
            self._shown.append(text)

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        more = self.count - len(self._shown)
        return ", ".join(self._shown) + (f" and {more:,} more" if more else "")


def first_few(items: Iterable[object]) -> str:
    """Returns the first items, separated by commas, and how many more there are."""
    found = Faults()
    for item in items:
        found.add(str(item))
    return str(found)


def bytes_shown(stored: bytes | None) -> str:
    """Returns the beginning of a stored value, quoted; "nothing" for None."""
    return "nothing" if stored is None else repr(one_line(stored[:60].decode("utf-8", "backslashreplace"), 60))


_INTEGER = re.compile(rb"0|-?[1-9][0-9]*")
_FLOAT = re.compile(rb"[0-9.eE+-]+")
_WITH_FIELDS = (StateKind.HASH, StateKind.SORTED_SET, StateKind.SET)


def check_keys(keys: Keys, found: Iterable[StoredKey], owned: OwnedKeys) -> list[Finding]:
    """Returns the faults of the keys below a topology's tag, or one finding with their number.

    Each key has to belong to the topology, have the right type, and expire only if it is declared to.
    """
    check, declared = PartCheck(keys, "keys"), owned.states
    own, foreign, former, mistyped, telling = record_types(keys), Faults(), Faults(), Faults(), Faults()
    expiring, lasting = Faults(), Faults()
    present: dict[str, DescribedState | None] = {}
    for each in found:
        shown = repr(one_line(each.key, 100))
        state = present[each.key] = owned.state_of(keys, each.key)
        expected = own.get(each.key) or (state and state.kind.redis_type)
        if not expected:
            (former if owned.has(keys, each.key) else foreign).add(f"{shown}, a {each.kind}")
            continue
        if each.ttl_ms >= 0 and each.key != keys.pause and not (state and state.expires):
            expiring.add(f"{shown} in {each.ttl_ms / 1000:,.0f} s")
        elif each.ttl_ms < 0 and state and state.expires:
            lasting.add(shown)
        if each.kind != expected:
            where = telling if each.key in (keys.pulse, keys.stories) else mistyped
            where.add(f"{shown} is a {each.kind}, expected a {expected}")
    if mistyped:
        check.damaged(
            mistyped, "something else wrote the key; the next commit to it is refused, and what it held is lost"
        )
    if telling:
        why = "something else wrote the key under which runs report themselves; no run depends on that"
        check.doubtful(str(telling), why, "delete it; the next run writes it again")
    if expiring:
        why = "nothing declares that these expire; when their time has passed, committed state disappears silently"
        check.damaged(f"keys expire: {expiring}", why, "run PERSIST on each, now")
    if lasting:
        why = "every commit to it sets its expiry; something else has removed that, so the key stays for good"
        check.doubtful(f"keys were declared to expire and do not: {lasting}", why, "set it by PEXPIREAT")
    if former:
        why = "states that were declared before keep their keys, and so do records of another version"
        shown = f"{counted(former.count, 'key')} that the topology no longer declares: {former}"
        check.doubtful(shown, why, f"nothing reads them; `txbatch drop {keys.owner_id}` deletes them with the rest")
    if foreign:
        shown = f"{counted(foreign.count, 'key')} below the topology's tag that it has not declared: {foreign}"
        why = "something else wrote them, or an older version of the topology that left no record of them"
        check.doubtful(shown, why, "drop and import leave them as they are; delete by hand what you do not need")
    return check.findings(_present(keys, present, declared))


def _present(keys: Keys, present: Mapping[str, DescribedState | None], declared: Mapping[str, DescribedState]) -> str:
    there = sum(state is not None for state in present.values())
    whole = (name for name, state in declared.items() if state.part_type is None)
    missing = sum(keys.state(name) not in present for name in whole)
    empty = f", {missing} declared ones hold nothing" if missing else ""
    expiry = "none expires" + (" but those declared to" if any(state.expires for state in declared.values()) else "")
    return f"{counted(len(present), 'key')}, {there} of them declared states{empty}; types match, {expiry}"


class ValuesCheck:
    """Checks the entries of one state, piece by piece: form, range and encoding."""

    def __init__(self, keys: Keys, state: DescribedState) -> None:
        self._keys, self._state = keys, state
        self._faults = Faults()
        self._count = 0
        self._check_field = _check_of(state.field_type)
        self._check_value = _check_of(ValueType.FLOAT if state.kind is StateKind.SORTED_SET else state.value_type)
        if state.kind is StateKind.HYPERLOGLOG:
            self._check_value = _no_hyperloglog
        elif state.kind is StateKind.STREAM:
            self._check_value = partial(_no_entry, self._check_value)

    def check(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Checks some entries; an entry may be given twice."""
        has_fields, has_values = self._state.kind in _WITH_FIELDS, self._state.kind is not StateKind.SET
        for field, value in entries:
            self._count += 1
            if has_fields and (fault := self._check_field(field)):
                self._faults.add(f"field {bytes_shown(field)} is {fault}")
            if has_values and (fault := self._check_value(value)):
                at = f"field {bytes_shown(field)} holds" if has_fields else "it holds"
                self._faults.add(f"{at} {bytes_shown(value)}, {fault}")

    def findings(self) -> list[Finding]:
        """Returns the findings; called once, after the last piece."""
        check, state = PartCheck(self._keys, "values"), self._state
        shown = f"{state.kind.value} {self._keys.state(state.name)!r}"
        if self._faults:
            why = f"declared as {state.value_type.value}; the next commit or read that meets such a value stops the run"
            check.damaged(f"{shown}: {self._faults}", why, f"correct the value, or {restore(self._keys)}")
        return check.findings(f"{shown}: {self._count:,} entries, each as declared")


def check_last_ids(keys: Keys, last_ids: Mapping[str, str], committed: int) -> list[Finding]:
    """Returns the streams whose last id lies above the committed transactions, given name -> last id."""
    check = PartCheck(keys, "values")
    ahead = first_few(
        f"{keys.state(name)!r} has had {last}"
        for name, last in last_ids.items()
        if int(last.partition("-")[0]) > committed
    )
    if ahead:
        why = (
            f"committed is up to txid {committed}: the next commit to such a stream is refused, since its ids are lower"
        )
        check.damaged(
            ahead,
            why,
            f"delete the entries that do not belong to the topology and set the last id by XSETID, or {restore(keys)}",
        )
    return check.findings()


def _no_integer(stored: bytes) -> str:
    if not _INTEGER.fullmatch(stored):
        return "not an integer in plain decimal"
    is_small = len(stored) <= len(str(-MAX_INTEGER))
    return "" if is_small and abs(int(stored)) <= MAX_INTEGER else f"outside ±{MAX_INTEGER}"


def _no_float(stored: bytes) -> str:
    try:
        is_finite = math.isfinite(float(stored))
    except ValueError:
        return "not a number"
    return "" if is_finite and _FLOAT.fullmatch(stored) else "not a finite number"


def _no_text(stored: bytes) -> str:
    try:
        stored.decode()
    except UnicodeDecodeError:
        return "not valid UTF-8"
    return ""


def _no_json(stored: bytes) -> str:
    try:
        json.loads(stored)
    except ValueError:
        return "not JSON"
    return ""


def _not_in_form(declared: FieldType, stored: bytes) -> str:
    """Returns the fault of a stored date or tuple; "" if it has the declared form."""
    try:
        decode_stored(stored, declared, "")
    except StateRefusedError:
        return f"not a {declared.value}"
    return ""


def _no_hyperloglog(stored: bytes) -> str:
    return "" if stored.startswith(b"HYLL") else "not a HyperLogLog"


def _anything(_: bytes) -> str:
    return ""


def _no_entry(no_value: Callable[[bytes], str], packed: bytes) -> str:
    fields = unpack(packed)
    return next(filter(None, (*map(_no_text, fields[::2]), *map(no_value, fields[1::2]))), "")


_CHECKS: dict[FieldType, Callable[[bytes], str]] = {
    ValueType.INT: _no_integer,
    ValueType.FLOAT: _no_float,
    ValueType.STR: _no_text,
    ValueType.BYTES: _anything,
    ValueType.DECIMAL: _no_integer,
    ValueType.JSON: _no_json,
}


def _check_of(declared: FieldType) -> Callable[[bytes], str]:
    return _CHECKS.get(declared) or partial(_not_in_form, declared)
