"""Checks every value of a state against its declaration: form, range and encoding. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable

from coordinator.building.topology_description import DescribedState
from coordinator.inspection.finding import Finding, fail, ok
from coordinator.inspection.verify.bounded import Faults
from coordinator.inspection.verify.control_check import restore
from state.commits.write_set import MAX_INTEGER, StateKind, ValueType
from state.keys import Keys
from state.printable import one_line

SUBJECT = "values"
_INTEGER = re.compile(rb"0|-?[1-9][0-9]*")
_FLOAT = re.compile(rb"[0-9.eE+-]+")
_KEYED = (StateKind.HASH, StateKind.SORTED_SET)


class ValuesCheck:
    """Checks the entries of one state, piece by piece.

    Args:
        keys: of the topology.
        state: as declared.
    """

    def __init__(self, keys: Keys, state: DescribedState) -> None:
        self._keys, self._state = keys, state
        self._faults = Faults()
        self._count = 0
        self._check_field = _CHECKS[state.field_type]
        self._check_value = _CHECKS[ValueType.FLOAT if state.kind is StateKind.SORTED_SET else state.value_type]
        if state.kind is StateKind.HYPERLOGLOG:
            self._check_value = _no_hyperloglog

    def check(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes in some entries; an entry may be given twice."""
        has_fields = self._state.kind in _KEYED or self._state.kind is StateKind.SET
        has_values = self._state.kind is not StateKind.SET
        for field, value in entries:
            self._count += 1
            if has_fields and (fault := self._check_field(field)):
                self._faults.add(f"field {_shown(field)} is {fault}")
            if has_values and (fault := self._check_value(value)):
                at = f"field {_shown(field)} holds" if has_fields else "it holds"
                self._faults.add(f"{at} {_shown(value)}, {fault}")

    def finding(self) -> Finding:
        """Returns what was found; called once, after the last piece."""
        state, key = self._state, self._keys.state(self._state.name)
        if self._faults.count:
            found = f"{state.kind.value} {key!r}: {self._faults}"
            why = f"declared as {state.value_type.value}; the next commit or read that meets such a value stops the run"
            return fail(SUBJECT, found, why, f"correct the value, or {restore(self._keys)}")
        return ok(SUBJECT, f"{state.kind.value} {key!r}: {self._count:,} entries, each as declared")


def _shown(stored: bytes) -> str:
    return repr(one_line(stored[:60].decode("utf-8", "backslashreplace"), 60))


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


def _no_hyperloglog(stored: bytes) -> str:
    return "" if stored.startswith(b"HYLL") else "not a HyperLogLog"


def _anything(_: bytes) -> str:
    return ""


_CHECKS: dict[ValueType, Callable[[bytes], str]] = {
    ValueType.INT: _no_integer,
    ValueType.FLOAT: _no_float,
    ValueType.STR: _no_text,
    ValueType.BYTES: _anything,
    ValueType.DECIMAL: _no_integer,
    ValueType.JSON: _no_json,
}
