"""Compares the states and dead letters that two runs have left: by type, and exactly where txbatch promises that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isclose
from typing import Any

from coordinator.proving.quiet_run import Kept
from state.kinds.handles import DeclaredState
from state.kinds.state_family import StateFamily
from state.printable import one_line
from state.values.state_kind import StateKind

CLOSE = 1e-9
"""How far sums of floats may differ, relatively, if they were added up in another order."""
SHOWN = 3
_APPENDED = (StateKind.LIST, StateKind.STREAM)


def differences(
    expected: Kept, found: Kept, handles: Iterable[DeclaredState], *, is_rearranged: bool
) -> list[tuple[str, str]]:
    """Returns the states that differ, each with a sentence; "" stands for the dead letters.

    If `is_rearranged`, tuples went to other tasks or came in another order. Then sums of floats may differ in their
    last digits, lists and streams in the order of one transaction's items, and bounded ones in the items they keep.
    """
    sentences = []
    for handle in handles:
        name, family = handle.name, handle if isinstance(handle, StateFamily) else None
        kind, bound = handle.kind, _keep_last(handle)
        left, right = expected.states[name], found.states[name]
        pairs: Iterator[tuple[str, Any, Any]] = iter([(name, left, right)])
        if family is not None:
            pairs = ((f"{name}[{part!r}]", left.get(part), right.get(part)) for part in {**left, **right})
        for what, one, other in pairs:
            is_list = kind in _APPENDED and is_rearranged and one is not None and other is not None
            same = _same_list(one, other, bound=bound) if is_list else same_value(one, other, is_close=is_rearranged)
            if not same:
                sentences.append((name, f"state {what} {_how(one, other)}"))
    if Counter(map(repr, expected.letters)) != Counter(map(repr, found.letters)):
        sentences.append(
            (
                "",
                f"there are {len(found.letters)} dead letters, and {len(expected.letters)} in a quiet run"
                if len(found.letters) != len(expected.letters)
                else "other tuples are dead letters",
            )
        )
    return sentences


def same_value(one: Any, other: Any, *, is_close: bool) -> bool:
    """Returns whether two values have the same type and are equal; with `is_close`, floats only nearly."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (is_close and isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_value(one[k], other[k], is_close=is_close) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(
            same_value(a, b, is_close=is_close) for a, b in zip(one, other, strict=True)
        )
    return bool(one == other)


def _same_list(one: Any, other: Any, *, bound: int) -> bool:
    if bound:
        return len(one) == len(other)
    return Counter(map(repr, _items(one))) == Counter(map(repr, _items(other)))


def _items(held: Any) -> list[Any]:
    """Returns the items of a list, or the entries of a stream, each with its txid instead of its id."""
    if not isinstance(held, Mapping):
        return list(held)
    return [(entry_id.partition("-")[0], fields) for entry_id, fields in held.items()]


def _keep_last(handle: DeclaredState) -> int:
    """Returns how many items a bounded list or stream keeps; 0 for any other state."""
    template = handle.template if isinstance(handle, StateFamily) else handle
    return template.retention.most


def _how(expected: Any, found: Any) -> str:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        fields = [key for key in {**expected, **found} if expected.get(key) != found.get(key)]
        shown = (f"{key!r} is {found.get(key)!r}, expected {expected.get(key)!r}" for key in fields[:SHOWN])
        more = f", and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""
        return one_line(f"differs: {'; '.join(shown)}{more}")
    return one_line(f"is {found!r}, expected {expected!r}")
