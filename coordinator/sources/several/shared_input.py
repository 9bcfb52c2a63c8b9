"""Detects two sources that read the same input while one of them removes it after reading; pure.

Our sources name the places of their input: patterns of files, as they are stored, and streams. Input that one source
deletes, moves or trims after its commit may be gone before the other has read it, and no run can bring it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import permutations
from typing import Any

from state.errors import TopologyError

_WILD = "*?["


def refuse_shared(sources: Mapping[str, Any]) -> None:
    """Raises TopologyError if one input destroys what another one reads (driver, when `Inputs` is made)."""
    for (name, one), (other_name, other) in permutations(sources.items(), 2):
        destruction = getattr(one, "destruction", "")
        places = (*places_of(one), *getattr(one, "filled_places", ()))
        if destruction and (place := shared_place(places, places_of(other))):
            raise TopologyError(
                f"inputs {name!r} and {other_name!r} both read {place!r}, and for {name!r} {destruction}: "
                f"{other_name!r} may not have read them yet; let one input feed both branches, or give each its own "
                "folder or stream"
            )


def places_of(source: Any) -> tuple[str, ...]:
    """Returns the places of a source's input; none if the source does not name them."""
    places: tuple[str, ...] = getattr(source, "input_places", ())
    return places


def places_in(fingerprint: str) -> tuple[str, ...]:
    """Returns the places in the fingerprint of one of our sources; if it has many patterns, only the first few."""
    with suppress(ValueError):
        several = json.loads(fingerprint)
        if isinstance(several, dict):
            return tuple(place for each in several.values() for place in places_in(str(each)))
    quoted = re.findall(r"'([^']*)'", fingerprint)
    return tuple(f"stream {key!r} of *" for key in quoted) if fingerprint.startswith("redis streams") else (*quoted,)


def shared_place(places: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Returns the first place that may overlap with one of the others; "" if none does."""
    return next((place for place in places if any(may_meet(place.split("/"), each.split("/")) for each in others)), "")


def may_meet(one: list[str], other: list[str]) -> bool:
    """Returns whether two patterns, split at slashes, may match the same path; ``**`` is any depth of folders."""
    if not one or not other:
        return all(part == "**" for part in one or other)
    for deep, rest in ((one, other), (other, one)):
        if deep[0] == "**":
            return may_meet(deep[1:], rest) or may_meet(deep, rest[1:])
    return _may_be_one(one[0], other[0]) and may_meet(one[1:], other[1:])


def _may_be_one(one: str, other: str) -> bool:
    """Returns whether two parts may match the same name; a character class counts as any character."""
    if one == other or not one or not other:
        return one == other or (one or other).strip("*") == ""
    if one[0] == "*":
        return _may_be_one(one[1:], other) or _may_be_one(one, other[1:])
    if other[0] == "*":
        return _may_be_one(other, one)
    (first, rest), (other_first, other_rest) = _character(one), _character(other)
    is_same = first == other_first or not first or not other_first
    return is_same and _may_be_one(rest, other_rest)


def _character(part: str) -> tuple[str, str]:
    """Returns the first character of a part, "" for a wildcard or class, and the rest of the part."""
    if part[0] == "[" and "]" in part[2:]:
        return "", part[part.index("]", 2) + 1 :]
    return ("" if part[0] in _WILD else part[0]), part[1:]
